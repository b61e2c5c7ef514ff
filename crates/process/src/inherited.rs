//! Records the signal dispositions and descriptors that this process was started with, before Rust's runtime
//! changes them.
//!
//! A program under `vellum run` starts in the state that this process was started in. A function in
//! `.init_array` records that state, as the loader calls it before Rust's runtime. Three changes in this
//! process are undone for the child:
//! - Before `main`, Rust's runtime ignores `SIGPIPE` and opens `/dev/null` on closed standard descriptors.
//! - If `SIGCHLD` was ignored, it is set to its default; otherwise waiting would be impossible.
//! - `SIGXFSZ` is ignored, so that a file beyond the limit `RLIMIT_FSIZE` is an error and does not end the
//!   process.
//!
//! Invariant: the record is written once, before `main`, by the only thread, and is read-only afterwards.

use rustix::process::{Resource, getrlimit};
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Signals whose disposition is recorded, at the bits from 0 on.
const RECORDED: [libc::c_int; 3] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ];
const STACK_BYTES: usize = 4 << 20;
/// Bits of the closed standard descriptors 0, 1 and 2.
const CLOSED: [u32; 3] = [8, 16, 32];

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
    for (bit, signal) in RECORDED.into_iter().enumerate() {
        bits |= u32::from(ignored(signal)) << bit;
    }
    for (fd, bit) in CLOSED.iter().enumerate() {
        // SAFETY: F_GETFD only looks at the descriptor table.
        if unsafe { libc::fcntl(fd as libc::c_int, libc::F_GETFD) } < 0 {
            bits |= bit;
        }
    }
    BIRTH.store(bits, Relaxed);
}

/// Makes waiting for children possible here, whatever was inherited, and files beyond a limit an error.
pub fn make_children_waitable() {
    // SAFETY: neither disposition installs code.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// `error`, with the limit and the cure if a file would be larger than the caller allows.
pub fn named(error: io::Error) -> io::Error {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if error.kind() == io::ErrorKind::FileTooLarge => io::Error::other(format!(
            "files are limited to {limit} bytes here; raise the limit, as by ulimit -f unlimited"
        )),
        _ => error,
    }
}

/// Gives a just forked child the state that we were started with. Async-signal-safe: it is called between
/// fork and exec.
pub(crate) fn restore_in_child() {
    let bits = BIRTH.load(Relaxed);
    for (bit, signal) in RECORDED.into_iter().enumerate() {
        // SAFETY: neither disposition installs code; signal is async-signal-safe.
        unsafe { libc::signal(signal, if bits & 1 << bit != 0 { libc::SIG_IGN } else { libc::SIG_DFL }) };
    }
}

/// True if standard descriptor `fd` (0, 1 or 2) was closed when we were started. Async-signal-safe.
pub(crate) fn was_closed(fd: usize) -> bool {
    BIRTH.load(Relaxed) & CLOSED[fd] != 0
}

/// Runs `work` on a stack of `STACK_BYTES` where the caller's limit on stacks (`ulimit -s`) leaves this
/// process less. A thread would do as well, but some of our work needs a process with one thread.
#[cfg(target_env = "gnu")]
pub fn on_enough_stack(work: extern "C" fn()) {
    if getrlimit(Resource::Stack).current.is_none_or(|bytes| bytes >= STACK_BYTES as u64) {
        return work();
    }
    let mut stack: Vec<MaybeUninit<u8>> = Vec::with_capacity(STACK_BYTES);
    let mut contexts = [MaybeUninit::<libc::ucontext_t>::zeroed(); 2];
    let [here, there] = contexts.each_mut().map(MaybeUninit::as_mut_ptr);
    // SAFETY: both contexts and the stack live until `work` has returned here, and `getcontext` fills `there`
    // before it is changed.
    unsafe {
        libc::getcontext(there);
        (*there).uc_stack.ss_sp = stack.as_mut_ptr().cast();
        (*there).uc_stack.ss_size = STACK_BYTES;
        (*there).uc_link = here;
        libc::makecontext(there, work, 0);
        libc::swapcontext(here, there);
    }
}
