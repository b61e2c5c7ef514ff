//! How far a heap's pass over its slabs has come, for [`crate::scavenge`].

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::Release};
use vellum_pages::Pages;

/// Awake slabs of a heap from which the helper is started, if it was not.
const WORTH_A_HELPER: u32 = 32;
/// Slabs that the heap's thread visits on one of its slow paths.
pub(crate) const OWNERS_SLABS: usize = 4;
/// Slabs that are visited while the thread of an idle heap may have to wait.
pub(crate) const VISITORS_SLABS: usize = 64;

/// Bytes that were given back out of slabs.
static RETURNED: AtomicUsize = AtomicUsize::new(0);

/// Bytes that were given back out of slabs so far.
pub(crate) fn returned() -> usize {
    RETURNED.load(Relaxed)
}

/// Some more were.
pub(crate) fn note_returned(bytes: usize) {
    RETURNED.fetch_add(bytes, Relaxed);
}

/// How far the pass of a heap has come. All zero: none is due.
#[derive(Debug)]
pub(crate) struct Pass<S> {
    /// Whether one is due, or under way.
    pub(crate) is_due: AtomicBool,
    pub(crate) is_eager: AtomicBool,
    /// Whether the pass under way is to begin again.
    pub(crate) is_anew: AtomicBool,
    /// The class it is in, and the next slab there.
    pub(crate) class: Cell<usize>,
    pub(crate) next: Cell<*const S>,
    /// Whether it met slabs for the first time.
    pub(crate) has_marked: Cell<bool>,
    /// The turns of the gate when it began.
    pub(crate) began_turns: Cell<u32>,
    /// The turns of the gate when one began that found nothing left to do.
    pub(crate) idle_turns: AtomicU32,
    /// Awake slabs.
    awake: AtomicU32,
}

impl<S> Pass<S> {
    /// Whether a pass is due.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.is_due.load(Relaxed)
    }

    /// Makes an eager pass due that visits every slab.
    pub(crate) fn request_anew(&self) {
        self.request(true);
        self.is_anew.store(true, Release);
    }

    /// Makes a pass due.
    pub(crate) fn request(&self, eager: bool) {
        if eager {
            self.is_eager.store(true, Relaxed);
        }
        self.is_due.store(true, Relaxed);
    }

    /// Whether the heap has enough slabs on its lists for their pages to be worth a helper.
    pub(crate) fn is_sparse(&self) -> bool {
        self.awake.load(Relaxed) >= WORTH_A_HELPER
    }

    /// A slab is on a list. Inside the gate.
    #[inline]
    pub(crate) fn woke(&self) {
        let awake = self.awake.load(Relaxed) + 1;
        self.awake.store(awake, Relaxed);
        if awake == WORTH_A_HELPER && !Pages::global().has_helper() {
            Pages::global().wake_helper();
        }
    }

    /// A slab leaves its list. Inside the gate.
    #[inline]
    pub(crate) fn left(&self, slab: &S, next: *const S) {
        self.awake.store(self.awake.load(Relaxed) - 1, Relaxed);
        if core::ptr::eq(self.next.get(), slab) {
            self.next.set(next);
        }
    }
}
