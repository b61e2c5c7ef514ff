//! The machine: how it enters the kernel, where it keeps the thread pointer, how it is asked to fetch memory.
//!
//! One file a machine, each with the same functions. All else of this crate is the same on both: a system
//! call is made by its number in `libc`, and calls that one machine lacks are not made.

#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod machine;

pub use machine::prefetch;
pub(crate) use machine::{call, clone, exit, prepare_control, thread_pointer};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("Vellum runs on x86-64 and aarch64");

/// What a new thread begins with.
pub(crate) struct Birth {
    pub(crate) flags: libc::c_int,
    /// Where its stack begins, downwards.
    pub(crate) stack: *mut u8,
    /// Receives its id, and 0 when it has ended.
    pub(crate) id: *mut u32,
    /// Its thread pointer.
    pub(crate) control: *mut usize,
    /// What it runs …
    pub(crate) entry: extern "C" fn(usize) -> !,
    /// … with this.
    pub(crate) argument: usize,
}
