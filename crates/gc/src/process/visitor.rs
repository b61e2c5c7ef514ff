//! The visitor: the interface by which a callback of the program reports references to the collector.
//!
//! A *trace callback* is called for each object of its type that is found alive. It reports the object's
//! references. Words that it does not report keep nothing alive; a weak table needs this. It may report words
//! outside the object, such as references in memory of `malloc`. A *roots callback* reports roots in the same
//! way.
//!
//! # Invariants
//! * Callbacks run while the world is stopped, so they may neither take a lock nor allocate.
//! * Callbacks run on the thread that collects. In a heap with trace callbacks, no other thread marks.
//! * Reported words are followed as ambiguous pointers, whose objects must not move. In a plan that moves
//!   objects, the object may have moved before it is reported. Such plans therefore have no trace
//!   callbacks.

use core::ffi::c_void;
use vellum_sys::{Addr, Span};

/// `vel_gc_trace_fn` of the header.
pub type TraceFn =
    unsafe extern "C" fn(object: *mut c_void, bytes: usize, data: *mut c_void, visitor: *const Visitor);

/// Passes on the words that a callback names: `vel_gc_visitor` of the header, where it is opaque.
#[repr(C)]
pub struct Visitor {
    words: unsafe fn(*mut c_void, Span),
    marker: *mut c_void,
}

impl Visitor {
    /// A visitor that passes ranges of words to `words`, with `marker` as its argument.
    pub(crate) fn new(words: unsafe fn(*mut c_void, Span), marker: *mut c_void) -> Visitor {
        Visitor { words, marker }
    }

    /// Follows `pointer`, if it is one.
    pub fn visit(&self, pointer: *const u8) {
        let word = Addr::of(pointer);
        // SAFETY: one word, which lives across the call.
        unsafe { (self.words)(self.marker, Span::at(&raw const word, size_of::<Addr>())) };
    }

    /// Follows every aligned word from `start` up to `end` that is a pointer.
    ///
    /// # Safety
    /// The words may be read.
    pub unsafe fn visit_words(&self, start: *const u8, end: *const u8) {
        let start = Addr::of(start).round_up(size_of::<Addr>());
        // SAFETY: the caller guarantees that the words may be read; `new` got `words` with this `marker`.
        unsafe { (self.words)(self.marker, Span::between(start, Addr::of(end))) };
    }
}
