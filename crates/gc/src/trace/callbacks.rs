//! The program's callbacks: they name the pointers of its objects and further roots, and learn of events.
//!
//! A *trace callback* is called for each object of its type that is found alive. It names what the object
//! refers to by the [`Visitor`] it is given. It may leave words out: these keep nothing alive (a weak table).
//! It may name words elsewhere (an object whose references are in memory of `malloc`). A *roots callback*
//! names roots in the same way.
//!
//! # Invariants
//! * Callbacks run while the world is stopped, so they may take no lock and allocate nothing.
//! * They run on the thread that collects: in a heap with such types one thread marks.
//! * The words they name are followed as ambiguous pointers, whose objects stay where they are. A plan that
//!   moves objects may have moved them by then: under such a plan there are no trace callbacks.

use crate::hook::Hook;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use crate::trace::visitor::Visitor;

/// `vel_gc_roots_fn` of the header.
pub type RootsFn = unsafe extern "C" fn(visitor: *const Visitor);
/// `vel_gc_told_fn` of the header.
pub type ToldFn = unsafe extern "C" fn();

/// Names roots.
static ROOTS: Hook<RootsFn> = Hook::none();
/// Is called when a collection begins.
static BEGIN: Hook<ToldFn> = Hook::none();
/// Is called when finalizers are due.
static DUE: Hook<ToldFn> = Hook::none();

/// Sets the function that names further roots at each collection; returns the previous one.
pub fn on_roots(hook: Option<RootsFn>) -> Option<RootsFn> {
    ROOTS.set(hook)
}

/// Sets the function that is called when a collection begins, with the world going on and the heap's lock
/// held; returns the previous one.
pub fn on_begin(hook: Option<ToldFn>) -> Option<ToldFn> {
    BEGIN.set(hook)
}

/// Sets the function that is called after a collection that has made finalizers due, if they run on demand
/// only; returns the previous one.
pub fn on_due(hook: Option<ToldFn>) -> Option<ToldFn> {
    DUE.set(hook)
}

/// Ends the process: a callback, or a signal handler, wants something of the heap on the thread that
/// collects.
#[cold]
pub(crate) fn end_called_back() -> ! {
    let words = "vellum: gc: a mark procedure, finalizer or signal handler used the heap during a collection; that would deadlock\n";
    // SAFETY: the bytes are static; if the call is refused, only the message is lost.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
    // SAFETY: plain call.
    unsafe { libc::abort() }
}

/// Marks what the roots callback names.
pub(crate) fn mark_roots<M: Movement>(marker: &mut Marker<'_, M>) {
    if let Some(hook) = ROOTS.get() {
        let visitor = marker.visitor();
        // SAFETY: the program vouched when it set the hook that it may be called with the world stopped; the
        // visitor lives.
        unsafe { hook(&raw const visitor) };
    }
}

/// A collection begins.
pub(crate) fn tell_begin() {
    if let Some(hook) = BEGIN.get() {
        // SAFETY: the program vouched when it set the hook that it may be called with the heap's lock held.
        unsafe { hook() };
    }
}

/// Finalizers are due.
pub(crate) fn tell_due() {
    if let Some(hook) = DUE.get() {
        // SAFETY: the program vouched when it set the hook that it may be called after a collection.
        unsafe { hook() };
    }
}
