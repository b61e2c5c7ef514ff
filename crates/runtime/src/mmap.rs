//! `mmap`, `munmap`, `mremap` and the C library's other functions for mappings.
//!
//! Each passes its call to [`vellum_malloc::mmap`], which serves calls about Vellum's memory and makes the
//! system call for all others, as the C library would. Calls by number also end here (`syscall`,
//! [`crate::filter`]).

use core::ffi::{c_int, c_void};
use vellum_malloc::mmap::{self as served, Mapping, Outcome};

/// Converts an outcome to the result of a C function that returns no address.
fn status(outcome: Outcome) -> c_int {
    served::answer(outcome).addr() as c_int
}

/// `mmap`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    let wanted = Mapping { addr: addr.cast(), len, prot, flags, file, offset: offset as usize };
    served::answer(served::map(&wanted)).cast()
}

/// `mmap64`: the same function on 64-bit machines.
///
/// # Safety
/// The conditions of `mmap` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    addr: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: the arguments meet the conditions of `mmap`, by the `# Safety` section.
    unsafe { mmap(addr, len, prot, flags, file, offset) }
}

/// `munmap`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(addr: *mut c_void, len: usize) -> c_int {
    // SAFETY: the range is not used any more, by the `# Safety` section.
    status(unsafe { served::unmap(addr.cast(), len) })
}

/// `mremap`. The last argument is read in every call, but used only with flags that require it.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    addr: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    // SAFETY: the arguments meet the conditions of the system call, by the `# Safety` section.
    served::answer(unsafe { served::remap(addr.cast(), old, new, flags, place.cast()) }).cast()
}

/// `mprotect`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(addr: *mut c_void, len: usize, prot: c_int) -> c_int {
    status(served::change(libc::SYS_mprotect, [addr as usize, len, prot as usize, 0, 0, 0]))
}

/// `pkey_mprotect`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pkey_mprotect(addr: *mut c_void, len: usize, prot: c_int, key: c_int) -> c_int {
    // Key -1 stands for mprotect, even on kernels without keys.
    let number = if key == -1 { libc::SYS_mprotect } else { libc::SYS_pkey_mprotect };
    status(served::change(number, [addr as usize, len, prot as usize, key as usize, 0, 0]))
}

/// `madvise`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(addr: *mut c_void, len: usize, advice: c_int) -> c_int {
    // SAFETY: the arguments meet the conditions of the system call, by the `# Safety` section.
    status(unsafe { served::advise(addr.cast(), len, advice) })
}

/// `posix_madvise`, which returns the error number.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_madvise(addr: *mut c_void, len: usize, advice: c_int) -> c_int {
    // As in the C library: this advice must not discard contents, but the kernel's of that name does.
    if advice == libc::POSIX_MADV_DONTNEED {
        return 0;
    }
    // SAFETY: the range and advice meet the conditions of the system call, by the `# Safety` section.
    unsafe { served::advise(addr.cast(), len, advice) }.err().unwrap_or(0)
}

/// `mlock`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock(addr: *const c_void, len: usize) -> c_int {
    status(served::change(libc::SYS_mlock, [addr as usize, len, 0, 0, 0, 0]))
}

/// `mlock2`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlock2(addr: *const c_void, len: usize, flags: libc::c_uint) -> c_int {
    status(served::change(libc::SYS_mlock2, [addr as usize, len, flags as usize, 0, 0, 0]))
}

/// `mlockall`.
#[unsafe(no_mangle)]
pub extern "C" fn mlockall(flags: c_int) -> c_int {
    status(served::lock_all(flags))
}

/// The calls above, made by number; the arguments are those of `syscall`.
///
/// # Safety
/// The conditions of the system call apply.
pub(crate) unsafe extern "C" fn by_number(
    number: libc::c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    let (addr, last) = (core::ptr::with_exposed_provenance_mut::<u8>(a), [a, b, c, d, 0, 0]);
    // SAFETY: the arguments meet the conditions of the call of this number, by the `# Safety` section.
    let outcome = unsafe {
        match number {
            libc::SYS_mmap => served::map(&Mapping {
                addr,
                len: b,
                prot: c as c_int,
                flags: d as c_int,
                file: e as c_int,
                offset: f,
            }),
            libc::SYS_munmap => served::unmap(addr, b),
            libc::SYS_mremap => {
                served::remap(addr, b, c, d as c_int, core::ptr::with_exposed_provenance_mut(e))
            }
            libc::SYS_madvise => served::advise(addr, b, c as c_int),
            libc::SYS_mlockall => served::lock_all(a as c_int),
            number => served::change(number, last),
        }
    };
    served::answer(outcome).addr() as isize
}

const _: () = assert!(size_of::<libc::off_t>() == size_of::<usize>());
