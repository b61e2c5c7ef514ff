//! The machine: how a thread's heap is reached in two loads, and the few instructions of the fast paths that
//! no compiler makes.
//!
//! One file a machine, each with the same functions. The variables themselves (`vellum_heap`,
//! `vellum_inner_heap`, `vellum_empty_heap`: [`crate::tls`]; `vellum_key`: [`crate::seal`]) are data, the
//! same on every machine.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{
    add_key, count_down, empty_heap, here, holds, inner_heap, key, probe, set_thread_heap,
    set_thread_inner_heap, thread_heap, xor_key,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    add_key, count_down, empty_heap, here, holds, inner_heap, key, probe, set_thread_heap,
    set_thread_inner_heap, thread_heap, xor_key,
};

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
compile_error!("vellum-malloc reaches its thread's heap on Linux, on x86-64 and aarch64");
