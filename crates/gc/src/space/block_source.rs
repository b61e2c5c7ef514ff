//! The source of memory for blocks and large objects. If the user has limited the page frames, it comes from
//! the process's pager ([`vellum_pager::process`]) as memory objects (paged ranges), else from the page layer
//! as extents.
//!
//! The first request decides between the two, for good: a heap has one span. Descriptors, lists and bitmaps
//! always come from the page layer, so that a collection waits for a paged-out page only where it scans an
//! object.
//!
//! A block that is kept for later and holds nothing is *vacant*. Vacant blocks are reported to the pager if
//! there is one (`vellum_pages`, [`Pages::vacate`]). By default the pager takes their frames before all
//! others, and neither writes their pages nor reads them back (Cooper, Nettles and Subramanian 1992, section
//! 4.1).
//!
//! Without a pager, kept blocks are not reported while there is memory: they are few, and a report to the
//! kernel costs more than it saves. If memory is short, or the user has chosen a mode, many blocks are
//! reported at a time (*left*): those that a drifting heap leaves behind, and those named in `vacancy`.
//!
//! # Invariants
//! * The span never changes, not even in a forked child: there memory objects are ordinary memory.

use crate::process::ground::{is_paged, pager};
use crate::space::size_class::BLOCK;
use core::cell::Cell;
use core::ptr::NonNull;
use vellum_pager::{Available, Pager};
use vellum_pages::{Pages, Request};
use vellum_sys::usage::{self, Met};
use vellum_sys::{Addr, Span};

/// The addresses that blocks can have.
pub(crate) fn span() -> Span {
    pager().map_or_else(|| Pages::global().span(), Pager::span)
}

/// Bytes of frames that are free, and bytes of memory objects that are in the store only. `None` unless this
/// process pages blocks.
pub(crate) fn frames() -> Option<Available> {
    pager().and_then(Pager::available)
}

/// The faults and switches that this process has met. With a pager, faults are pages read from the store, as
/// the kernel counts the first touch of each page as a major fault.
pub(crate) fn met() -> Met {
    read_instead(usage::met(), usage::read_pages)
}

/// [`met`] of the calling thread.
pub(crate) fn thread_met() -> Met {
    read_instead(usage::thread_met(), usage::thread_read_pages)
}

fn read_instead(met: Met, read: fn() -> u64) -> Met {
    if is_paged() { Met { faults: read(), ..met } } else { met }
}

/// `bytes` bytes for a block or a large object, at a multiple of [`BLOCK`]; zeros, if `zero`. `None` without
/// memory.
pub(crate) fn take(bytes: usize, zero: bool) -> Option<Addr> {
    match pager() {
        Some(pager) => pager.create(bytes, BLOCK, zero).ok().map(|start| Addr::of(start.as_ptr())),
        None => {
            let extent = Pages::global().alloc(Request { bytes, align: BLOCK, zero }).ok()?;
            Some(Addr::of(extent.addr.as_ptr()))
        }
    }
}

/// Reports the block at `start` as kept and empty, perhaps once more. Not while the world is stopped.
pub(crate) fn vacate(start: Addr) {
    if pager().is_some_and(|pager| !pager.is_marked(start.ptr())) {
        // SAFETY: nothing leads to the block until it is asked for again.
        unsafe { Pages::global().vacate(Span::new(start, BLOCK)) };
    }
}

/// The stretches of neighbours among blocks, upwards or downwards.
fn runs(units: &[Addr]) -> impl Iterator<Item = Span> {
    units
        .chunk_by(|&unit, &next| unit + BLOCK == next || next + BLOCK == unit)
        .map(|run| Span::new(run[0].min(run[run.len() - 1]), run.len() * BLOCK))
}

/// Gives memory back, and reports vacant blocks.
#[derive(Debug)]
pub(crate) struct BlockSource {
    /// True if any blocks were ever left.
    left: Cell<bool>,
}

impl BlockSource {
    pub(crate) const fn new() -> BlockSource {
        BlockSource { left: Cell::new(false) }
    }

    /// Gives back memory that [`take`] has taken. Not while the world is stopped.
    pub(crate) fn give_back(&self, start: Addr) {
        let Some(start) = NonNull::new(start.ptr::<u8>()) else { return };
        let is_given = match pager() {
            // SAFETY: the heap's own object, which nothing leads to any more.
            Some(pager) => unsafe { pager.destroy(start) }.is_ok(),
            None => {
                // A block that the page layer hands out again must not be flushed.
                self.occupy(Addr::of(start.as_ptr()));
                // SAFETY: the heap's own extent, which nothing leads to any more.
                unsafe { Pages::global().free(start) }.is_ok()
            }
        };
        debug_assert!(is_given, "{start:p} is no extent of the heap's");
    }

    /// Reports the blocks at `units` as empty and not needed soon. Neighbours that follow each other in the
    /// list are reported together. Not while the world is stopped.
    pub(crate) fn leave(&self, units: &[Addr]) {
        if units.is_empty() {
            return;
        }
        self.left.set(true);
        for run in runs(units) {
            // SAFETY: nothing leads to these blocks until they are asked for again.
            unsafe { Pages::global().vacate(run) };
        }
    }

    /// Takes that back: the blocks will be used soon.
    pub(crate) fn occupy_all(&self, units: &[Addr]) {
        if self.left.get() {
            runs(units).for_each(|run| Pages::global().occupy(run));
        }
    }

    /// Reports the block at `start`, vacant perhaps, as about to be used. Its contents are undefined.
    pub(crate) fn occupy(&self, start: Addr) {
        if is_paged() || self.left.get() {
            Pages::global().occupy(Span::new(start, BLOCK));
        }
    }
}
