//! The C library's open files (`FILE`) while a process forks.
//!
//! In a child of several threads glibc makes the locks of all open files new, before it calls anybody's
//! handlers: it goes through their list, whose members are small blocks. If one is paged out at that moment,
//! nobody brings it there. So the pager has these pages in memory when it stands still. The list's own
//! lock is taken first: glibc takes it later, when a thread that has it might wait for a page for ever.
//!
//! The layout is that of glibc's interface (`struct _IO_FILE`), which programs are compiled with.

use crate::attach;
use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

/// Offsets in a `FILE`: the next of all, and where its lock is.
const CHAIN: usize = 0x68;
const LOCK: usize = 0x88;
/// Bytes of a lock.
const LOCK_BYTES: usize = 16;
/// Open files that are looked at.
const FILES_MAX: usize = 1 << 16;

/// glibc's head of the list; null elsewhere.
static ALL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static HOLD: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static RELEASE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static RENEW: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Finds the C library's list.
pub(crate) fn find() {
    let names: [(&AtomicPtr<c_void>, &CStr); 4] = [
        (&HOLD, c"_IO_list_lock"),
        (&RELEASE, c"_IO_list_unlock"),
        (&RENEW, c"_IO_list_resetlock"),
        (&ALL, c"_IO_list_all"),
    ];
    for (place, name) in names {
        let found = attach::first(name).cast_mut();
        if found.is_null() {
            return;
        }
        place.store(found, Relaxed);
    }
}

fn call(function: &AtomicPtr<c_void>) {
    // Found last: all of the functions were found before.
    if !ALL.load(Relaxed).is_null() {
        let function = function.load(Relaxed);
        // SAFETY: the signature of all three.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn()>(function)() };
    }
}

/// Whether the thread that forks has the lock: changed by who has it.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Before a fork, before anything else: who has the list may wait for memory.
pub(crate) fn hold() {
    call(&HOLD);
    IS_HELD.store(true, Relaxed);
}

/// After it, in the parent.
pub(crate) fn release() {
    if IS_HELD.swap(false, Relaxed) {
        call(&RELEASE);
    }
}

/// After it, in the child, whose lock has no owner.
pub(crate) fn renew() {
    if IS_HELD.swap(false, Relaxed) {
        call(&RENEW);
    }
}

/// Tells `may_read` of every address that glibc reads or writes, before it is read here, as long as the
/// answer is yes. With the list held.
pub(crate) fn look(may_read: &mut dyn FnMut(*const u8) -> bool) {
    let all = ALL.load(Relaxed).cast::<*const u8>();
    if all.is_null() {
        return;
    }
    // SAFETY: a pointer that lives as long as the C library.
    let mut file = unsafe { all.read_volatile() };
    for _ in 0..FILES_MAX {
        if file.is_null() || !may_read(file) || !may_read(file.wrapping_add(LOCK)) {
            return;
        }
        // SAFETY: members of the list are whole, and stay while it is held; these pages are there.
        let (next, lock) = unsafe {
            let word = |offset: usize| file.add(offset).cast::<*const u8>().read();
            (word(CHAIN), word(LOCK))
        };
        let mut is_there = || may_read(lock) && may_read(lock.wrapping_add(LOCK_BYTES - 1));
        if !lock.is_null() && !is_there() {
            return;
        }
        file = next;
    }
}
