//! Thread records: whether a thread is registered, and its result until it is joined.
//!
//! The result of an ended thread lies only in memory of the C library, which the collector does not scan. The
//! thread's record, an uncollectable object, therefore also holds the result, until the thread is joined. The
//! record of a detached thread is freed when the thread ends.
//!
//! Invariants: a record is in the list from [`add`] until it is freed. The list changes only under its lock.
//! The value of [`key`] is the thread's record; a thread that registered itself has a constant there.

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
    /// True if the thread has ended; its number may then belong to another thread.
    has_ended: Cell<bool>,
    has_begun: Cell<bool>,
    is_detached: Cell<bool>,
    next: Cell<*const Record>,
}

struct List {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    first: Cell<*const Record>,
}

// SAFETY: `first` is accessed only with `lock` held.
unsafe impl Sync for List {}

static LIST: List = List { lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), first: Cell::new(null()) };

/// The key's value for a thread that registered itself.
static ITSELF: u8 = 0;

/// The key plus one; 0 before the key exists.
static KEY: AtomicUsize = AtomicUsize::new(0);

fn with_list<R>(work: impl FnOnce(&List) -> R) -> R {
    lock();
    let result = work(&LIST);
    unlock();
    result
}

/// Locks the list, also over a fork.
pub(crate) fn lock() {
    // SAFETY: the mutex is initialised statically and lives for ever.
    unsafe { libc::pthread_mutex_lock(LIST.lock.get()) };
}

/// Unlocks the list, also in a forked child.
pub(crate) fn unlock() {
    // SAFETY: this thread locked the mutex; in a forked child, the forking thread did.
    unsafe { libc::pthread_mutex_unlock(LIST.lock.get()) };
}

/// The key for thread records, created at first use.
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
        // SAFETY: `key` is a local, and `thread_ends` exists as long as the library.
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
    // SAFETY: `key` returned a valid key. Without memory the thread has no record, and only counts as not
    // registered.
    unsafe { libc::pthread_setspecific(key(), value) };
}

/// True if the calling thread was registered, or started by `GC_pthread_create`.
pub(crate) fn is_registered() -> bool {
    // SAFETY: `key` returned a valid key.
    !unsafe { libc::pthread_getspecific(key()) }.is_null()
}

/// Records that the calling thread has registered itself.
pub(crate) fn register() {
    set((&raw const ITSELF).cast());
}

/// Undoes [`register`].
pub(crate) fn unregister() {
    if own().is_none() {
        set(null());
    }
}

/// The calling thread's record, if `GC_pthread_create` started the thread.
fn own() -> Option<&'static Record> {
    // SAFETY: `key` returned a valid key.
    let value = unsafe { libc::pthread_getspecific(key()) };
    if value.is_null() || core::ptr::addr_eq(value, &raw const ITSELF) {
        return None;
    }
    // SAFETY: any other value was set by `begins`, and a record exists until its thread has ended.
    Some(unsafe { &*value.cast::<Record>() })
}

/// Adds the record of a thread to be started.
///
/// # Safety
/// `record` has room for a record, stays until it is freed, and is not used by any other code.
pub(crate) unsafe fn add(
    record: *mut Record,
    body: vel::Body,
    argument: *mut c_void,
    is_detached: bool,
) -> &'static Record {
    // SAFETY: `record` is valid and unshared, by the `# Safety` section.
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

/// Records the start of the calling thread.
pub(crate) fn begins(record: &'static Record) {
    with_list(|_| {
        // SAFETY: pthread_self has no preconditions.
        record.thread.set(unsafe { libc::pthread_self() });
        record.has_begun.set(true);
    });
    set(from_ref(record).cast());
}

/// Records the result of the calling thread, which is about to end.
pub(crate) fn ends(result: *mut c_void) {
    if let Some(record) = own() {
        record.result.set(result);
    }
}

/// Called when a thread has ended, for whatever reason.
extern "C" fn thread_ends(value: *mut c_void) {
    if core::ptr::addr_eq(value, &raw const ITSELF) {
        return;
    }
    // SAFETY: any other value was set by `begins`, and the record exists until it is removed below.
    let record = unsafe { &*value.cast::<Record>() };
    // This function and `detached` run under the lock, so the second one sees the first one's flag.
    let is_detached = with_list(|_| {
        record.has_ended.set(true);
        record.is_detached.get()
    });
    if is_detached {
        remove(record);
    }
}

/// Removes the record of a joined thread: its joiner has the result now.
pub(crate) fn joined(thread: libc::pthread_t) {
    if let Some(record) = find(thread) {
        remove(record);
    }
}

/// Marks a thread that will not be joined.
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

/// The oldest record with that number that can still be joined. Records of joined threads are gone, so there
/// is at most one.
fn find(thread: libc::pthread_t) -> Option<&'static Record> {
    with_list(|list| {
        let mut this = list.first.get();
        let mut found = None;
        while !this.is_null() {
            // SAFETY: records in the list are freed only after they are removed, and the lock is held.
            let record: &'static Record = unsafe { &*this };
            if record.has_begun.get() && record.thread.get() == thread && !record.is_detached.get() {
                found = Some(record);
            }
            this = record.next.get();
        }
        found
    })
}

/// Removes a record from the list and frees it, once.
pub(crate) fn remove(record: &'static Record) {
    let was_there = with_list(|list| {
        let mut link = &list.first;
        while !link.get().is_null() {
            if core::ptr::eq(link.get(), record) {
                link.set(record.next.get());
                return true;
            }
            // SAFETY: records in the list are freed only after they are removed, and the lock is held.
            link = unsafe { &(*link.get()).next };
        }
        false
    });
    if was_there {
        // SAFETY: the record was just removed from the list, so no other code can find it.
        unsafe { vel::vel_gc_free(from_ref(record).cast_mut().cast()) };
    }
}
