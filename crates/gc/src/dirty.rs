//! Which parts of the heap were written to since they were last looked at: what a trace in slices has to look at again.
//!
//! Three sources, one of them for a cycle:
//!
//! * *cards*, one byte a page, which the program sets itself at each store of a pointer (`vel_gc_write` of the header), if it has said so;
//! * [the kernel's account](vellum_sys::track) of written pages, which needs nothing of the program;
//! * [page protection](vellum_sys::guard) where the kernel has none. The program meets it, so it never lasts beyond a cycle, and touches exactly the
//!   blocks with pointers: reading into atomic objects works.
//!
//! ```text
//! begin, arm ──▶ nothing is written    enter: a block or large object came to the heap while it is on
//! look  ──▶ the next part that was written, lowest address first; with `again`, what it finds counts as unwritten now
//! ```
//!
//! Arming, and letting go, cost some 60 ns a page and are made in pieces, too. The first write to a page that was armed costs ten times
//! that; so pages that are about to be written, because a thread is to allocate there, are taken for written beforehand ([`Dirty::expect`]).
//!
//! # Invariants
//! * What is written after `arm` reached its end, or after `look` took it, is reported by a later `look`: a page too much is allowed, one too few is not.
//! * Blocks without pointers are passed over.
//! * What `look` has taken and not reported yet waits, and is reported first.
//! * When anything fails ([`Dirty::is_lost`]) everything counts as written.
//!
//! Heaps that check themselves compare what the account says with what pages hold ([`sums`](crate::sums)).

use crate::block::{Block, Scan};
use crate::class::BLOCK;
use crate::ground;
use crate::space::Space;
use crate::sums::Sums;
use crate::thread;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use vellum_pages::{Buffer, HUGE, PAGE, Plain};
use vellum_sys::caps::{self, Caps};
use vellum_sys::track::{Tracker, Written};
use vellum_sys::{guard, map};
use vellum_sys::{round_down, round_up};

/// Bytes that one call looks at, or arms, at most. Whole huge pages where it can be: a huge page that is armed in part is split.
const STEP: usize = 2 * HUGE;
/// Bytes of what was written that are reported at a time: how far a slice can overshoot.
const PIECE: usize = 16 * PAGE;
/// Bytes taken for written at a time where blocks follow each other that will be allocated from: a call costs as much as fifty pages of it.
pub(crate) const EXPECT_MAX: usize = 1 << 20;
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

/// Which blocks are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All that have pointers.
    All,
    /// Those of the old region (`appel`) that have pointers …
    Old,
    /// … of untyped objects …
    OldUntyped,
    /// … and of typed ones.
    OldTyped,
}

impl Which {
    /// Whether a block is one of them.
    pub(crate) fn is(self, block: &Block) -> bool {
        let scan = block.scan.get();
        match self {
            Which::All => scan != Scan::Nothing,
            Which::Old => block.is_old() && scan != Scan::Nothing,
            Which::OldUntyped => block.is_old() && scan == Scan::Words,
            Which::OldTyped => block.is_old() && scan != Scan::Words && scan != Scan::Nothing,
        }
    }
}

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
    /// Page protection, of these parts.
    Guard(Buffer<Covered>),
    /// The program.
    Cards,
}

/// See the head of this file.
pub(crate) struct Dirty {
    source: Source,
    lost: bool,
    /// What was found and not reported yet: the last of these, from the first on.
    found: [Written; RANGES],
    waiting: usize,
    /// Addresses that count as written already.
    expected: (usize, usize),
    /// Bytes that were handed out to be written since [`Dirty::surprises`] was asked last.
    handed_out: usize,
    /// In a heap that checks itself: what unwritten pages held.
    sums: Option<Sums>,
    /// A page that had not been written, by this account, held something else.
    has_missed: bool,
}

/// What [`Dirty::look`] has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// This part was written.
    Written(usize, usize),
    /// Nothing so far; there is more to look at.
    On,
    End,
}

/// Stores `value` at `place`, within an object, and tells the collector.
///
/// # Safety
/// The place may be written.
pub unsafe fn write(place: *mut usize, value: usize) {
    // SAFETY: by this function's condition. Volatile: the collector reads what the compiler thinks nobody does.
    unsafe { place.write_volatile(value) };
    // SAFETY: by this function's condition.
    unsafe { wrote(place) };
}

/// Tells the collector that a pointer was stored at `place`.
///
/// # Safety
/// The place is a word of an object.
#[inline]
pub unsafe fn wrote(place: *const usize) {
    let cards = vel_gc_cards.load(Ordering::Relaxed);
    if !cards.is_null() {
        // SAFETY: the cards of objects lie within the table.
        unsafe { cards.wrapping_add(place.expose_provenance() / PAGE).write_volatile(1) };
    }
}

