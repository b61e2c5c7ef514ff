//! Wrappers of the system calls that Vellum's memory management makes.
//!
//! The other crates work with pages, moves and limits; only this one has the kernel's names and errors. Three
//! rules hold for everything in this crate:
//!
//! * **It never allocates** and, unless documented, touches no thread-local storage. It runs inside `malloc`,
//!   in a forked child, and on threads that the C library did not start.
//! * **Each facility that a kernel may lack or refuse has a [`Caps`] flag.** The first refused call clears
//!   the flag for the life of the process, and the caller takes its documented fallback. Users may mask flags
//!   (`VELLUM_MASK`), so that the paths of an older kernel are tested on a newer one.
//! * **Memory limits are read in one place**, [`limits`]: cgroup v1 and v2, the machine, `RLIMIT_AS`.

#![cfg_attr(not(test), no_std)]

/// Whose atomics the state machines use: the tests explore them over others.
mod atomics {
    pub(crate) use core::sync::atomic::{AtomicU32, Ordering};
}
mod addr;
mod arch;
pub mod attempt;
pub mod barrier;
pub mod bpf;
pub mod cachestat;
pub mod caps;
pub mod checks;
pub mod clock;
pub mod credentials;
pub mod environment;
pub mod guard;
pub mod host;
#[cfg(any(test, feature = "inject"))]
pub mod inject;
pub mod lifecycle;
pub mod limits;
pub mod line;
pub mod loader;
pub mod lock;
pub mod map;
pub mod mapped;
pub mod owner;
pub mod pagemap;
pub mod pressure;
pub mod raw;
#[doc(hidden)]
pub mod readers;
pub mod remote;
pub mod segment;
pub mod segv;
pub mod stack;
mod stderr;
pub mod text;
pub mod thread;
pub mod track;
pub mod transfer;
mod uffd;
pub mod usage;

pub use addr::{Addr, PageCount, Span};
pub use arch::prefetch;
pub use caps::Caps;
pub use line::Line;
pub use lock::Lock;

/// Bytes of a base page.
pub const PAGE: usize = 4096;
/// Bytes of a huge page (one page-middle-directory entry).
pub const HUGE: usize = 2 << 20;

/// `bytes` rounded up to a multiple of `to`, a power of two; saturates.
#[inline]
pub const fn round_up(bytes: usize, to: usize) -> usize {
    bytes.saturating_add(to - 1) & !(to - 1)
}

/// `bytes` rounded down to a multiple of `to`, a power of two.
#[inline]
pub const fn round_down(bytes: usize, to: usize) -> usize {
    bytes & !(to - 1)
}
