//! The C library's mapping interface, seen on its way to the kernel.
//!
//! Each function first asks [`vellum_malloc::mmap`] whether the call concerns memory that Vellum serves, then, if not,
//! makes the system call as the C library would.

use core::ffi::{c_int, c_void};
use vellum_malloc::mmap::{self as served, Mapping};
use vellum_malloc::set_errno;
use vellum_pages::Pages;
use vellum_sys::raw;

/// The kernel's answer, as a C function gives it.
fn kernel(number: libc::c_long, args: [usize; 6]) -> usize {
    // SAFETY: the program's own call, with its own arguments.
    match unsafe { raw::syscall(number, args) } {
        Ok(value) => value,
        Err(errno) => {
            set_errno(errno.raw_os_error());
            usize::MAX
        }
    }
}

/// `mmap`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    if let Some(block) = served::map(&Mapping { addr: addr.cast(), len, prot, flags }) {
        return block.cast();
    }
    let args = [addr as usize, len, prot as usize, flags as usize, file as usize, offset as usize];
    kernel(libc::SYS_mmap, args) as *mut c_void
}

/// `mmap64`: the same on this architecture.
///
/// # Safety
/// As for `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { mmap(addr, len, prot, flags, file, offset) }
}

/// `munmap`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(addr: *mut c_void, len: usize) -> c_int {
    // SAFETY: passed on.
    match unsafe { served::unmap(addr.cast(), len) } {
        Some(Ok(())) => 0,
        Some(Err(errno)) => {
            set_errno(errno);
            -1
        }
        None => kernel(libc::SYS_munmap, [addr as usize, len, 0, 0, 0, 0]) as c_int,
    }
}

/// `mremap`. The last argument is read whether it was passed or not; it is used only where it must have been.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    addr: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    // SAFETY: passed on.
    match unsafe { served::remap(addr.cast(), old, new, flags) } {
        Some(Ok(block)) => block.cast(),
        Some(Err(errno)) => served::fail(errno),
        None => {
            if flags & libc::MREMAP_FIXED != 0 {
                served::note_change(place.cast(), new);
            }
            let to = kernel(libc::SYS_mremap, [addr as usize, old, new, flags as usize, place as usize, 0]);
            if to != usize::MAX {
                served::moved_away(addr.cast(), old, to as *mut u8);
            }
            to as *mut c_void
        }
    }
}

/// `mprotect`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(addr: *mut c_void, len: usize, prot: c_int) -> c_int {
    served::note_change(addr.cast(), len);
    kernel(libc::SYS_mprotect, [addr as usize, len, prot as usize, 0, 0, 0]) as c_int
}

/// `pkey_mprotect`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pkey_mprotect(addr: *mut c_void, len: usize, prot: c_int, key: c_int) -> c_int {
    served::note_change(addr.cast(), len);
    // Key -1 is mprotect, also for kernels that have no keys.
    if key == -1 {
        return kernel(libc::SYS_mprotect, [addr as usize, len, prot as usize, 0, 0, 0]) as c_int;
    }
    kernel(libc::SYS_pkey_mprotect, [addr as usize, len, prot as usize, key as usize, 0, 0]) as c_int
}

/// `madvise`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(addr: *mut c_void, len: usize, advice: c_int) -> c_int {
    served::note_advice(addr.cast(), len, advice);
    kernel(libc::SYS_madvise, [addr as usize, len, advice as usize, 0, 0, 0]) as c_int
}

/// `mlock`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(addr: *const c_void, len: usize) -> c_int {
    served::note_change(addr.cast(), len);
    kernel(libc::SYS_mlock, [addr as usize, len, 0, 0, 0, 0]) as c_int
}

/// `mlock2`.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(addr: *const c_void, len: usize, flags: libc::c_uint) -> c_int {
    served::note_change(addr.cast(), len);
    kernel(libc::SYS_mlock2, [addr as usize, len, flags as usize, 0, 0, 0]) as c_int
}

/// `mlockall`. Everything mapped becomes resident, so what Vellum has mapped ahead is unmapped first.
#[unsafe(no_mangle)]
pub extern "C" fn mlockall(flags: c_int) -> c_int {
    Pages::global().keep_short();
    kernel(libc::SYS_mlockall, [flags as usize, 0, 0, 0, 0, 0]) as c_int
}

const _: () = assert!(size_of::<libc::off_t>() == size_of::<usize>());
