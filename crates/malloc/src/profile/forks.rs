//! The profile and forks.
//!
//! A fork takes the lock, so that it does not come in the midst of a change. The child begins with an empty
//! profile of its own: what it inherited is its parent's. Where the lock does not come free, the child has a
//! state that nobody will ever finish, and samples nothing.

use super::STATE;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use vellum_sys::thread::Patience;

/// Whether the state is given up: the fork that made this process came in the midst of a change to it, by a
/// thread that is not here, or by the one that forked, in a signal handler.
static ABANDONED: AtomicBool = AtomicBool::new(false);
/// Whether the fork under way has the lock.
static HELD: AtomicBool = AtomicBool::new(false);

/// Whether nothing may be sampled in this process, and nothing that was is known any more.
pub(super) fn is_abandoned() -> bool {
    ABANDONED.load(Relaxed)
}

/// Before `fork`, in the parent.
pub(super) fn prepare() {
    let held = !is_abandoned() && STATE.raw().try_lock_for(&mut Patience::new());
    HELD.store(held, Relaxed);
}

/// After `fork`, in the parent.
pub(super) fn parent() {
    if HELD.swap(false, Relaxed) {
        STATE.raw().unlock();
    }
}

/// After `fork`, in the child.
pub(super) fn child() {
    if HELD.swap(false, Relaxed) {
        // SAFETY: the lock is held by the thread that this one is the copy of.
        unsafe { STATE.assume_held() }.part.forget();
        STATE.raw().reset_after_fork();
    } else {
        ABANDONED.store(true, Relaxed);
    }
}
