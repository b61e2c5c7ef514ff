//! State that belongs to the process and not to a heap. All statics of the crate are here, except the
//! collector's instance (`instance`).
//!
//! | file | contents |
//! | --- | --- |
//! | `arch` | machine-dependent code |
//! | `local`, `frames` | the exported thread-local variables of `vellum_gc.h` |
//! | `cards` | the exported cards of `vellum_gc.h`: one byte for each page, set at writes |
//! | `hooks`, `visitor` | the program's functions that the collector calls |
//! | `signal` | the signal that stops threads |
//! | `thread_key` | the key by which the C library reports that a thread ends |
//! | `loader` | the loader's lock |
//! | `ground` | whether the process has a pager |
//! | `helpers`, `work_packets` | the threads that mark together |

pub(crate) mod arch;
pub(crate) mod cards;
pub(crate) mod frames;
pub(crate) mod ground;
pub(crate) mod helpers;
pub(crate) mod hooks;
pub(crate) mod loader;
pub(crate) mod local;
pub(crate) mod signal;
pub(crate) mod thread_key;
pub(crate) mod visitor;
pub(crate) mod work_packets;

/// The calling thread's number.
pub(crate) fn tid() -> u32 {
    // SAFETY: the call takes no arguments and cannot fail.
    (unsafe { libc::syscall(libc::SYS_gettid) }) as u32
}
