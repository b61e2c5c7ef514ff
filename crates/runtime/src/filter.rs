//! Programs that forbid themselves system calls.
//!
//! A sandboxed program installs a filter that kills it for a call it has not listed, and it has not listed
//! what Vellum's memory may want to do behind its back. From the moment before the filter is set, the page
//! layer makes no call but the one that any allocator makes: it maps memory, when it needs more and, over
//! what it has, to give frames back. The collector tracks no writes any more.
//!
//! Filters are set by `prctl` or by `syscall`, so both pass through here, and with them what else these do
//! that background threads must follow (`identity`). `syscall` must leave every register as the C library's
//! does and may not have a frame of its own (a call may return twice), hence the assembly. A call that is
//! checked does not return twice: it is left to ordinary functions, by a jump. Calls about mappings go where
//! those made by name go ([`crate::mmap`]).
//!
//! The pager's threads live without the filter: they would not get far under it, and the program's memory
//! neither. A filter for *all* threads (`SECCOMP_FILTER_FLAG_TSYNC`) is set for the calling one alone if the
//! program has no other, which is the same to the program. If it has, one line says what the filter must
//! allow.

use crate::{arch, attributes, identity};
use core::ffi::{c_int, c_long};
use vellum_malloc::{Line, paged};
use vellum_pages::Pages;
use vellum_sys::{Caps, caps, owner, thread};

/// The operations of `seccomp` that set a filter, of which the second takes flags; others only ask.
const SET_MODES: core::ops::RangeInclusive<usize> = 0..=1;
const SET_MODE_FILTER: usize = 1;

/// Called before a filter is set.
fn before_filter() {
    Pages::global().no_syscalls();
    caps::drop(Caps::HELPER);
    if owner::is_here() {
        vellum_gc::forgo_tracking();
    }
    if !vellum_gc::are_helpers_absent() && owner::is_here() && vellum_gc::bar_helpers() {
        vellum_gc::unbar_helpers();
    }
}

/// The flags with which a filter can be set here, of those that the program has asked for.
fn settled(flags: usize) -> usize {
    const FOR_ALL: usize = libc::SECCOMP_FILTER_FLAG_TSYNC as usize;
    if flags & FOR_ALL == 0 || !paged::is_paging() {
        return flags;
    }
    if thread::is_only_one() {
        return flags & !FOR_ALL;
    }
    Line::new()
        .text("vellum: a system call filter for all threads also binds the pager: allow futex, madvise, cachestat, sync_file_range, fadvise64, fallocate\n")
        .write();
    flags
}

/// `prctl`. Arguments that were not passed are whatever the registers hold, as in the C library's.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    if option == libc::PR_SET_VMA {
        attributes::named(a, b, c);
    }
    if option == libc::PR_SET_SECCOMP {
        before_filter();
    }
    // SAFETY: the program's own call, with its own arguments.
    unsafe { identity::prctl([option as usize, a, b, c, d, 0]) as c_int }
}

/// What `syscall` leaves to Rust.
///
/// # Safety
/// As for the system call.
unsafe extern "C" fn watched(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    let mut args = [a, b, c, d, e, f];
    match number {
        libc::SYS_prctl => {
            if a as c_int == libc::PR_SET_VMA {
                attributes::named(b, c, d);
            }
            if a as c_int == libc::PR_SET_SECCOMP {
                before_filter();
            }
            // SAFETY: the program's own call, with its own arguments.
            unsafe { identity::prctl(args) }
        }
        libc::SYS_seccomp => {
            if SET_MODES.contains(&a) {
                before_filter();
            }
            if a == SET_MODE_FILTER {
                args[1] = settled(b);
            }
            // SAFETY: as above.
            unsafe { identity::kernel(number, args) }
        }
        // SAFETY: the program made the call of this number with these arguments.
        _ if attributes::concerns(number) => unsafe { attributes::by_number(number, args) },
        // SAFETY: as above.
        _ => unsafe { identity::by_number(number, a, b, c, d, e, f) },
    }
}

/// `syscall`.
///
/// # Safety
/// As for the system call.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    arch::system_call!(crate::mmap::by_number, watched, errno_location)
}

extern "C" fn errno_location() -> *mut c_int {
    // SAFETY: the C library's own function; it has no conditions.
    unsafe { libc::__errno_location() }
}
