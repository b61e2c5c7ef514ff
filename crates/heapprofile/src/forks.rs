//! The handlers of the profile around `fork`.
//!
//! A fork takes the profile's lock, so that no change is under way. The child begins with an empty profile of
//! its own, since the inherited one is its parent's. If the lock does not come free in time, the child's copy
//! of the state may be half changed; the child then samples nothing.

use super::PROFILE;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use vellum_sys::thread::Patience;

/// The profile's lock during a fork, and the outcome of the fork.
pub(super) struct Forks {
    /// True if this process was forked in the middle of a change, by another thread or in a signal handler.
    pub(super) is_abandoned: AtomicBool,
    pub(super) has_lock: AtomicBool,
}

impl Forks {
    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Relaxed)
    }
}

pub(super) fn prepare() {
    let has_lock = !PROFILE.forks.is_abandoned() && PROFILE.state.raw().try_lock_for(&mut Patience::new());
    PROFILE.forks.has_lock.store(has_lock, Relaxed);
}

pub(super) fn parent() {
    if PROFILE.forks.has_lock.swap(false, Relaxed) {
        PROFILE.state.raw().unlock();
    }
}

pub(super) fn child() {
    if PROFILE.forks.has_lock.swap(false, Relaxed) {
        // SAFETY: `prepare` took the lock in the thread that this one is the copy of.
        unsafe { PROFILE.state.assume_held() }.part.detach();
        PROFILE.state.raw().reset_after_fork();
    } else {
        PROFILE.forks.is_abandoned.store(true, Relaxed);
    }
}
