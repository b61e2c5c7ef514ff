//! The mutex of the allocation lock, and the fork handlers. During a fork the handlers hold this mutex and
//! the lock of the thread list, so the child can release its copies.

use crate::records;
use core::cell::UnsafeCell;

struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: pthread functions may use a mutex from any thread.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(UnsafeCell::new(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP));

pub(crate) fn take() {
    // SAFETY: the mutex is initialised statically and lives for ever.
    unsafe { libc::pthread_mutex_lock(LOCK.0.get()) };
}

pub(crate) fn put() {
    // SAFETY: the caller has locked the mutex.
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
    // The child's thread holds the lock, but has another number than its holder.
    // SAFETY: the child has no other thread.
    unsafe { LOCK.0.get().write(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP) };
}

/// Registers the fork handlers. Called once.
pub(crate) fn prepare() {
    // SAFETY: the functions exist as long as the library, which is never unloaded (`nodelete`).
    unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
    }
}