/// Makes the cards for the addresses of `space`; false if there is no address space for them.
pub(crate) fn make_cards(space: &Space) -> bool {
    let (base, bytes) = space.span();
    let Ok(start) = map::reserve_writable(bytes / PAGE) else { return false };
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
        let has_cards = !vel_gc_cards.load(Ordering::Relaxed).is_null();
        has_cards || !ground::is_paged() && (caps::has(Caps::TRACK) || caps::has(Caps::PROTECT))
    }

    /// Whether the program's writes must be let through: see [`guard::let_through`].
    pub(crate) fn may_protect() -> bool {
        Dirty::is_available()
            && !caps::has(Caps::TRACK)
            && caps::has(Caps::PROTECT)
            && vel_gc_cards.load(Ordering::Relaxed).is_null()
    }

    /// Whether [`Dirty::begin_lasting`] is worth trying.
    pub(crate) fn is_lasting() -> bool {
        let has_cards = !vel_gc_cards.load(Ordering::Relaxed).is_null();
        has_cards || !ground::is_paged() && caps::has(Caps::TRACK)
    }

    /// Whether [`Dirty::begin_lasting`] means that the kernel is asked, which costs calls of it at each collection.
    pub(crate) fn asks_the_kernel() -> bool {
        vel_gc_cards.load(Ordering::Relaxed).is_null()
    }

    /// Begins, for objects in `space`: nothing is looked at yet. `None`: that cannot be had here and now.
    pub(crate) fn begin(space: &Space) -> Option<Dirty> {
        Dirty::begin_lasting().or_else(|| {
            if ground::is_paged() {
                return None;
            }
            let (base, bytes) = space.span();
            guard::open(base, bytes).ok()?;
            Some(Dirty::of(Source::Guard(Buffer::new())))
        })
    }

    /// The same of one that goes on between collections.
    pub(crate) fn begin_lasting() -> Option<Dirty> {
        if !vel_gc_cards.load(Ordering::Acquire).is_null() {
            return Some(Dirty::of(Source::Cards));
        }
        if ground::is_paged() {
            return None;
        }
        let tracker = Tracker::new().ok()?;
        Some(Dirty::of(Source::Kernel(tracker, Buffer::new())))
    }

    fn of(source: Source) -> Dirty {
        let found = [Written::default(); RANGES];
        let (lost, has_missed) = (false, false);
        Dirty { source, lost, found, waiting: 0, expected: (0, 0), handed_out: 0, sums: None, has_missed }
    }

    /// Has the account checked from now on, before anything was armed. What the program says itself is taken at its word.
    pub(crate) fn check(&mut self, space: &Space) {
        if !matches!(self.source, Source::Cards) {
            self.sums = Sums::new(space);
        }
    }

    /// Whether no page was found written that counted as unwritten.
    ///
    /// # Errors
    /// Names what is broken.
    pub(crate) fn check_told(&self) -> Result<(), &'static str> {
        if self.has_missed { Err("whatever is written is accounted for") } else { Ok(()) }
    }

    /// Takes the next [`STEP`] bytes of such blocks from `from` on for unwritten, with the world stopped. Where to go on; `None` at the
    /// end, or when it cannot be had ([`Dirty::is_lost`]).
    pub(crate) fn arm(&mut self, space: &Space, from: usize, which: Which) -> Option<usize> {
        self.waiting = 0;
        self.expected = (0, 0);
        let (start, end) = run(space, from, STEP, self.is_exact(), which)?;
        match &mut self.source {
            Source::Guard(parts) => {
                self.lost |= !add(parts, start, end) || guard::arm(start, end).is_err();
            }
            Source::Kernel(tracker, covered) => {
                self.lost |=
                    cover(tracker, covered, start, end).is_none() || tracker.arm(start, end).is_err();
            }
            Source::Cards => {
                let (first, count) = cards(start, end);
                // SAFETY: the cards of blocks lie within the table.
                unsafe { first.write_bytes(0, count) };
            }
        }
        if let Some(sums) = &self.sums {
            sums.note(start, end);
        }
        (!self.lost).then_some(end)
    }

    /// Has the kernel track all blocks there are, so that [`Dirty::arm`] of any of them takes no memory. The world still runs.
    pub(crate) fn cover_all(&mut self, space: &Space) {
        let mut from = 0;
        while let Some((start, end)) = run(space, from, usize::MAX, false, Which::All) {
            if let Source::Kernel(tracker, covered) = &mut self.source {
                self.lost |= cover(tracker, covered, start, end).is_none();
            }
            from = end;
        }
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

    /// The bytes from `start` up to `end` may be asked for later; until then it does not matter what is written there.
    pub(crate) fn cover(&mut self, start: usize, end: usize) {
        if let Source::Kernel(tracker, covered) = &mut self.source {
            self.lost |= cover(tracker, covered, start, end).is_none();
        }
    }

    /// It does not matter any more what is written from `start` up to `end`: writing there is to cost nothing. The world may stand still.
    pub(crate) fn release(&mut self, start: usize, end: usize) {
        if let Source::Kernel(tracker, _) = &self.source {
            // A refusal costs the program a fault for each page, once.
            let _ = tracker.disarm(start, end - start);
        }
    }

    /// The bytes from `start` up to `end` came to the heap, and are about to be written. They count as written until taken. `ahead` lies
    /// around them, and will come soon.
    pub(crate) fn enter(&mut self, start: usize, end: usize, ahead: (usize, usize)) {
        self.handed_out += end - start;
        if let Some(sums) = &self.sums {
            sums.forget(start, end);
        }
        match &mut self.source {
            Source::Kernel(tracker, covered) => match cover(tracker, covered, start, end) {
                // What nobody has covered is not armed either.
                Some(true) => {}
                Some(false) => self.take_for_written(start, end, ahead),
                None => self.lost = true,
            },
            Source::Guard(parts) => {
                self.lost |= !add(parts, start, end);
                guard::note(start, end);
            }
            Source::Cards => set_cards(start, end),
        }
    }

    /// A thread is to allocate from a block, from `start` up to `end`: that it is written need not cost faults. `ahead` lies around it, and
    /// will be next.
    pub(crate) fn expect(&mut self, start: usize, end: usize, ahead: (usize, usize)) {
        self.handed_out += end - start;
        self.take_for_written(start, end, ahead);
    }

    fn take_for_written(&mut self, start: usize, end: usize, ahead: (usize, usize)) {
        match &self.source {
            Source::Kernel(tracker, _) => {
                if self.expected.0 <= start && end <= self.expected.1 {
                    return;
                }
                // It is only dearer if this fails: nobody may have covered what lies ahead.
                let is_done = |(start, end): (usize, usize)| tracker.disarm(start, end - start).is_ok();
                self.expected = if is_done(ahead) { ahead } else { (start, end) };
                if self.expected != ahead {
                    is_done((start, end));
                }
            }
            // A fault for four blocks costs less than two map entries for each.
            Source::Guard(_) => {}
            Source::Cards => set_cards(start, end),
        }
    }

    /// Whether it can go on between cycles.
    pub(crate) fn can_go_on(&self) -> bool {
        !self.lost && !matches!(self.source, Source::Guard(_))
    }

    /// Whether it is told by page protection.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.source, Source::Guard(_))
    }

    /// Of `written` bytes found since this was asked last, the pages that nobody had said would be written: each has cost the program a fault.
    pub(crate) fn surprises(&mut self, written: usize) -> usize {
        let surprising = written.saturating_sub(core::mem::take(&mut self.handed_out));
        if matches!(self.source, Source::Kernel(..)) { surprising / PAGE } else { 0 }
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

    /// The next written part of such blocks from `from` on, which goes on; with `again`, what is found counts as unwritten from now on.
    pub(crate) fn look(&mut self, space: &Space, from: &mut usize, again: bool, which: Which) -> Look {
        if let Some(range) = self.found[..self.waiting].last_mut() {
            let (start, end) = (range.start, range.end.min(range.start + PIECE));
            range.start = end;
            if end == range.end {
                self.waiting -= 1;
            }
            return Look::Written(start, end);
        }
        let Some((start, end)) = run(space, *from, STEP, self.is_exact(), which) else { return Look::End };
        if again {
            self.expected = (0, 0);
        }
        match &self.source {
            Source::Kernel(tracker, _) => match tracker.take(start, end, again, &mut self.found) {
                Ok((count, walked)) => {
                    self.waiting = count;
                    *from = walked.max(start + PAGE);
                }
                Err(_) => {
                    self.lost = true;
                    return Look::End;
                }
            },
            Source::Guard(_) => match guard::take(start, end, again, &mut self.found) {
                Ok((count, walked)) => {
                    self.waiting = count;
                    *from = walked;
                }
                Err(_) => {
                    self.lost = true;
                    return Look::End;
                }
            },
            Source::Cards => *from = take_cards(start, end, again, &mut self.found, &mut self.waiting),
        }
        if let Some(sums) = &self.sums {
            let found = &self.found[..self.waiting];
            if again {
                found.iter().for_each(|part| sums.note(part.start, part.end));
            } else {
                let ends = found.iter().map(|part| part.end);
                let gaps = core::iter::once(start)
                    .chain(ends)
                    .zip(found.iter().map(|part| part.start).chain([*from]));
                self.has_missed |= !gaps.into_iter().all(|(start, end)| sums.agrees(start, end));
            }
        }
        // They are reported from the last on.
        self.found[..self.waiting].reverse();
        Look::On
    }
}

