//! The things that belong to the process and not to a heap. All statics of the crate are here, but for the
//! collector's instance (`instance`).
//!
//! | file | what it is |
//! | --- | --- |
//! | `arch` | what depends on the machine |
//! | `local`, `frames` | the thread-local variables of the header, which are exported |
//! | `cards` | the cards of the header, which are exported |
//! | `hooks`, `visitor` | the program's functions that the collector calls |
//! | `signal` | the signal that stops threads |
//! | `thread_key` | the key by which the C library reports that a thread ends |
//! | `loader` | the loader's lock |
//! | `ground` | whether the process has a pager |
//! | `helpers`, `work_packets` | the crew of markers |

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
