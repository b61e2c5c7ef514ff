//! A check whether the calling process owns Vellum's threads, or only shares or copied their state.
//!
//! A child of `vfork`, or of `clone` with `CLONE_VM` alone, runs in its parent's memory and finds its
//! parent's state there. But it is another process: threads that it starts end with it, and its parent's
//! threads do not follow it when it changes its user. Such a child neither starts nor ends threads. Neither
//! does a child forked by a system call: it has a copy of the state without the threads.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

static OWNER: AtomicU32 = AtomicU32::new(0);

fn process() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
}

/// Makes the calling process the owner: when it begins, or after it has been forked.
pub fn claim() {
    OWNER.store(process(), Relaxed);
}

/// Returns whether the calling process is the owner. The first caller becomes it.
pub fn is_here() -> bool {
    let here = process();
    match OWNER.compare_exchange(0, here, Relaxed, Relaxed) {
        Ok(_) => true,
        Err(owner) => owner == here,
    }
}
