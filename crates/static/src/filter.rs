//! Detects programs that are about to restrict their own system calls.
//!
//! A filter (seccomp) may kill the program for a call that it does not list. Before a program sets a filter,
//! the page layer switches to a mode in which mapping memory is its only system call, as in any allocator.
//!
//! Departure from the shared library: only `prctl` is intercepted. A filter set by a direct `syscall` is
//! noticed by the call that the kernel requires before it, `prctl(PR_SET_NO_NEW_PRIVS)`. With `CAP_SYS_ADMIN`
//! a program needs no such call.

use core::ffi::{c_int, c_ulong};
use vellum_pages::Pages;

/// `prctl`. Arguments that were not passed have the registers' values, as in the C library.
///
/// # Safety
/// The conditions of the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    operation: c_int,
    first: c_ulong,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
) -> c_int {
    if matches!(operation, libc::PR_SET_SECCOMP | libc::PR_SET_NO_NEW_PRIVS) {
        Pages::global().no_syscalls();
    }
    // SAFETY: the program's own system call with its unchanged arguments.
    unsafe { libc::syscall(libc::SYS_prctl, operation, first, second, third, fourth) as c_int }
}
