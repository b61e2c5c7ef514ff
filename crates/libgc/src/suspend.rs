//! `javaxfc.h`: the program suspends single threads.
//!
//! A list here holds the suspended threads by their numbers: a thread that has ended but was not joined still
//! counts. Joining a thread does not remove its entry, because its number may already belong to another
//! thread, which is suspended.

use crate::{lock, start, vel};
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A suspended thread. Entries are never given back, but used again.
struct Entry {
    thread: libc::pthread_t,
    next: *mut Entry,
}

/// The list, changed and read under the allocation lock. A thread of 0 is none.
static FIRST: AtomicPtr<Entry> = AtomicPtr::new(null_mut());

/// The entry of `thread`; null if it has none. The caller holds the lock.
fn entry(thread: libc::pthread_t) -> *mut Entry {
    let mut this = FIRST.load(Relaxed);
    // SAFETY: entries are never given back, and changed by who holds the lock.
    while !this.is_null() && unsafe { (*this).thread } != thread {
        // SAFETY: as above.
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

/// Notes that `thread` is suspended; false if it was.
fn note(thread: libc::pthread_t) -> bool {
    if !entry(thread).is_null() {
        return false;
    }
    let mut place = entry(0);
    if place.is_null() {
        // SAFETY: plain call.
        place = unsafe { libc::malloc(size_of::<Entry>()) }.cast();
        if place.is_null() {
            crate::abort::give_up(c"libgc: GC_suspend_thread: out of memory");
        }
        // SAFETY: that many bytes are there.
        unsafe { place.write(Entry { thread: 0, next: FIRST.load(Relaxed) }) };
        FIRST.store(place, Relaxed);
    }
    // SAFETY: an entry, changed under the lock.
    unsafe { (*place).thread = thread };
    true
}

/// Notes that `thread` is not suspended any more. The caller holds the lock.
fn forget(thread: libc::pthread_t) {
    let this = entry(thread);
    if !this.is_null() {
        // SAFETY: an entry, changed under the lock.
        unsafe { (*this).thread = 0 };
    }
}

/// Stops a thread until [`GC_resume_thread`], at once or when it comes out of a blocking call. One that is
/// suspended already stays so.
#[unsafe(no_mangle)]
pub extern "C" fn GC_suspend_thread(thread: libc::pthread_t) {
    // SAFETY: plain call.
    let is_caller = unsafe { libc::pthread_self() } == thread;
    // SAFETY: any number may be named; a thread that the collector does not know has ended, or has not begun.
    let stop = || unsafe { vel::vel_gc_suspend(thread) };
    // With the lock held, as a thread that is stopped while it holds the lock would keep it; but a caller
    // that suspends itself would, too.
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
        // SAFETY: as above. It may have been forgotten while it was about to suspend itself.
        unsafe { vel::vel_gc_resume(thread) };
    });
}

/// Whether a thread is suspended.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_thread_suspended(thread: libc::pthread_t) -> c_int {
    c_int::from(locked(|| !entry(thread).is_null()))
}
