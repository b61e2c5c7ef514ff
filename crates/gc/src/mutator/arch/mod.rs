//! The machine: how the thread's variables of `vellum_gc.h` are reached, which registers a call must
//! preserve, and on which side of the thread pointer static thread-local data lies.
//!
//! One file a machine, each with the same functions.

#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod machine;

pub(crate) use machine::{IS_DATA_ABOVE, REGISTERS, frames, local, set_local, spill, thread_pointer};

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
compile_error!("vellum-gc reaches its thread's runs on Linux, on x86-64 and aarch64");
