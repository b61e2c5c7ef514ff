//! The mutex of the allocation lock, and the fork handlers. They hold this mutex and the lock of the thread
//! list during a fork, so the child gets both in a state that it can release.

use crate::records;
use core::cell::UnsafeCell;

struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is there for several threads.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(UnsafeCell::new(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP));

pub(crate) fn take() {
    // SAFETY: a mutex initialised statically.
    unsafe { libc::pthread_mutex_lock(LOCK.0.get()) };
}

pub(crate) fn put() {
    // SAFETY: the caller has taken it.
    unsafe { libc::pthread_mutex_unlock(LOCK.0.get()) };
}

extern "C" fn before_fork() {
    take();
    records::lock();
}

extern "C" fn after_fork_in_parent() {
    records::unlock();
    put();
}

extern "C" fn after_fork_in_child() {
    records::unlock();
    // The holder is this thread, whose number has changed.
    // SAFETY: there is no other thread that could use it.
    unsafe { LOCK.0.get().write(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP) };
}

/// Has forks made by the holder. Called once.
pub(crate) fn prepare() {
    // SAFETY: functions that live as long as the library, which is never unloaded with a heap in use.
    unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
    }
}
