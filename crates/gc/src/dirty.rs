//! Which parts of the heap were written to since they were last looked at: what a trace in slices has to look at again.
//!
//! Two sources, one of them for a cycle:
//!
//! * [the kernel's account](vellum_sys::track) of written pages, which needs nothing of the program;
//! * *cards*, one byte a page, which the program sets itself at each store of a pointer (`vel_gc_write` of the header).
//!
//! ```text
//! begin, arm ──▶ nothing is written    enter: a block or large object came to the heap while it is on
//! each  ──▶ calls back with parts that were written, oldest address first; with `again`, they count as unwritten now
//! ```
//!
//! Arming, and letting go, cost some 60 ns a page and are made in pieces, too.
//!
//! # Invariants
//! * What is written after `arm` reached its end, or after `each` took it, is reported by a later `each`: a page too much is allowed, one too few is not.
//! * Blocks without pointers are passed over.
//! * When anything fails ([`Dirty::is_lost`]) everything counts as written.

use crate::block::Scan;
use crate::class::BLOCK;
use crate::space::Space;
use crate::thread;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use vellum_pages::{Buffer, HUGE, PAGE, Plain};
use vellum_sys::caps::{self, Caps};
use vellum_sys::map;
use vellum_sys::track::{Tracker, Written};
use vellum_sys::{round_down, round_up};

/// Bytes looked at by one call of [`Dirty::each`] at most: how far a slice can overshoot.
pub(crate) const STEP: usize = 512 << 10;

/// Parts are let go of in whole huge pages, in which they were covered.
const LET_GO: usize = 4 * HUGE;
/// Ranges the kernel reports at a time.
const RANGES: usize = 64;
/// Blocks without pointers in a row that are worth leaving out.
const GAP_BLOCKS: usize = 4;

/// The card of the page at address 0, for `vel_gc_write`: null while there are no cards.
///
/// `cards[address >> 12]` is the card of `address`. The pointer itself is mostly no valid one.
#[unsafe(no_mangle)]
static vel_gc_cards: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// A range of addresses that the kernel tracks.
#[derive(Clone, Copy, Debug)]
struct Covered {
    start: usize,
    end: usize,
}

// SAFETY: two addresses.
unsafe impl Plain for Covered {}

/// Where it is known from.
enum Source {
    /// The kernel, in these parts of the address space.
    Kernel(Tracker, Buffer<Covered>),
    /// The program.
    Cards,
}

/// See the head of this file.
pub(crate) struct Dirty {
    source: Source,
    lost: bool,
}

/// Stores `value` at `place`, within an object, and tells the collector.
///
/// # Safety
/// The place may be written.
pub unsafe fn write(place: *mut usize, value: usize) {
    let cards = vel_gc_cards.load(Ordering::Relaxed);
    // SAFETY: by this function's condition. Volatile: the collector reads what the compiler thinks nobody does.
    unsafe { place.write_volatile(value) };
    if !cards.is_null() {
        // SAFETY: the cards of objects lie within the table.
        unsafe { cards.wrapping_add(place.expose_provenance() / PAGE).write_volatile(1) };
    }
}

/// Makes the cards for the addresses of `space`; false if there is no address space for them.
pub(crate) fn make_cards(space: &Space) -> bool {
    let (base, bytes) = space.span();
    let Ok(start) = map::reserve_readable(bytes / PAGE) else { return false };
    // SAFETY: reserved a moment ago, nobody knows of it.
    if unsafe { map::make_writable(start, bytes / PAGE) }.is_err() {
        return false;
    }
    let biased = start.wrapping_sub(base / PAGE);
    vel_gc_cards.store(core::ptr::with_exposed_provenance_mut(biased), Ordering::Release);
    true
}

/// The cards of the pages from `start` up to `end`.
fn cards(start: usize, end: usize) -> (*mut u8, usize) {
    let first = round_down(start, PAGE) / PAGE;
    (vel_gc_cards.load(Ordering::Acquire).wrapping_add(first), round_up(end, PAGE) / PAGE - first)
}

impl Dirty {
    /// Whether [`Dirty::begin`] is worth trying.
    pub(crate) fn is_available() -> bool {
        caps::has(Caps::TRACK) || !vel_gc_cards.load(Ordering::Relaxed).is_null()
    }

    /// Begins: nothing is looked at yet. `None`: that cannot be had here and now.
    pub(crate) fn begin() -> Option<Dirty> {
        if !vel_gc_cards.load(Ordering::Acquire).is_null() {
            return Some(Dirty { source: Source::Cards, lost: false });
        }
        let tracker = Tracker::new().ok()?;
        Some(Dirty { source: Source::Kernel(tracker, Buffer::new()), lost: false })
    }

    /// Takes the next [`STEP`] bytes of the heap from `from` on for unwritten, with the world stopped. Where to go on; `None` at the
    /// end, or when it cannot be had ([`Dirty::is_lost`]).
    pub(crate) fn arm(&mut self, space: &Space, from: usize) -> Option<usize> {
        let (start, end) = run(space, from, STEP)?;
        match &mut self.source {
            Source::Kernel(tracker, covered) => {
                self.lost |= !cover(tracker, covered, start, end) || tracker.arm(start, end - start).is_err();
            }
            Source::Cards => {
                let (first, count) = cards(start, end);
                // SAFETY: the cards of blocks lie within the table.
                unsafe { first.write_bytes(0, count) };
            }
        }
        (!self.lost).then_some(end)
    }

