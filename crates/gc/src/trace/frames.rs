//! Frames: pointers on stacks that are known one by one, and may be changed when their objects move.
//!
//! ```text
//!  vel_gc_frames (thread-local) ──▶ frame ── below ──▶ frame ──▶ ... ──▶ BOTTOM
//!                                     └─ roots ──▶ │ pointer │ pointer │ ... │      on the program's stack
//! ```
//!
//! A compiler that knows which of its variables are pointers keeps them in frames, which it links as
//! functions begin and unlinks as they end: a shadow stack (Henderson 2002). With
//! [`Config::precise_stacks`](crate::Config::precise_stacks) nothing else of a stack is scanned, so that
//! nothing is pinned from there.
//!
//! The collector's own functions hold addresses of objects, too, which are in no frame of the program's. The
//! objects they were given (`mutator::access`) stay where they are until they return. The object they are
//! about to return stays until the next call ([`hand_over`]).
//!
//! # Invariants
//! * A linked frame is complete: the link is the last store of a push and the only one of a pop, so that a
//!   thread may be stopped anywhere.
//! * Frames are scanned after everything ambiguous: their objects may move then.

use crate::mutator::thread::{self, Thread};
use crate::mutator::tls;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use core::cell::Cell;
use core::ptr::null;
use core::sync::atomic::{Ordering, compiler_fence};

/// The pointers of one function of the program's: `struct vel_gc_frame` of the header.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    below: Cell<*const Frame>,
    count: Cell<usize>,
    roots: Cell<*mut usize>,
}

/// Where every thread's frames begin. Never written.
#[repr(transparent)]
pub(crate) struct Bottom(Frame);

// SAFETY: it is never written: a push writes its own frame and the thread's link only.
unsafe impl Sync for Bottom {}

pub(crate) static BOTTOM: Bottom = Bottom(Frame::new());

impl Frame {
    /// A frame that is not linked.
    pub const fn new() -> Frame {
        Frame { below: Cell::new(null()), count: Cell::new(0), roots: Cell::new(core::ptr::null_mut()) }
    }

    /// Links the frame: until [`Frame::pop`], the calling thread's `count` words from `roots` on hold
    /// pointers, or values that are no address in the heap.
    ///
    /// # Safety
    /// The frame and the words stay where they are until then, and are read and written by nobody else at the
    /// same time.
    pub unsafe fn push(&self, roots: *mut usize, count: usize) {
        let top = tls::frames();
        self.below.set(top.get());
        self.count.set(count);
        self.roots.set(roots);
        compiler_fence(Ordering::SeqCst);
        top.set(self);
    }

    /// Unlinks the frame, and those that were linked after it.
    ///
    /// # Safety
    /// It was linked by this thread, and not unlinked since.
    pub unsafe fn pop(&self) {
        tls::frames().set(self.below.get());
        compiler_fence(Ordering::SeqCst);
    }
}

impl Default for Frame {
    fn default() -> Frame {
        Frame::new()
    }
}

/// Words on the stack of one of the collector's functions.
pub(crate) struct InHand {
    pub below: *const InHand,
    pub start: usize,
    pub end: usize,
}

/// Keeps the object at `address`, which one of the collector's functions is about to return, where it is
/// until the next call.
#[inline]
pub(crate) fn hand_over(thread: &Thread, address: usize) {
    thread.handed.set(address);
}

/// The same for the object that a function has found, if any.
pub(crate) fn hand_over_found(found: Option<usize>) -> Option<usize> {
    if let (Some(thread), Some(address)) = (tls::current(), found) {
        hand_over(thread, address);
    }
    found
}

/// Marks the objects that the collector's own functions hold, on all threads.
pub(crate) fn mark_held<M: Movement>(marker: &mut Marker<'_, M>) {
    for thread in thread::known() {
        marker.root(thread.handed.get());
        let mut next = thread.held.get();
        // SAFETY: null, or on the stack of a thread that is stopped below it, or of this one.
        while let Some(held) = unsafe { next.as_ref() } {
            // SAFETY: the record describes words of the same stack, which live as long as it does.
            unsafe { marker.words(held.start, held.end, false) };
            next = held.below;
        }
    }
}

/// Whether any frame is linked.
pub(crate) fn any() -> bool {
    thread::known().any(|thread| {
        // SAFETY: the variable is its thread's own, and lives as long as the thread is known.
        let top = unsafe { thread.frames.get().as_ref() }.map_or(null(), Cell::get);
        !top.is_null() && !core::ptr::addr_eq(top, &raw const BOTTOM)
    })
}

/// Marks what frames lead to, on all threads, after everything ambiguous. Returns how many words they have.
pub(crate) fn mark<M: Movement>(marker: &mut Marker<'_, M>) -> usize {
    let mut words = 0;
    for thread in thread::known() {
        // SAFETY: the variable lives as long as its thread is known; a frame as long as it is linked.
        let mut next = unsafe { thread.frames.get().as_ref() }.map_or(null(), Cell::get);
        // SAFETY: null, `BOTTOM`, or a frame that its function keeps as long as it is linked; its thread is
        // stopped.
        while let Some(frame) = unsafe { next.as_ref() } {
            let start = frame.roots.get().expose_provenance();
            words += frame.count.get();
            // SAFETY: the program vouched for the frame's words when it linked it.
            unsafe { marker.fields(start, start + frame.count.get() * size_of::<usize>()) };
            next = frame.below.get();
        }
    }
    words
}
