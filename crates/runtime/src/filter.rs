//! `prctl` and `syscall`, with which programs set filters for their system calls (seccomp).
//!
//! A sandboxed program is killed for system calls that its filter does not list, such as Vellum's. Just
//! before a filter is set, the page layer therefore stops making calls other than `mmap`, which any
//! allocator makes. It maps new memory when it needs more, and maps over memory to return frames. The
//! collector stops tracking writes.
//!
//! Both functions also handle calls that Vellum's background threads must make as well (`identity`).
//! `syscall` is assembly: it must preserve every register like the C library's, and it must have no stack
//! frame, because a call may return twice. A call that Vellum checks never returns twice, so the assembly
//! jumps to an ordinary function for it. Calls about mappings jump to the functions for those
//! ([`crate::mmap`]).
//!
//! The pager's threads run without the filter, which would stop the pager and thus the program. In a program
//! with one thread, a filter for *all* threads (`SECCOMP_FILTER_FLAG_TSYNC`) is therefore set for that thread
//! alone, which has the same effect. With more threads the pager is filtered as well, and a message lists the
//! calls that the filter must allow.

use crate::{arch, attributes, identity};
use core::ffi::{c_int, c_long};
use vellum_malloc::{Line, paged};
use vellum_pages::Pages;
use vellum_sys::{Caps, caps, owner, thread};

/// The operations of `seccomp` that set a filter. The second has flags; other operations only query.
const SET_MODES: core::ops::RangeInclusive<usize> = 0..=1;
const SET_MODE_FILTER: usize = 1;

/// Prepares the page layer and the collector for a filter.
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

/// The requested flags that can be used here.
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

/// `prctl`. Arguments that were not passed are register contents, as in the C library's function.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    if option == libc::PR_SET_VMA {
        attributes::named(a, b, c);
    }
    if option == libc::PR_SET_SECCOMP {
        before_filter();
    }
    // SAFETY: the program makes this call with these arguments, by the `# Safety` section.
    unsafe { identity::prctl([option as usize, a, b, c, d, 0]) as c_int }
}

/// Handles the calls that the assembly of `syscall` checks.
///
/// # Safety
/// The conditions of the system call apply.
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
            // SAFETY: the program makes this call with these arguments, by the `# Safety` section.
            unsafe { identity::prctl(args) }
        }
        libc::SYS_seccomp => {
            if SET_MODES.contains(&a) {
                before_filter();
            }
            if a == SET_MODE_FILTER {
                args[1] = settled(b);
            }
            // SAFETY: the program makes this call; only a flag was removed.
            unsafe { identity::kernel(number, args) }
        }
        // SAFETY: the program makes the call of this number with these arguments.
        _ if attributes::concerns(number) => unsafe { attributes::by_number(number, args) },
        // SAFETY: the program makes the call of this number with these arguments.
        _ => unsafe { identity::by_number(number, a, b, c, d, e, f) },
    }
}

/// `syscall`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    arch::system_call!(crate::mmap::by_number, watched, errno_location)
}

extern "C" fn errno_location() -> *mut c_int {
    // SAFETY: the function has no preconditions.
    unsafe { libc::__errno_location() }
}
