//! Machine-dependent code: access to the thread's heap in two loads, and the few instructions of the fast
//! paths that no compiler generates.
//!
//! Each machine has a file with the same functions. The functions access these variables, which are the same
//! on every machine: `vellum_heap`, `vellum_inner_heap` and `vellum_empty_heap` ([`crate::tls`]),
//! `vellum_key` ([`crate::seal`]).

#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod machine;

use core::ffi::c_void;
pub use machine::here;
pub(crate) use machine::{add_key, count_down, holds, xor_key};

/// What the calling thread's `vellum_heap` holds.
#[inline(always)]
pub(crate) fn thread_heap() -> *const c_void {
    machine::read_variable!("vellum_heap")
}

/// Writes the calling thread's `vellum_heap`. Safety: it always holds a heap.
#[inline(always)]
pub(crate) unsafe fn set_thread_heap(heap: *const c_void) {
    machine::write_variable!("vellum_heap", heap);
}

/// What the calling thread's `vellum_inner_heap` holds.
#[inline(always)]
pub(crate) fn inner_heap() -> *const c_void {
    machine::read_variable!("vellum_inner_heap")
}

/// Writes the calling thread's `vellum_inner_heap`. Safety: it always holds a heap, or null.
#[inline(always)]
pub(crate) unsafe fn set_thread_inner_heap(heap: *const c_void) {
    machine::write_variable!("vellum_inner_heap", heap);
}

/// The address of `vellum_empty_heap`.
#[inline(always)]
pub(crate) fn empty_heap() -> *const c_void {
    machine::address!("vellum_empty_heap")
}

/// The address of `vellum_key`.
#[inline(always)]
pub(crate) fn key() -> *const c_void {
    machine::address!("vellum_key")
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
compile_error!("vellum-malloc reaches its thread's heap on Linux, on x86-64 and aarch64");
