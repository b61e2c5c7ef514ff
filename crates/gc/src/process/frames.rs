//! Frames: records on a thread's stack that give the exact places of its pointers, so that the objects they
//! lead to may move. These frames are not the machine's stack frames.
//!
//! ```text
//!  vel_gc_frames (thread-local) ──▶ frame ── below ──▶ frame ──▶ ... ──▶ BOTTOM
//!                                     └─ roots ──▶ │ pointer │ pointer │ ... │      on the program's stack
//! ```
//!
//! A compiler with exact knowledge of its pointers keeps them in frames: a shadow stack (Henderson 2002). A
//! function links its frame as it begins, and unlinks it as it ends. With
//! [`Config::precise_stacks`](crate::Config::precise_stacks) nothing else of a stack is scanned, so that
//! nothing is pinned from there.
//!
//! The collector's own functions also hold addresses of objects, which are in no frame. Objects passed to
//! such a function stay where they are until it returns (`mutator::access`). An object that it returns
//! stays until the thread's next call (`hand_over`).
//!
//! # Invariants
//! * A linked frame is complete. The link is the last store of a push and the only one of a pop: a thread may
//!   be stopped anywhere.
//! * Frames are scanned after all ambiguous roots, when every object that must stay has been pinned.

use crate::process::local;
use core::cell::Cell;
use core::ptr::null;
use core::sync::atomic::{Ordering, compiler_fence};

/// The pointers of one function of the program's: `struct vel_gc_frame` of the header.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    pub(crate) below: Cell<*const Frame>,
    pub(crate) count: Cell<usize>,
    pub(crate) roots: Cell<*mut usize>,
}

/// The end of every thread's list of frames. Never written.
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
        let top = local::frames();
        self.below.set(top.get());
        self.count.set(count);
        self.roots.set(roots);
        compiler_fence(Ordering::SeqCst);
        top.set(self);
    }

    /// Unlinks the frame and all later ones.
    ///
    /// # Safety
    /// This thread has linked the frame, and not unlinked it since.
    pub unsafe fn pop(&self) {
        local::frames().set(self.below.get());
        compiler_fence(Ordering::SeqCst);
    }
}

impl Default for Frame {
    fn default() -> Frame {
        Frame::new()
    }
}
