//! Signal dispositions and descriptors that this process was started with, read before Rust's runtime changes
//! them.
//!
//! A program under `vellum run` must start as if we were not there. But before `main`, Rust's runtime ignores
//! `SIGPIPE` and opens `/dev/null` on closed standard descriptors. And a caller may have left `SIGCHLD`
//! ignored, which would make waiting impossible, so it is undone here and redone for the child. So a function
//! in `.init_array`, which the loader calls before any of that, records the state.
//!
//! Invariant: written once, before `main`, by the only thread; read-only afterwards.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const PIPE_IGNORED: u32 = 1;
const CHLD_IGNORED: u32 = 2;
/// Bits of the closed standard descriptors 0, 1 and 2.
const CLOSED: [u32; 3] = [4, 8, 16];

static BIRTH: AtomicU32 = AtomicU32::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static RECORD: extern "C" fn() = record;

extern "C" fn record() {
    let ignored = |signal: libc::c_int| {
        // SAFETY: an all-zero sigaction is a valid value to be overwritten.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: only reads the disposition into `action`, which lives across the call.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
        asked == 0 && action.sa_sigaction == libc::SIG_IGN
    };
    let mut bits = 0;
    if ignored(libc::SIGPIPE) {
        bits |= PIPE_IGNORED;
    }
    if ignored(libc::SIGCHLD) {
        bits |= CHLD_IGNORED;
    }
    for (fd, bit) in CLOSED.iter().enumerate() {
        // SAFETY: F_GETFD only looks at the descriptor table.
        if unsafe { libc::fcntl(fd as libc::c_int, libc::F_GETFD) } < 0 {
            bits |= bit;
        }
    }
    BIRTH.store(bits, Relaxed);
}

/// Makes waiting for children possible here, whatever was inherited.
pub fn make_children_waitable() {
    // SAFETY: setting a default disposition installs no code.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Gives a just forked child the state that we were started with. Async-signal-safe: it is called between
/// fork and exec.
pub(crate) fn restore_in_child() {
    let bits = BIRTH.load(Relaxed);
    let disposition = |bit| if bits & bit != 0 { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: both dispositions install no code; signal and close are async-signal-safe.
    unsafe {
        libc::signal(libc::SIGPIPE, disposition(PIPE_IGNORED));
        libc::signal(libc::SIGCHLD, disposition(CHLD_IGNORED));
    }
}

/// Whether standard descriptor `fd` (0, 1 or 2) was closed when we were started. Async-signal-safe.
pub(crate) fn was_closed(fd: usize) -> bool {
    BIRTH.load(Relaxed) & CLOSED[fd] != 0
}
