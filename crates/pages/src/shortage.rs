//! Whether memory is short, for those who use units and could give back pages inside them.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether memory was found short and nobody has asked since.
static SHORT: AtomicBool = AtomicBool::new(false);
/// Whether there are pages inside units that could go.
static SPARSE: AtomicBool = AtomicBool::new(false);

pub(crate) fn note_short() {
    SHORT.store(true, Relaxed);
}

/// Whether memory was short since the last call.
pub(crate) fn was_short() -> bool {
    SHORT.swap(false, Relaxed)
}

/// Notes whether there are pages inside units that could go.
pub(crate) fn note_sparse(is_sparse: bool) {
    SPARSE.store(is_sparse, Relaxed);
}

/// Whether there are pages inside units that could go.
pub(crate) fn is_sparse() -> bool {
    SPARSE.load(Relaxed)
}
