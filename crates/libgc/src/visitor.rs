//! The visitor (the collector's receiver of pointers), and the further roots that a program reports.
//!
//! Invariant: the visitor is set only while the world is stopped, so one static is enough.

use crate::forms::same;
use crate::{toggle_cells, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed},
};

/// The visitor of the running procedure; null outside of procedures.
pub(crate) static VISITOR: AtomicPtr<vel::Visitor> = AtomicPtr::new(null_mut());

/// `GC_push_other_roots`: reports further roots. Programs call the previous procedure, too.
pub type PushOther = unsafe extern "C" fn();

/// `GC_push_other_roots`: called at each collection. Programs that use the variable store their procedure in
/// it, and call the old one.
#[unsafe(no_mangle)]
pub static GC_push_other_roots: AtomicPtr<c_void> = AtomicPtr::new(nothing_more as *mut c_void);

pub(crate) extern "C" fn nothing_more() {}

/// Sets the procedure for further roots, which each collection calls.
pub(crate) fn begin() {
    // SAFETY: `other_roots` may be called whenever the world is stopped.
    unsafe { vel::vel_gc_on_roots(Some(other_roots)) };
}

/// Calls the program's procedure for further roots.
unsafe extern "C" fn other_roots(visitor: *const vel::Visitor) {
    VISITOR.store(visitor.cast_mut(), Relaxed);
    // SAFETY: a `PushOther` has no arguments.
    unsafe { GC_get_push_other_roots()() };
    toggle_cells::name_roots(visitor);
    VISITOR.store(null_mut(), Relaxed);
}

/// The procedure of `GC_set_push_other_roots`, by default one without effect.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_push_other_roots() -> PushOther {
    // SAFETY: the variable holds null or a `PushOther`, and null is `None`.
    let set =
        unsafe { core::mem::transmute::<*mut c_void, Option<PushOther>>(GC_push_other_roots.load(Acquire)) };
    set.unwrap_or(nothing_more)
}

/// Reports every aligned word of a range.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_all(start: *mut c_void, end: *mut c_void) {
    let visitor = VISITOR.load(Relaxed);
    if !visitor.is_null() {
        // SAFETY: the visitor is set only for a procedure for roots, which passes a readable range.
        unsafe { vel::vel_gc_visit_words(visitor, start, end) };
    }
}

same! {
    /// Like [`GC_push_all`].
    GC_push_all_eager(start: *mut c_void, end: *mut c_void) = GC_push_all;
}

/// Like [`GC_push_all`], whether the range has changed or not.
#[unsafe(no_mangle)]
pub extern "C" fn GC_push_conditional(start: *mut c_void, end: *mut c_void, _all: c_int) {
    GC_push_all(start, end);
}
