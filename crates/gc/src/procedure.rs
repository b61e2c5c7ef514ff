//! What a program's own procedures tell the collector: where the pointers of its objects are, what else is in use, and when it
//! wants to be told something.
//!
//! A *trace procedure* is called for each object of its type that is found alive, and names what the object refers to by the
//! [`Visitor`] it is given. It may leave words out: then they keep nothing (a weak table), or name what lies elsewhere (an object whose
//! references are in memory of `malloc`). A *roots procedure* does the same for what no object refers to.
//!
//! # Invariants
//! * Procedures run while the world is stopped, so they may take no lock and allocate nothing.
//! * They run on the thread that collects: in a heap with such types one thread marks.
//! * What they name is followed as an ambiguous pointer, and so stays where it is. A plan that moves objects may have moved it by then: under such
//!   a plan there are no trace procedures.

use crate::mark::Marker;
use crate::movement::Movement;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// `vel_gc_trace_fn` of the header.
pub type TraceFn =
    unsafe extern "C" fn(object: *mut c_void, bytes: usize, data: *mut c_void, visitor: *const Visitor);
/// `vel_gc_roots_fn` of the header.
pub type RootsFn = unsafe extern "C" fn(visitor: *const Visitor);
/// `vel_gc_told_fn` of the header.
pub type ToldFn = unsafe extern "C" fn();

/// Passes on what a procedure names: `vel_gc_visitor` of the header, of which nobody sees the inside.
#[repr(C)]
pub struct Visitor {
    words: unsafe fn(*mut c_void, usize, usize),
    marker: *mut c_void,
}

impl Visitor {
    /// One that passes on to `marker`, whose borrow the caller keeps up as long as the visitor is used.
    pub(crate) fn of<M: Movement>(marker: &mut Marker<'_, M>) -> Visitor {
        /// # Safety
        /// `marker` is the visitor's; the words may be read.
        unsafe fn words<M: Movement>(marker: *mut c_void, start: usize, end: usize) {
            // SAFETY: `of` stored it, and its borrow is kept up; the words by this function's condition.
            unsafe { (*marker.cast::<Marker<'_, M>>()).words(start, end, false) };
        }
        Visitor { words: words::<M>, marker: core::ptr::from_mut(marker).cast() }
    }

    /// Follows `pointer`, if it is one.
    pub fn visit(&self, pointer: *const u8) {
        let word = [pointer.expose_provenance()];
        let start = word.as_ptr().expose_provenance();
        // SAFETY: one word, which lives across the call.
        unsafe { (self.words)(self.marker, start, start + size_of::<usize>()) };
    }

    /// Follows every aligned word from `start` up to `end` that is a pointer.
    ///
    /// # Safety
    /// The words may be read.
    pub unsafe fn visit_words(&self, start: *const u8, end: *const u8) {
        let start = start.expose_provenance().next_multiple_of(size_of::<usize>());
        // SAFETY: by this function's condition.
        unsafe { (self.words)(self.marker, start, end.expose_provenance()) };
    }
}

/// A place for a function of a program's, or none.
pub(crate) struct Hook<F>(AtomicPtr<c_void>, PhantomData<F>);

// SAFETY: a pointer to code, read and written atomically.
unsafe impl<F> Sync for Hook<F> {}

impl<F: Copy> Hook<F> {
    pub(crate) const fn none() -> Hook<F> {
        const { assert!(size_of::<Option<F>>() == size_of::<*mut c_void>(), "a pointer to a function") };
        Hook(AtomicPtr::new(null_mut()), PhantomData)
    }

    /// Puts `hook` in; what was there.
    pub(crate) fn set(&self, hook: Option<F>) -> Option<F> {
        // SAFETY: an option of a pointer to a function has the size and bits of a pointer, null for none: see `none`.
        let hook = unsafe { core::mem::transmute_copy::<Option<F>, *mut c_void>(&hook) };
        Self::from(self.0.swap(hook, Ordering::AcqRel))
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<F> {
        Self::from(self.0.load(Ordering::Acquire))
    }

    #[inline]
    fn from(pointer: *mut c_void) -> Option<F> {
        // SAFETY: only `set` writes it, from such an option.
        unsafe { core::mem::transmute_copy::<*mut c_void, Option<F>>(&pointer) }
    }
}

/// Names roots.
static ROOTS: Hook<RootsFn> = Hook::none();
/// Is told that a collection begins.
static BEGIN: Hook<ToldFn> = Hook::none();
/// Is told that finalizers are due.
static DUE: Hook<ToldFn> = Hook::none();

/// Sets what names further roots at each collection; returns what was.
pub fn on_roots(hook: Option<RootsFn>) -> Option<RootsFn> {
    ROOTS.set(hook)
}

/// Sets what is called when a collection begins, with the world going on and the heap's lock held; returns what was.
pub fn on_begin(hook: Option<ToldFn>) -> Option<ToldFn> {
    BEGIN.set(hook)
}

/// Sets what is called after a collection that has made finalizers due, if they run on demand only; returns what was.
pub fn on_due(hook: Option<ToldFn>) -> Option<ToldFn> {
    DUE.set(hook)
}

/// Ends the process: a procedure that the collector calls, or a signal handler, wants something of the heap on the thread that collects.
#[cold]
pub(crate) fn end_called_back() -> ! {
    let words = "vellum: gc: a procedure that the collector calls, or a handler of a signal, allocates or asks for something else of the heap while \
                 that is being collected; it may not, as it would wait for itself\n";
    // SAFETY: a range of bytes that lives; a refusal loses a word only.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
    // SAFETY: plain call.
    unsafe { libc::abort() }
}

/// Marks what the roots procedure names.
pub(crate) fn mark_roots<M: Movement>(marker: &mut Marker<'_, M>) {
    if let Some(hook) = ROOTS.get() {
        let visitor = Visitor::of(marker);
        // SAFETY: who set it vouches that it may be called so.
        unsafe { hook(&raw const visitor) };
    }
}

/// A collection begins.
pub(crate) fn tell_begin() {
    if let Some(hook) = BEGIN.get() {
        // SAFETY: as above.
        unsafe { hook() };
    }
}

/// Finalizers are due.
pub(crate) fn tell_due() {
    if let Some(hook) = DUE.get() {
        // SAFETY: as above.
        unsafe { hook() };
    }
}
