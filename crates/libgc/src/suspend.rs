//! `javaxfc.h`: single threads stopped by the program.
//!
//! Which threads are suspended is remembered here, by their numbers: one may have ended, but not been joined, and still counts. It is not
//! forgotten when it is joined, as its number may be another's by then, and that one suspended.

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

/// Calls `work` with the lock held.
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
            crate::say::give_up(c"libgc: GC_suspend_thread: out of memory");
        }
        // SAFETY: so many bytes are there.
        unsafe { place.write(Entry { thread: 0, next: FIRST.load(Relaxed) }) };
        FIRST.store(place, Relaxed);
    }
    // SAFETY: an entry, changed under the lock.
    unsafe { (*place).thread = thread };
    true
}

/// The thread is not suspended any more; whether it was.
fn forget(thread: libc::pthread_t) -> bool {
    if FIRST.load(Relaxed).is_null() {
        return false;
    }
    locked(|| {
        let this = entry(thread);
        if !this.is_null() {
            // SAFETY: an entry, changed under the lock.
            unsafe { (*this).thread = 0 };
        }
        !this.is_null()
    })
}

/// Stops a thread until [`GC_resume_thread`], at once or when it comes out of a blocking call. One that is suspended already stays so.
#[unsafe(no_mangle)]
pub extern "C" fn GC_suspend_thread(thread: libc::pthread_t) {
    // Not with the lock held: a caller that suspends itself would keep it.
    if locked(|| note(thread)) {
        // SAFETY: any number may be named; a thread that the collector does not know has ended, or has not begun.
        unsafe { vel::vel_gc_suspend(thread) };
    }
}

/// Undoes [`GC_suspend_thread`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_resume_thread(thread: libc::pthread_t) {
    if forget(thread) {
        // SAFETY: as above.
        unsafe { vel::vel_gc_resume(thread) };
    }
}

/// Whether a thread is suspended.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_thread_suspended(thread: libc::pthread_t) -> c_int {
    c_int::from(locked(|| !entry(thread).is_null()))
}
