//! The gate: a thread that delays page faults on the store while nearly all frames are in use. (Frames are
//! the pages of the store that may be in memory.)
//!
//! A program can fill memory faster than a disk writes, so an evicting thread alone cannot hold the bound.
//! While a hole is punched in a file, the kernel delays every fault that brings a page of the file into
//! memory (by the file's `invalidate_lock`). While the gate is shut, this thread punches holes without a
//! pause, in a page of the store that no object has. Pages that are in memory stay usable.

use crate::pager::{A_WHILE_NS, Pager};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::io::Errno;
use vellum_sys::credentials::Change;
use vellum_sys::thread;

/// The state that the gate must be in. Only the evicting thread sets it.
pub(crate) struct Gate {
    state: AtomicU32,
    /// Changes of rights requested, and those followed.
    asked: AtomicU32,
    followed: AtomicU32,
    change: UnsafeCell<Option<Change>>,
}

// SAFETY: `change` is written by the evicting thread if `followed` is `asked`, and read by the gate if not.
unsafe impl Sync for Gate {}

/// The longest sleep of the gate: a wake between its read of the state and its sleep takes effect then.
const WAIT_NS: u64 = 10_000_000;

const OPEN: u32 = 0;
const SHUT: u32 = 1;
const END: u32 = 2;

impl Gate {
    pub(crate) const fn open() -> Gate {
        Gate {
            state: AtomicU32::new(OPEN),
            asked: AtomicU32::new(0),
            followed: AtomicU32::new(0),
            change: UnsafeCell::new(None),
        }
    }

    fn set(&self, state: u32) {
        if self.state.swap(state, Ordering::AcqRel) != state {
            thread::wake_all(&self.state);
        }
    }
}

/// Starts the gate's thread, from the one whose descriptors it is to have.
pub(super) fn launch(pager: &'static Pager) -> Result<(), Errno> {
    let stack = pager.stack(1).ptr();
    let argument = core::ptr::from_ref(pager) as usize;
    // SAFETY: the stack is zeroed, and stays until the thread has ended; `run` uses no thread-local storage.
    unsafe { thread::start(run, argument, stack, &pager.threads[1]) }
}

pub(super) fn set(pager: &Pager, is_shut: bool) {
    pager.gate.set(if is_shut { SHUT } else { OPEN });
}

pub(super) fn is_shut(pager: &Pager) -> bool {
    pager.gate.state.load(Ordering::Relaxed) == SHUT
}

pub(super) fn end(pager: &Pager) {
    pager.gate.set(END);
}

/// Has the gate's thread make the call that the program has made, and waits until it has.
pub(super) fn follow(pager: &Pager, change: Change) {
    let gate = &pager.gate;
    // SAFETY: the last change was followed, so that the gate does not read.
    unsafe { *gate.change.get() = Some(change) };
    let asked = gate.asked.fetch_add(1, Ordering::Release) + 1;
    thread::wake_all(&gate.state);
    loop {
        match gate.followed.load(Ordering::Acquire) {
            followed if followed == asked => return,
            seen => thread::wait(&gate.followed, seen, A_WHILE_NS),
        }
    }
}

extern "C" fn run(pager: usize) -> ! {
    // SAFETY: `launch` passes a pager that lives for ever.
    let pager = unsafe { &*(pager as *const Pager) };
    let gate = &pager.gate;
    loop {
        let state = gate.state.load(Ordering::Acquire);
        let asked = gate.asked.load(Ordering::Acquire);
        if gate.followed.load(Ordering::Relaxed) != asked {
            // SAFETY: written before `asked`, and not again before `followed` says so.
            if let Some(change) = unsafe { *gate.change.get() } {
                // As for the evicting thread.
                let _ = change.apply();
            }
            gate.followed.store(asked, Ordering::Release);
            thread::wake_all(&gate.followed);
            continue;
        }
        match state {
            // A refusal leaves faults as they are: the bound is looser then.
            SHUT => drop(pager.store().punch()),
            END => thread::exit(),
            open => thread::wait(&gate.state, open, WAIT_NS),
        }
    }
}
