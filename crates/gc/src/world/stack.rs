//! Finds where a thread's roots are: its stack, and its static thread-local data.

use crate::process::{arch, tid};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use vellum_sys::{Addr, Span};

/// Bytes beside the thread pointer in which static thread-local data is looked for.
const STATIC_MAX: usize = 1 << 20;

/// The calling thread's stack; `None` if the C library does not say.
pub(crate) fn of_this_thread() -> Option<Span> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: fills in the attributes, for the calling thread.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut start, mut bytes) = (core::ptr::null_mut::<c_void>(), 0usize);
    // SAFETY: the attributes were filled in; then they are let go.
    let got = unsafe {
        let got = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        got
    };
    let stack = Span::at(start, bytes);
    let low = lowest(stack.end()).map_or(stack.start, |low| low.min(stack.start));
    (got == 0).then_some(Span::between(low, stack.end()))
}

/// How far the calling thread's stack may grow down, if it is the process's first: of that, musl says only
/// how large it is now.
fn lowest(end: Addr) -> Option<Addr> {
    // SAFETY: `getpid` has no arguments and cannot fail.
    if tid() != (unsafe { libc::getpid() }) as u32 {
        return None;
    }
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: fills in the limit, which is read if it did.
    let limit = unsafe {
        (libc::getrlimit(libc::RLIMIT_STACK, limit.as_mut_ptr()) == 0).then(|| limit.assume_init().rlim_cur)
    }?;
    (limit != libc::RLIM_INFINITY).then(|| Addr::new(end.get().saturating_sub(limit as usize)))
}

/// The calling thread's static thread-local data as start and end. Empty if it lies on the stack, as it does
/// with threads of glibc.
pub(crate) fn thread_data(stack: Span) -> Span {
    let pointer = arch::thread_pointer();
    if stack.contains(Addr::new(pointer)) {
        return Span::EMPTY;
    }
    let mut found = Found { pointer, low: pointer, high: pointer };
    // SAFETY: the callback gets the pointer to `found`, which lives across the call.
    unsafe { libc::dl_iterate_phdr(Some(module), (&raw mut found).cast()) };
    Span::between(Addr::new(found.low), Addr::new(found.high)).touched(size_of::<usize>())
}

struct Found {
    pointer: usize,
    low: usize,
    high: usize,
}

unsafe extern "C" fn module(info: *mut libc::dl_phdr_info, bytes: usize, found: *mut c_void) -> libc::c_int {
    if bytes < size_of::<libc::dl_phdr_info>() {
        return 0;
    }
    // SAFETY: `dl_iterate_phdr` passes the pointer it was given, and a structure that is at least as long.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Found>()) };
    let data = info.dlpi_tls_data as usize;
    // Static data has its place on one side of the thread pointer, by the machine.
    if data == 0
        || data.abs_diff(found.pointer) >= STATIC_MAX
        || (data > found.pointer) != arch::IS_DATA_ABOVE
    {
        return 0;
    }
    if arch::IS_DATA_ABOVE {
        // SAFETY: the loader's list of the module's headers.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let own = headers.iter().find(|header| header.p_type == libc::PT_TLS);
        found.high = found.high.max(data + own.map_or(0, |own| own.p_memsz as usize));
    } else {
        found.low = found.low.min(data);
    }
    0
}
