//! What libgc's programs know as the allocation lock: who holds it is alone with it, and nothing is collected meanwhile.
//!
//! Programs take it to make a pointer out of one in disguise, which a collection might just be about to clear. The heap's own lock is not
//! it, so that the holder may call anything, and may take it again.
//!
//! A fork is made by its holder, who holds the list of threads, too: the child's copies are free.

use crate::{records, start, vel};
use core::cell::UnsafeCell;
use core::ffi::c_void;

struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is there for several threads.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(UnsafeCell::new(libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP));

fn take() {
    // SAFETY: a mutex initialised statically.
    unsafe { libc::pthread_mutex_lock(LOCK.0.get()) };
}

fn put() {
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

/// Takes the lock.
#[unsafe(no_mangle)]
pub extern "C" fn GC_alloc_lock() {
    start::ensure();
    take();
    // SAFETY: holds nest, and this one is undone.
    unsafe { vel::vel_gc_hold() };
}

/// Undoes [`GC_alloc_lock`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_alloc_unlock() {
    // SAFETY: undoes the hold of `GC_alloc_lock`.
    unsafe { vel::vel_gc_let() };
    put();
}

/// Calls `function(argument)` with the lock held.
#[unsafe(no_mangle)]
pub extern "C" fn GC_call_with_alloc_lock(function: vel::Body, argument: *mut c_void) -> *mut c_void {
    GC_alloc_lock();
    // SAFETY: the program's own function and argument.
    let result = unsafe { function(argument) };
    GC_alloc_unlock();
    result
}
