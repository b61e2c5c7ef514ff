//! The code that depends on the processor architecture: system calls, the thread pointer, prefetching.
//!
//! Each architecture has a file with the same functions. The rest of this crate is the same on both: it takes
//! system-call numbers from `libc`, and uses only calls that both architectures have.

#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod machine;

pub use machine::prefetch;
pub(crate) use machine::{call, clone, exit, prepare_control, thread_pointer};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("Vellum runs on x86-64 and aarch64");

/// The start state of a new thread.
pub(crate) struct Birth {
    pub(crate) flags: libc::c_int,
    /// The high end of its stack.
    pub(crate) stack: *mut u8,
    /// Receives its id, and 0 when it has ended.
    pub(crate) id: *mut u32,
    pub(crate) control: *mut usize,
    /// Its function …
    pub(crate) entry: extern "C" fn(usize) -> !,
    /// … with this.
    pub(crate) argument: usize,
}
