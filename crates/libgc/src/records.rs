//! Thread records: whether a thread is registered, and its result until it is joined.
//!
//! The result of an ended thread lies only in memory of the C library, which the collector does not scan. The
//! thread's record, an uncollectable object, therefore holds it too, until the thread is joined. The record
//! of a detached thread is freed when the thread ends.
//!
//! Invariants: a record is in the list from [`add`] until it is freed; the list changes only under its lock;
//! the value of [`key`] is the thread's record.

use crate::vel;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ptr::{from_ref, null, null_mut};
use core::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Release},
};

/// A thread that `GC_pthread_create` started.
#[repr(C)]
pub(crate) struct Record {
    pub body: vel::Body,
    pub argument: *mut c_void,
    thread: Cell<libc::pthread_t>,
    result: Cell<*mut c_void>,
    /// It has ended, so that its number may be another's by now.
    has_ended: Cell<bool>,
    has_begun: Cell<bool>,
    is_detached: Cell<bool>,
    next: Cell<*const Record>,
}

struct List {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    first: Cell<*const Record>,
}

// SAFETY: changed under the lock only.
unsafe impl Sync for List {}

static LIST: List = List { lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), first: Cell::new(null()) };

/// What the key holds of a thread that registered itself.
static ITSELF: u8 = 0;

/// The key's number and one; 0: there is none yet.
static KEY: AtomicUsize = AtomicUsize::new(0);

fn with_list<R>(work: impl FnOnce(&List) -> R) -> R {
    lock();
    let result = work(&LIST);
    unlock();
    result
}

/// Holds the list, over a fork as well.
pub(crate) fn lock() {
    // SAFETY: a mutex initialised statically.
    unsafe { libc::pthread_mutex_lock(LIST.lock.get()) };
}

/// Ends what [`lock`] began, in a forked child as well.
pub(crate) fn unlock() {
    // SAFETY: unlocked by whom it was locked.
    unsafe { libc::pthread_mutex_unlock(LIST.lock.get()) };
}

/// The key by which a thread finds its record; made when first needed.
fn key() -> libc::pthread_key_t {
    let known = KEY.load(Acquire);
    if known != 0 {
        return (known - 1) as libc::pthread_key_t;
    }
    with_list(|_| {
        let known = KEY.load(Acquire);
        if known != 0 {
            return (known - 1) as libc::pthread_key_t;
        }
        let mut key = 0;
        // SAFETY: a place for the key, and a function that lives as long as the library.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) } != 0 {
            crate::say::line(&[b"libgc: no thread-specific key is left"]);
            // SAFETY: abort has no preconditions.
            unsafe { libc::abort() }
        }
        KEY.store(key as usize + 1, Release);
        key
    })
}

fn set(value: *const c_void) {
    // SAFETY: the key was made. Without memory the thread has no record: it is only not known to be
    // registered.
    unsafe { libc::pthread_setspecific(key(), value) };
}

/// Whether the calling thread was registered, or started by us.
pub(crate) fn is_registered() -> bool {
    // SAFETY: the key was made.
    !unsafe { libc::pthread_getspecific(key()) }.is_null()
}

/// Notes that the calling thread has registered itself.
pub(crate) fn register() {
    set((&raw const ITSELF).cast());
}

/// Undoes that.
pub(crate) fn unregister() {
    if own().is_none() {
        set(null());
    }
}

/// The calling thread's record, if it was started by us.
fn own() -> Option<&'static Record> {
    // SAFETY: the key was made.
    let value = unsafe { libc::pthread_getspecific(key()) };
    if value.is_null() || core::ptr::addr_eq(value, &raw const ITSELF) {
        return None;
    }
    // SAFETY: only `begins` sets another value, and the record stays until the thread has ended.
    Some(unsafe { &*value.cast::<Record>() })
}

/// The record of a thread to be started, in an object.
///
/// # Safety
/// The object has room for a record, stays until it is freed, and is nobody else's.
pub(crate) unsafe fn add(
    record: *mut Record,
    body: vel::Body,
    argument: *mut c_void,
    is_detached: bool,
) -> &'static Record {
    // SAFETY: by this function's condition.
    let record = unsafe {
        record.write(Record {
            body,
            argument,
            thread: Cell::new(0),
            result: Cell::new(null_mut()),
            has_ended: Cell::new(false),
            has_begun: Cell::new(false),
            is_detached: Cell::new(is_detached),
            next: Cell::new(null()),
        });
        &*record
    };
    with_list(|list| {
        record.next.set(list.first.get());
        list.first.set(record);
    });
    record
}

/// The calling thread begins, with `record`.
pub(crate) fn begins(record: &'static Record) {
    with_list(|_| {
        // SAFETY: plain call.
        record.thread.set(unsafe { libc::pthread_self() });
        record.has_begun.set(true);
    });
    set(from_ref(record).cast());
}

/// The calling thread is about to end, and returns `result`.
pub(crate) fn ends(result: *mut c_void) {
    if let Some(record) = own() {
        record.result.set(result);
    }
}

/// The thread has ended, however it did.
extern "C" fn thread_ends(value: *mut c_void) {
    if core::ptr::addr_eq(value, &raw const ITSELF) {
        return;
    }
    // SAFETY: see `own`.
    let record = unsafe { &*value.cast::<Record>() };
    // Of this and `detached`, one sees what the other noted.
    let is_detached = with_list(|_| {
        record.has_ended.set(true);
        record.is_detached.get()
    });
    if is_detached {
        remove(record);
    }
}

/// `thread` was joined: what it returned is its joiner's now.
pub(crate) fn joined(thread: libc::pthread_t) {
    if let Some(record) = find(thread) {
        remove(record);
    }
}

/// `thread` will not be joined.
pub(crate) fn detached(thread: libc::pthread_t) {
    let ended = find(thread).filter(|record| {
        with_list(|_| {
            record.is_detached.set(true);
            record.has_ended.get()
        })
    });
    if let Some(record) = ended {
        remove(record);
    }
}

/// The oldest record of that number: a joined or detached one is gone, so there is one at most that can still
/// be joined.
fn find(thread: libc::pthread_t) -> Option<&'static Record> {
    with_list(|list| {
        let mut this = list.first.get();
        let mut found = None;
        while !this.is_null() {
            // SAFETY: records in the list are there.
            let record: &'static Record = unsafe { &*this };
            if record.has_begun.get() && record.thread.get() == thread && !record.is_detached.get() {
                found = Some(record);
            }
            this = record.next.get();
        }
        found
    })
}

/// Takes a record out of the list and frees it, once.
pub(crate) fn remove(record: &'static Record) {
    let was_there = with_list(|list| {
        let mut link = &list.first;
        while !link.get().is_null() {
            if core::ptr::eq(link.get(), record) {
                link.set(record.next.get());
                return true;
            }
            // SAFETY: records in the list are there.
            link = unsafe { &(*link.get()).next };
        }
        false
    });
    if was_there {
        // SAFETY: nobody finds it any more.
        unsafe { vel::vel_gc_free(from_ref(record).cast_mut().cast()) };
    }
}