impl Drop for Dirty {
    fn drop(&mut self) {
        if let Source::Guard(parts) = &self.source {
            parts.iter().for_each(|part| guard::release(part.start, part.end));
        }
    }
}

/// Notes that `start..end` is protected; false if memory for that is out.
fn add(parts: &mut Buffer<Covered>, start: usize, end: usize) -> bool {
    match parts.last_mut() {
        Some(last) if last.end == start => last.end = end,
        _ => return parts.push(Covered { start, end }).is_ok(),
    }
    true
}

/// Fills `found` with ranges of pages from `start` up to `end` whose cards are set, and clears these if `again`. Where to go on.
fn take_cards(
    start: usize,
    end: usize,
    again: bool,
    found: &mut [Written; RANGES],
    count: &mut usize,
) -> usize {
    let (first, pages) = cards(start, end);
    let base = round_down(start, PAGE);
    let mut last = 0;
    for page in 0..pages {
        // SAFETY: the cards of blocks lie within the table. Volatile: programs set them meanwhile, but the world stands still.
        let card = unsafe { first.add(page).read_volatile() };
        if card == 0 {
            continue;
        }
        let at = base + page * PAGE;
        if *count > 0 && last == at {
            found[*count - 1].end = at + PAGE;
        } else if *count == RANGES {
            return at;
        } else {
            found[*count] = Written::new(at.max(start), at + PAGE);
            *count += 1;
        }
        last = at + PAGE;
        if again {
            // SAFETY: as above.
            unsafe { first.add(page).write_volatile(0) };
        }
    }
    end
}

