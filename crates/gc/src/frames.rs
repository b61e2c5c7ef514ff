//! Frames: pointers on stacks that are known one by one, and may be changed when what they lead to moves.
//!
//! ```text
//!  vel_gc_frames (thread-local) ──▶ frame ── below ──▶ frame ──▶ ... ──▶ BOTTOM
//!                                     └─ roots ──▶ │ pointer │ pointer │ ... │      on the program's stack
//! ```
//!
//! A compiler that knows which of its variables are pointers keeps them in frames, which it links as functions begin and unlinks as
//! they end: a shadow stack (Henderson 2002). With [`Config::precise_stacks`](crate::Config::precise_stacks) nothing else of a stack is looked
//! through, so that nothing is pinned from there.
//!
//! The collector's own functions have addresses of objects in their hands, too, which are in no frame of the program's: what they were given ([`holding`])
//! stays where it is until they return, and what they are about to return, until the next time ([`hand_over`]).
//!
//! # Invariants
//! * A frame that is linked is whole: the link is the last store of a push and the only one of a pop, so that a thread may be stopped anywhere.
//! * Frames are looked through when all that is ambiguous was: what they lead to may move then.

use crate::mark::Marker;
use crate::movement::Movement;
use crate::thread::{self, Thread};
use crate::tls;
use core::cell::Cell;
use core::ptr::null;
use core::sync::atomic::{Ordering, compiler_fence};

/// Pointers of a function's: `struct vel_gc_frame` of the header.
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

// SAFETY: nobody writes it.
unsafe impl Sync for Bottom {}

pub(crate) static BOTTOM: Bottom = Bottom(Frame::new());

impl Frame {
    /// A frame that is not linked.
    pub const fn new() -> Frame {
        Frame { below: Cell::new(null()), count: Cell::new(0), roots: Cell::new(core::ptr::null_mut()) }
    }

    /// Links the frame: the calling thread's `count` words from `roots` on hold pointers, or what is no address in the heap, until [`Frame::pop`].
    ///
    /// # Safety
    /// The frame and the words stay where they are until then, and are read and written by nobody else at the same time.
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

/// Words of a function of the collector's, on its stack.
pub(crate) struct InHand {
    below: *const InHand,
    start: usize,
    end: usize,
}

/// Runs `work` while the objects that `words` lead to stay where they are.
pub(crate) fn holding<R>(words: &[usize], work: impl FnOnce() -> R) -> R {
    hold(words.as_ptr(), words.len(), work)
}

/// The same of words that change meanwhile.
pub(crate) fn holding_cells<R>(words: &[Cell<usize>], work: impl FnOnce() -> R) -> R {
    hold(words.as_ptr().cast(), words.len(), work)
}

fn hold<R>(words: *const usize, count: usize, work: impl FnOnce() -> R) -> R {
    let Some(thread) = thread::attached() else { return work() };
    let start = words.expose_provenance();
    let below = thread.held.get();
    let held = InHand { below, start, end: start + count * size_of::<usize>() };
    thread.held.set(&raw const held);
    core::hint::black_box(words);
    compiler_fence(Ordering::SeqCst);
    let result = work();
    compiler_fence(Ordering::SeqCst);
    core::hint::black_box(words);
    thread.held.set(below);
    result
}

/// Has the object at `address`, which a function of the collector's is about to return, stay where it is until the next time.
#[inline]
pub(crate) fn hand_over(thread: &Thread, address: usize) {
    thread.handed.set(address);
}

/// The same of what a function has found, if it has found something.
pub(crate) fn hand_over_found(found: Option<usize>) -> Option<usize> {
    if let (Some(thread), Some(address)) = (tls::current(), found) {
        hand_over(thread, address);
    }
    found
}

/// Marks what the collector's own functions have in their hands, on all threads.
pub(crate) fn mark_held<M: Movement>(marker: &mut Marker<'_, M>) {
    for thread in thread::known() {
        marker.root(thread.handed.get());
        let mut next = thread.held.get();
        // SAFETY: null, or on the stack of a thread that is stopped below it, or of this one.
        while let Some(held) = unsafe { next.as_ref() } {
            // SAFETY: words that live as long as the record of them.
            unsafe { marker.words(held.start, held.end, false) };
            next = held.below;
        }
    }
}

/// Whether any frame is linked.
pub(crate) fn any() -> bool {
    thread::known().any(|thread| {
        // SAFETY: as in `mark`.
        let top = unsafe { thread.frames.get().as_ref() }.map_or(null(), Cell::get);
        !top.is_null() && !core::ptr::addr_eq(top, &raw const BOTTOM)
    })
}

/// Marks what frames lead to, on all threads; how many words they have. After all that is ambiguous.
pub(crate) fn mark<M: Movement>(marker: &mut Marker<'_, M>) -> usize {
    let mut words = 0;
    for thread in thread::known() {
        // SAFETY: the variable lives as long as its thread is known; a frame as long as it is linked.
        let mut next = unsafe { thread.frames.get().as_ref() }.map_or(null(), Cell::get);
        // SAFETY: as above.
        while let Some(frame) = unsafe { next.as_ref() } {
            let start = frame.roots.get().expose_provenance();
            words += frame.count.get();
            // SAFETY: who linked it vouches for its words.
            unsafe { marker.fields(start, start + frame.count.get() * size_of::<usize>()) };
            next = frame.below.get();
        }
    }
    words
}
