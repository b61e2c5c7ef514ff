//! Flags that are set when memory is short. Users of units (64 KiB) read them, and can then give back pages
//! inside their units.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) struct Shortage {
    is_short: AtomicBool,
    is_sparse: AtomicBool,
}

impl Shortage {
    pub(crate) const fn new() -> Shortage {
        Shortage { is_short: AtomicBool::new(false), is_sparse: AtomicBool::new(false) }
    }

    pub(crate) fn note_short(&self) {
        self.is_short.store(true, Relaxed);
    }

    pub(crate) fn was_short(&self) -> bool {
        self.is_short.swap(false, Relaxed)
    }

    pub(crate) fn note_sparse(&self, is_sparse: bool) {
        self.is_sparse.store(is_sparse, Relaxed);
    }

    pub(crate) fn is_sparse(&self) -> bool {
        self.is_sparse.load(Relaxed)
    }
}
