//! The visitor, which receives pointers for the collector, and the further roots that a program reports at
//! each collection.
//!
//! Invariant: the visitor is set only while the world is stopped, so one static is enough.

use crate::{toggle_cells, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed},
};

/// What names pointers to the collector now.
pub(crate) static VISITOR: AtomicPtr<vel::Visitor> = AtomicPtr::new(null_mut());

/// `GC_push_other_roots`: what names further roots. Programs call what was there before.
pub type PushOther = unsafe extern "C" fn();

/// `GC_push_other_roots`: called at each collection. Programs that know it as a variable put theirs in its
/// place, and call what was there.
#[unsafe(no_mangle)]
pub static GC_push_other_roots: AtomicPtr<c_void> = AtomicPtr::new(nothing_more as *mut c_void);

pub(crate) extern "C" fn nothing_more() {}

/// Has the procedure for further roots called at each collection.
pub(crate) fn begin() {
    // SAFETY: it may be called whenever the world is stopped.
    unsafe { vel::vel_gc_on_roots(Some(other_roots)) };
}

/// Calls the program's procedure for further roots.
unsafe extern "C" fn other_roots(visitor: *const vel::Visitor) {
    VISITOR.store(visitor.cast_mut(), Relaxed);
    // SAFETY: the program's own function.
    unsafe { GC_get_push_other_roots()() };
    toggle_cells::name_roots(visitor);
    VISITOR.store(null_mut(), Relaxed);
}

/// What `GC_set_push_other_roots` set; one that does nothing if none.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_push_other_roots() -> PushOther {
    // SAFETY: null or a procedure, and an option of a function has null for none.
    let set =
        unsafe { core::mem::transmute::<*mut c_void, Option<PushOther>>(GC_push_other_roots.load(Acquire)) };
    set.unwrap_or(nothing_more)
}

/// Names every aligned word of a range.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_all(start: *mut c_void, end: *mut c_void) {
    let visitor = VISITOR.load(Relaxed);
    if !visitor.is_null() {
        // SAFETY: called by a procedure for roots, which vouches for the range.
        unsafe { vel::vel_gc_visit_words(visitor, start, end) };
    }
}

/// The same.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_all_eager(start: *mut c_void, end: *mut c_void) {
    GC_push_all(start, end);
}

/// The same, whether the range has changed or not.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_conditional(start: *mut c_void, end: *mut c_void, _all: c_int) {
    GC_push_all(start, end);
}
