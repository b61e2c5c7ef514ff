//! `setrlimit` and `prlimit`, for programs that limit their own address space.
//!
//! Vellum maps address space ahead of need. This costs nothing until a program lowers `RLIMIT_AS` or
//! `RLIMIT_DATA`: then this space counts against the limit. Before such a call, Vellum returns the address
//! space that is mapped ahead. From then on it maps only as much as it needs.

use crate::identity;
use core::ffi::c_int;
use vellum_pages::Pages;

fn note(resource: libc::c_uint, new: *const libc::rlimit64) {
    if !new.is_null() && (resource == libc::RLIMIT_AS || resource == libc::RLIMIT_DATA) {
        Pages::global().on_mlockall();
    }
}

fn set(
    pid: libc::pid_t,
    resource: libc::c_uint,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    note(resource, new);
    let args = [pid as usize, resource as usize, new as usize, old as usize, 0, 0];
    // SAFETY: the program makes this call; the exported functions have its conditions.
    unsafe { identity::kernel(libc::SYS_prlimit64, args) as c_int }
}

/// `setrlimit`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit(resource: libc::c_uint, new: *const libc::rlimit64) -> c_int {
    set(0, resource, new, core::ptr::null_mut())
}

/// `setrlimit64`: the same function on 64-bit machines.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit64(resource: libc::c_uint, new: *const libc::rlimit64) -> c_int {
    set(0, resource, new, core::ptr::null_mut())
}

/// `prlimit`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit(
    pid: libc::pid_t,
    resource: libc::c_uint,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    set(pid, resource, new, old)
}

/// `prlimit64`: the same function on 64-bit machines.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit64(
    pid: libc::pid_t,
    resource: libc::c_uint,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    set(pid, resource, new, old)
}

const _: () = assert!(size_of::<libc::rlimit>() == size_of::<libc::rlimit64>());
