//! Machine-dependent code: access to the thread-local variables of `vellum_gc.h` and to the registers that a
//! call must preserve; and the side of the thread pointer on which static thread-local data lies.
//!
//! Each machine has a file, with the same functions.

#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod machine;

pub(crate) use machine::{IS_DATA_ABOVE, REGISTERS, frames, local, set_local, spill, thread_pointer};

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
compile_error!("vellum-gc reaches its thread's runs on Linux, on x86-64 and aarch64");