fn set_cards(start: usize, end: usize) {
    let (first, count) = cards(start, end);
    // SAFETY: the cards of blocks lie within the table.
    unsafe { first.write_bytes(1, count) };
}

/// Has the kernel track what it does not yet of `start..end`: whole huge pages around it, which the page layer maps whole, so
/// that few map entries are spent. Whether nothing of it was tracked before; `None` if that cannot be had.
fn cover(tracker: &Tracker, covered: &mut Buffer<Covered>, start: usize, end: usize) -> Option<bool> {
    let (start, end) = (round_down(start, HUGE), round_up(end, HUGE));
    let (mut at, mut is_new) = (start, true);
    while at < end {
        if let Some(known) = covered.iter().find(|known| known.start <= at && at < known.end) {
            at = known.end;
            is_new = false;
            continue;
        }
        let to = covered.iter().map(|known| known.start).filter(|&start| start > at).fold(end, usize::min);
        if covered.reserve(1).is_err() || tracker.cover(at, to - at).is_err() {
            return None;
        }
        match covered.iter_mut().find(|known| known.end == at) {
            Some(known) => known.end = to,
            None => _ = covered.push(Covered { start: at, end: to }),
        }
        at = to;
    }
    Some(is_new)
}

/// The first run of neighbouring blocks, of which such ones, that ends above `from`; it may begin within a block, and hold a few
/// blocks without pointers, unless it is to be `exact` or of some blocks only. At most `bytes` bytes of it, up to the end of a huge page.
fn run(space: &Space, from: usize, bytes: usize, exact: bool, which: Which) -> Option<(usize, usize)> {
    let exact = exact || which != Which::All;
    let gap = if exact { 0 } else { GAP_BLOCKS * BLOCK };
    let mut found: Option<(usize, usize)> = None;
    let mut at = from;
    while let Some(block) = space.next(at) {
        let (base, stop) = (block.base.get(), block.base.get() + block.extent.get());
        // `at` is where the block before ended, or the next could begin.
        if found.is_some_and(|(_, end)| base > at || exact && base > end) {
            break;
        }
        match (&mut found, which.is(block)) {
            (Some((_, end)), false) if stop - *end > gap => break,
            (_, false) => {}
            (Some((_, end)), true) => *end = stop,
            (None, true) if stop > from => found = Some((base.max(from), stop)),
            (None, true) => {}
        }
        at = round_up(stop, BLOCK);
        if found.is_some_and(|(start, end)| end - start >= bytes) {
            break;
        }
    }
    found.map(|(start, end)| (start, end.min(round_down(start.saturating_add(bytes), HUGE))))
}