    /// Lets go of the next [`LET_GO`] bytes; false at the end. What is left is let go of when this is dropped.
    pub(crate) fn let_go(&mut self) -> bool {
        let Source::Kernel(tracker, covered) = &mut self.source else { return false };
        let Some(last) = covered.last_mut() else { return false };
        let start = last.start.max(last.end.saturating_sub(LET_GO));
        let is_gone = tracker.uncover(start, last.end - start).is_ok();
        last.end = start;
        if start == last.start {
            covered.truncate(covered.len() - 1);
        }
        is_gone
    }

    /// Everything counts as written.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// `bytes` bytes from `start` came to the heap. They count as written until taken.
    pub(crate) fn enter(&mut self, start: usize, bytes: usize) {
        match &mut self.source {
            Source::Kernel(tracker, covered) => self.lost |= !cover(tracker, covered, start, start + bytes),
            Source::Cards => set_cards(start, start + bytes),
        }
    }

    /// A thread is to allocate from a block: that it is written need not cost faults.
    pub(crate) fn expect(&mut self, start: usize, bytes: usize) {
        match &self.source {
            // It is only dearer if this fails.
            Source::Kernel(tracker, _) => _ = tracker.disarm(start, bytes),
            Source::Cards => set_cards(start, start + bytes),
        }
    }

    /// A slice ends. New objects are filled in without cards being set, so that the blocks that threads allocate from
    /// count as written.
    pub(crate) fn rest(&mut self, slots: usize) {
        if let Source::Cards = self.source {
            for thread in thread::known() {
                thread.blocks(slots).for_each(|block| {
                    let base = block.base.get();
                    set_cards(base, base + block.extent.get());
                });
            }
        }
    }

    /// Calls `visit` with written parts of the heap from `from` on, within the next [`STEP`] bytes of it. Returns where to go on;
    /// `None` at the end.
    pub(crate) fn each(
        &mut self,
        space: &Space,
        from: usize,
        again: bool,
        mut visit: impl FnMut(usize, usize),
    ) -> Option<usize> {
        let (start, end) = run(space, from, STEP)?;
        match &self.source {
            Source::Kernel(tracker, _) => {
                let mut found = [Written::default(); RANGES];
                let Ok((count, walked)) = tracker.take(start, end, again, &mut found) else {
                    self.lost = true;
                    return None;
                };
                found[..count].iter().for_each(|range| visit(range.start, range.end));
                Some(walked.max(start + PAGE))
            }
            Source::Cards => {
                let (first, count) = cards(start, end);
                for page in 0..count {
                    // SAFETY: the cards of blocks lie within the table. Volatile: programs set them meanwhile, but the world stands still.
                    unsafe {
                        let card = first.add(page);
                        if card.read_volatile() != 0 {
                            if again {
                                card.write_volatile(0);
                            }
                            visit(start + page * PAGE, start + (page + 1) * PAGE);
                        }
                    }
                }
                Some(end)
            }
        }
    }
}

fn set_cards(start: usize, end: usize) {
    let (first, count) = cards(start, end);
    // SAFETY: the cards of blocks lie within the table.
    unsafe { first.write_bytes(1, count) };
}

/// Has the kernel track what it does not yet of `start..end`: whole huge pages around it, which the page layer maps whole, so
/// that few map entries are spent.
fn cover(tracker: &Tracker, covered: &mut Buffer<Covered>, start: usize, end: usize) -> bool {
    let (start, end) = (round_down(start, HUGE), round_up(end, HUGE));
    let mut at = start;
    while at < end {
        if let Some(known) = covered.iter().find(|known| known.start <= at && at < known.end) {
            at = known.end;
            continue;
        }
        let to = covered.iter().map(|known| known.start).filter(|&start| start > at).fold(end, usize::min);
        if covered.reserve(1).is_err() || tracker.cover(at, to - at).is_err() {
            return false;
        }
        match covered.iter_mut().find(|known| known.end == at) {
            Some(known) => known.end = to,
            None => _ = covered.push(Covered { start: at, end: to }),
        }
        at = to;
    }
    true
}

/// The first run of neighbouring blocks with pointers that ends above `from`; it may begin within a block, and hold a few
/// blocks without. At most `bytes` bytes of it.
fn run(space: &Space, from: usize, bytes: usize) -> Option<(usize, usize)> {
    let mut found: Option<(usize, usize)> = None;
    let mut at = from;
    while let Some(block) = space.next(at) {
        let (base, stop) = (block.base.get(), block.base.get() + block.extent.get());
        // `at` is where the block before ended.
        if found.is_some() && base > at {
            break;
        }
        match (&mut found, block.scan.get() == Scan::Nothing) {
            (Some((_, end)), true) if stop - *end > GAP_BLOCKS * BLOCK => break,
            (_, true) => {}
            (Some((_, end)), false) => *end = stop,
            (None, false) if stop > from => found = Some((base.max(from), stop)),
            (None, false) => {}
        }
        at = round_up(stop, BLOCK);
        if found.is_some_and(|(start, end)| end - start >= bytes) {
            break;
        }
    }
    found.map(|(start, end)| (start, end.min(start.saturating_add(bytes))))
}
