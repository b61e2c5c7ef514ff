//! The machine: how the thread's variables of `vellum_gc.h` are reached, which registers a call must
//! preserve, and on which side of the thread pointer static thread-local data lies.
//!
//! One file a machine, each with the same functions.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{IS_DATA_ABOVE, REGISTERS, frames, local, set_local, spill, thread_pointer};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{IS_DATA_ABOVE, REGISTERS, frames, local, set_local, spill, thread_pointer};

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
compile_error!("vellum-gc reaches its thread's runs on Linux, on x86-64 and aarch64");
