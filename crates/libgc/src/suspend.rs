//! `javaxfc.h`: the program suspends single threads.
//!
//! A list here holds the suspended threads by their numbers (`pthread_t`), also those that have ended but
//! were not joined. Joining a thread does not remove its entry, because the number may already belong to
//! another, suspended thread.

use crate::{lock, start, vel};
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A suspended thread. Entries are never freed, but are used again.
struct Entry {
    thread: libc::pthread_t,
    next: *mut Entry,
}

/// The list, accessed under the allocation lock. A thread of 0 marks a free entry.
static FIRST: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// The entry of `thread`, or null. The caller holds the lock.
fn entry(thread: libc::pthread_t) -> *mut Entry {
    let mut this = FIRST.load(Relaxed);
    // SAFETY: entries are never freed, and the caller holds the lock.
    while !this.is_null() && unsafe { (*this).thread } != thread {
        // SAFETY: entries are never freed, and the caller holds the lock.
        this = unsafe { (*this).next };
    }
    this
}

fn locked<R>(work: impl FnOnce() -> R) -> R {
    start::ensure();
    lock::GC_alloc_lock();
    let result = work();
    lock::GC_alloc_unlock();
    result
}

/// Records that `thread` is suspended; false if it already was.
fn note(thread: libc::pthread_t) -> bool {
    if !entry(thread).is_null() {
        return false;
    }
    let mut place = entry(0);
    if place.is_null() {
        // SAFETY: malloc has no preconditions.
        place = unsafe { libc::malloc(size_of::<Entry>()) }.cast();
        if place.is_null() {
            crate::abort::give_up(c"libgc: GC_suspend_thread: out of memory");
        }
        // SAFETY: the memory is new and has room for an entry.
        unsafe { place.write(Entry { thread: 0, next: FIRST.load(Relaxed) }) };
        FIRST.store(place, Relaxed);
    }
    // SAFETY: entries are never freed, and the lock is held.
    unsafe { (*place).thread = thread };
    true
}

/// Records that `thread` is no longer suspended. The caller holds the lock.
fn forget(thread: libc::pthread_t) {
    let this = entry(thread);
    if !this.is_null() {
        // SAFETY: entries are never freed, and the lock is held.
        unsafe { (*this).thread = 0 };
    }
}

/// Stops a thread until [`GC_resume_thread`], at once or when it returns from a blocking call. A suspended
/// thread stays suspended.
#[unsafe(no_mangle)]
pub extern "C" fn GC_suspend_thread(thread: libc::pthread_t) {
    // SAFETY: pthread_self has no preconditions.
    let is_caller = unsafe { libc::pthread_self() } == thread;
    // SAFETY: the function accepts any number; an unknown thread has ended or not begun.
    let stop = || unsafe { vel::vel_gc_suspend(thread) };
    // The lock is held, because a thread that is stopped while holding it would keep it. A caller that
    // suspends itself must release it first.
    let is_new = locked(|| {
        let is_new = note(thread);
        if is_new && !is_caller {
            stop();
        }
        is_new
    });
    if is_new && is_caller {
        stop();
    }
}

/// Undoes [`GC_suspend_thread`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_resume_thread(thread: libc::pthread_t) {
    locked(|| {
        forget(thread);
        // SAFETY: the function accepts any number. A thread may be resumed before it has suspended itself.
        unsafe { vel::vel_gc_resume(thread) };
    });
}

/// Returns 1 if a thread is suspended.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_thread_suspended(thread: libc::pthread_t) -> c_int {
    c_int::from(locked(|| !entry(thread).is_null()))
}
