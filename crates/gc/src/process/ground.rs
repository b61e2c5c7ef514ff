//! The provider of memory for heaps: the process's pager ([`vellum_pager::process`]) if it has one, else the
//! page layer (`vellum_pages`).
//!
//! # Invariants
//! * The first query decides between the two, for good, even in a forked child.

use core::sync::atomic::{AtomicU32, Ordering};
use vellum_pager::{Pager, process};
use vellum_pages::{Elsewhere, Pages};

/// Which of the two it is.
static GROUND: AtomicU32 = AtomicU32::new(UNSETTLED);
const UNSETTLED: u32 = 0;
const PAGES: u32 = 1;
const PAGER: u32 = 2;

/// The functions by which the page layer reports vacant blocks to the pager.
static LAYER: Elsewhere = Elsewhere {
    owns: |address| process::pager().owns(address.ptr()),
    // SAFETY: the page layer vouches for the range: it was reported as vacant, so that nobody needs it.
    mark: |range| unsafe { process::pager().mark(range) },
    // SAFETY: the range was reported as vacant: nobody needs it, and nobody writes there.
    flush: |range| unsafe { process::pager().flush(range) },
    need: |range| process::pager().need(range),
};

/// The pager, if blocks are its memory objects.
#[inline]
pub(crate) fn pager() -> Option<&'static Pager> {
    match GROUND.load(Ordering::Acquire) {
        PAGES => None,
        PAGER => Some(process::pager()),
        _ => settle(),
    }
}

#[cold]
fn settle() -> Option<&'static Pager> {
    let ready = process::ready();
    let ground = if ready.is_some() { PAGER } else { PAGES };
    if ready.is_some() {
        Pages::global().discards_elsewhere(&LAYER);
    }
    // Two threads that ask at once find the same.
    GROUND.store(ground, Ordering::Release);
    ready
}

/// Returns whether blocks are paged. Then only the program can report its writes there: the kernel tracks no
/// writes to pages of a file.
pub(crate) fn is_paged() -> bool {
    pager().is_some()
}
