//! Where the memory of blocks and large objects comes from. It is extents of the page layer, or memory
//! objects of the process's pager if the user has limited the number of page frames
//! ([`vellum_pager::process`]).
//!
//! The first question settles which of the two, for good: a heap has one span. Descriptors, lists and bitmaps
//! are always the page layer's, so that a collection waits for a paged-out page only where it scans an
//! object.
//!
//! A block that is kept for later and holds nothing is *vacant*. Where blocks are paged, the pager learns of
//! it (`vellum_pages`, [`Pages::vacate`]). It takes the frames of vacant blocks before all others, without
//! writing them and without reading them back (Cooper, section 4.1), unless the user has chosen otherwise.
//!
//! Elsewhere kept blocks are not reported: they are few, and telling the kernel costs more than it saves
//! while there is memory. Where memory is short, or a mode is chosen, blocks are *left* wherever they lie,
//! many at a time. These are the blocks that a drifting heap leaves behind, and those that `vacancy` names.
//!
//! # Invariants
//! * The span never changes, not even in a forked child: there memory objects are ordinary memory.

use crate::space::block::Address;
use crate::space::size_class::BLOCK;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vellum_pager::{Available, Pager, process};
use vellum_pages::{Elsewhere, Pages, Request};
use vellum_sys::Span;
use vellum_sys::usage::{self, Met};

/// Which of the two was settled.
static GROUND: AtomicU32 = AtomicU32::new(UNSETTLED);
const UNSETTLED: u32 = 0;
const PAGES: u32 = 1;
const PAGER: u32 = 2;

/// Whether any blocks were ever left.
static LEFT: AtomicBool = AtomicBool::new(false);

/// How the page layer reports vacant blocks to the pager.
static LAYER: Elsewhere = Elsewhere {
    owns: |address| process::pager().owns(address.ptr()),
    // SAFETY: the page layer vouches for the range: it was reported as vacant, so that nobody needs it.
    mark: |range| unsafe { process::pager().mark(range) },
    // SAFETY: the range was reported as vacant: nobody needs it, and nobody writes there.
    flush: |range| unsafe { process::pager().flush(range) },
    need: |range| process::pager().need(range),
};

fn at(address: Address) -> *const u8 {
    core::ptr::with_exposed_provenance(address)
}

/// The pager, if blocks are its memory objects.
#[inline]
fn pager() -> Option<&'static Pager> {
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

/// Whether blocks are paged. Then only the program can report its writes there: the kernel tracks no writes
/// to pages of a file.
pub(crate) fn is_paged() -> bool {
    pager().is_some()
}

/// The addresses that blocks can have: the first, and how many bytes.
pub(crate) fn span() -> (usize, usize) {
    let span = pager().map_or_else(|| Pages::global().span(), Pager::span);
    (span.start.get(), span.bytes)
}

/// Bytes of frames that are free, and bytes of memory objects that are in the store only. `None` unless this
/// process pages blocks.
pub(crate) fn frames() -> Option<Available> {
    pager().and_then(Pager::available)
}

/// What this process has met. Where blocks are paged, faults are pages read from the store: the kernel counts
/// the first touch of each page as a major fault there.
pub(crate) fn met() -> Met {
    read_instead(usage::met(), usage::read_pages)
}

/// What the calling thread has met, likewise.
pub(crate) fn thread_met() -> Met {
    read_instead(usage::thread_met(), usage::thread_read_pages)
}

fn read_instead(met: Met, read: fn() -> u64) -> Met {
    if is_paged() { Met { faults: read(), ..met } } else { met }
}

/// `bytes` bytes for a block or a large object, at a multiple of [`BLOCK`]; zeros, if `zero`. `None` if there
/// is no memory.
pub(crate) fn take(bytes: usize, zero: bool) -> Option<Address> {
    match pager() {
        Some(pager) => pager.create(bytes, BLOCK, zero).ok().map(|start| start.as_ptr() as Address),
        None => {
            let extent = Pages::global().alloc(Request { bytes, align: BLOCK, zero }).ok()?;
            Some(extent.addr.as_ptr() as Address)
        }
    }
}

/// Gives back memory that [`take`] has taken. Not while the world is stopped.
pub(crate) fn give_back(start: Address) {
    let Some(start) = NonNull::new(core::ptr::with_exposed_provenance_mut::<u8>(start)) else { return };
    let is_given = match pager() {
        // SAFETY: the heap's own object, which nothing leads to any more.
        Some(pager) => unsafe { pager.destroy(start) }.is_ok(),
        None => {
            // A block that the page layer hands out again must not be flushed.
            occupy(start.as_ptr() as Address);
            // SAFETY: the heap's own extent, which nothing leads to any more.
            unsafe { Pages::global().free(start) }.is_ok()
        }
    };
    debug_assert!(is_given, "{start:p} is no extent of the heap's");
}

/// Reports the block at `start` as kept and empty; it may be reported already. Not while the world is
/// stopped.
pub(crate) fn vacate(start: Address) {
    if pager().is_some_and(|pager| !pager.is_marked(at(start))) {
        // SAFETY: nothing leads to the block until it is asked for again.
        unsafe { Pages::global().vacate(Span::at(at(start), BLOCK)) };
    }
}

/// Reports the blocks at `units` as empty and not needed soon. Neighbours that follow each other in the list
/// are reported together. Not while the world is stopped.
pub(crate) fn leave(units: &[Address]) {
    if units.is_empty() {
        return;
    }
    LEFT.store(true, Ordering::Release);
    for (start, bytes) in runs(units) {
        // SAFETY: nothing leads to these blocks until they are asked for again.
        unsafe { Pages::global().vacate(Span::at(at(start), bytes)) };
    }
}

/// Takes that back: the blocks will be used soon.
pub(crate) fn occupy_all(units: &[Address]) {
    if LEFT.load(Ordering::Acquire) {
        runs(units).for_each(|(start, bytes)| Pages::global().occupy(Span::at(at(start), bytes)));
    }
}

/// The stretches of neighbours among blocks, upwards or downwards: where each starts, and its bytes.
fn runs(units: &[Address]) -> impl Iterator<Item = (Address, usize)> {
    units
        .chunk_by(|&unit, &next| unit.abs_diff(next) == BLOCK)
        .map(|run| (run[0].min(run[run.len() - 1]), run.len() * BLOCK))
}

/// Reports the block at `start`, vacant perhaps, as about to be used. Its contents are undefined.
pub(crate) fn occupy(start: Address) {
    if is_paged() || LEFT.load(Ordering::Acquire) {
        Pages::global().occupy(Span::at(at(start), BLOCK));
    }
}
