//! Write tracking: which parts of the heap were written to since their last scan. A trace in slices has to
//! scan these again.
//!
//! There are three sources; a cycle uses one:
//!
//! * *cards*, one byte a page, which the program sets itself at each store of a pointer (`vel_gc_write` of
//!   the header), if its settings say that it does;
//! * [the kernel's account](vellum_sys::track) of written pages, which needs nothing of the program;
//! * [page protection](vellum_sys::guard) where the kernel has none. The program meets it. This source never
//!   lasts beyond a cycle, and covers exactly the blocks with pointers: system calls that read into atomic
//!   objects work.
//!
//! ```text
//! begin, arm ──▶ nothing is written    enter: a block or large object came to the heap meanwhile
//! look  ──▶ the next written part, lowest address first; with `again`, it counts as unwritten from now on
//! ```
//!
//! Arming, and letting go, cost some 60 ns a page and are made in pieces, too. The first write to an armed
//! page costs ten times that. Pages in which a thread is about to allocate therefore count as written
//! beforehand ([`Dirty::expect`]).
//!
//! # Invariants
//! * A write after `arm` has reached its end, or after `look` has taken its page, is reported by a later
//!   `look`. A page too many may be reported, but never one too few.
//! * Blocks without pointers are left out.
//! * Parts that `look` has taken and not reported yet wait, and are reported first.
//! * When anything fails ([`Dirty::is_lost`]) everything counts as written.
//!
//! Heaps that check themselves compare the account with the contents of pages ([`checksums`]).

pub(crate) mod cards;
pub(crate) mod checksums;
pub(crate) mod rescan;
pub(crate) mod tracking;

use crate::process::cards as all_cards;
use crate::process::ground::is_paged;
use crate::space::address_table::AddressTable;
use crate::space::block::{Block, Scan};
use crate::space::size_class::BLOCK;
use crate::world::World;
use crate::write_tracking::checksums::Sums;
use vellum_pages::{Buffer, HUGE, PAGE, Plain};
use vellum_sys::caps::{self, Caps};
use vellum_sys::track::{Tracker, Written};
use vellum_sys::{Addr, Span, guard, round_down, round_up};

/// The most bytes that one call reads or arms: whole huge pages, as a huge page armed in part is split.
const STEP: usize = 2 * HUGE;
/// Bytes of a written part that are reported at a time: how far a slice can overshoot.
const PIECE: usize = 16 * PAGE;
/// Bytes of neighbouring blocks that are marked as written by one call, before threads allocate there: a call
/// costs as much as fifty of its pages.
pub(crate) const EXPECT_MAX: usize = 1 << 20;
/// Bytes whose tracking ends at a time: whole huge pages, in which tracking began.
const LET_GO: usize = 4 * HUGE;
/// Ranges the kernel reports at a time.
const RANGES: usize = 64;
/// Blocks without pointers in a row that are worth leaving out.
const GAP_BLOCKS: usize = 4;

/// A selection of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All that have pointers.
    All,
    /// Blocks that are to be tracked (`mark_sweep::partial`).
    Tracked,
    /// Blocks of the old region (`appel`) that have pointers …
    Old,
    /// … of untyped objects …
    OldUntyped,
    /// … and of typed ones.
    OldTyped,
}

impl Which {
    pub(crate) fn is(self, block: &Block) -> bool {
        let scan = block.scan.get();
        match self {
            Which::All => scan != Scan::Nothing,
            Which::Tracked => block.is_tracked(),
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

// SAFETY: two addresses: any bits are a valid value, and it owns nothing.
unsafe impl Plain for Covered {}

/// The source of an account.
enum Source {
    /// The kernel, in these parts of the address space.
    Kernel(Tracker, Buffer<Covered>),
    /// Page protection, of these parts.
    Guard(Buffer<Covered>),
    /// The program.
    Cards,
}

pub(crate) struct Dirty {
    source: Source,
    lost: bool,
    /// Parts found and not reported yet: the first `waiting` of these, the last one first.
    found: [Written; RANGES],
    waiting: usize,
    /// Addresses that count as written already.
    expected: (usize, usize),
    /// Bytes that were handed out to be written since the last call of [`Dirty::surprises`].
    handed_out: usize,
    /// In a heap that checks itself: the sums of unwritten pages.
    sums: Option<Sums>,
    /// A page that had not been written, by this account, had other contents.
    has_missed: bool,
}

/// The outcome of [`Dirty::look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// This part was written.
    Written(usize, usize),
    /// No written part so far; there is more to read.
    On,
    End,
}

impl Dirty {
    /// Returns whether [`Dirty::begin`] is worth trying.
    pub(crate) fn is_available() -> bool {
        all_cards::are_there() || !is_paged() && (caps::has(Caps::TRACK) || caps::has(Caps::PROTECT))
    }

    /// Returns whether the program's writes must be let through: see [`guard::let_through`].
    pub(crate) fn may_protect() -> bool {
        Dirty::is_available()
            && !caps::has(Caps::TRACK)
            && caps::has(Caps::PROTECT)
            && !all_cards::are_there()
    }

    /// Returns whether [`Dirty::begin_lasting`] is worth trying.
    pub(crate) fn is_lasting() -> bool {
        all_cards::are_there() || !is_paged() && caps::has(Caps::TRACK)
    }

    /// Returns whether [`Dirty::begin_lasting`] uses the kernel, at some calls for each collection.
    pub(crate) fn asks_the_kernel() -> bool {
        !all_cards::are_there()
    }

    /// Begins, for objects in `space`: nothing is armed yet. `None`: writes cannot be tracked here and now.
    pub(crate) fn begin(space: &AddressTable) -> Option<Dirty> {
        Dirty::begin_lasting().or_else(|| {
            if is_paged() {
                return None;
            }
            let (base, bytes) = space.span();
            guard::open(Span::new(Addr::new(base), bytes)).ok()?;
            Some(Dirty::of(Source::Guard(Buffer::new())))
        })
    }

    /// [`Dirty::begin`] for an account that goes on between collections.
    pub(crate) fn begin_lasting() -> Option<Dirty> {
        if all_cards::are_there() {
            return Some(Dirty::of(Source::Cards));
        }
        if is_paged() {
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

    /// Checks the account from now on; called before anything is armed. `sums` is the table of earlier
    /// accounts. Cards are not checked: the program is trusted to set them.
    pub(crate) fn check(&mut self, space: &AddressTable, sums: &mut Option<Sums>) {
        if !matches!(self.source, Source::Cards) {
            self.sums = Sums::new(space, *sums);
            *sums = self.sums.or(*sums);
        }
    }

    /// Checks that no page was found written that counted as unwritten.
    ///
    /// # Errors
    /// The broken invariant.
    pub(crate) fn check_told(&self) -> Result<(), &'static str> {
        if self.has_missed { Err("whatever is written is accounted for") } else { Ok(()) }
    }

    /// Marks the next [`STEP`] bytes of such blocks from `from` on as unwritten, with the world stopped.
    /// Returns where to go on; `None` at the end, or if it fails ([`Dirty::is_lost`]).
    pub(crate) fn arm(&mut self, space: &AddressTable, from: usize, which: Which) -> Option<usize> {
        self.waiting = 0;
        self.expected = (0, 0);
        let (start, end) = run(space, from, STEP, self.is_exact(), which)?;
        let part = Span::between(Addr::new(start), Addr::new(end));
        match &mut self.source {
            Source::Guard(parts) => {
                self.lost |= !add(parts, start, end) || guard::arm(part).is_err();
            }
            Source::Kernel(tracker, covered) => {
                self.lost |= cover(tracker, covered, start, end).is_none() || tracker.arm(part).is_err();
            }
            Source::Cards => {
                let (first, count) = cards::cards(start, end);
                // SAFETY: the cards of blocks lie within the table.
                unsafe { first.write_bytes(0, count) };
            }
        }
        if let Some(sums) = &self.sums {
            sums.note(start, end);
        }
        (!self.lost).then_some(end)
    }

    /// [`Dirty::arm`] for all such blocks.
    pub(crate) fn arm_all(&mut self, space: &AddressTable, which: Which) {
        let mut from = 0;
        while let Some(next) = self.arm(space, from, which) {
            from = next;
        }
    }

    /// Makes the kernel track all present blocks, so that [`Dirty::arm`] of a block takes no memory. The
    /// world still runs.
    pub(crate) fn cover_all(&mut self, space: &AddressTable) {
        let mut from = 0;
        while let Some((start, end)) = run(space, from, usize::MAX, false, Which::All) {
            if let Source::Kernel(tracker, covered) = &mut self.source {
                self.lost |= cover(tracker, covered, start, end).is_none();
            }
            from = end;
        }
    }

    /// Ends the tracking of the next [`LET_GO`] bytes; false at the end. The rest ends when this is dropped.
    pub(crate) fn let_go(&mut self) -> bool {
        let Source::Kernel(tracker, covered) = &mut self.source else { return false };
        let Some(last) = covered.last_mut() else { return false };
        let start = last.start.max(last.end.saturating_sub(LET_GO));
        let is_gone = tracker.uncover(Span::new(Addr::new(start), last.end - start)).is_ok();
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

    /// Tracks the bytes from `start` up to `end`, which may be armed later. Until then writes there do not
    /// matter.
    pub(crate) fn cover(&mut self, start: usize, end: usize) {
        if let Source::Kernel(tracker, covered) = &mut self.source {
            self.lost |= cover(tracker, covered, start, end).is_none();
        }
    }

    /// Writes from `start` up to `end` do not matter any more. The world may stand still.
    pub(crate) fn release(&mut self, start: usize, end: usize) {
        if let Source::Kernel(tracker, _) = &self.source {
            // A refusal costs the program a fault for each page, once.
            let _ = tracker.disarm(Span::new(Addr::new(start), end - start));
        }
    }

    /// Everything counts as written, and writes cost nothing.
    pub(crate) fn disarm_all(&mut self, space: &AddressTable) {
        match &self.source {
            Source::Kernel(tracker, covered) => {
                for part in covered.iter() {
                    let part = Span::between(Addr::new(part.start), Addr::new(part.end));
                    self.lost |= tracker.disarm(part).is_err();
                }
            }
            Source::Guard(_) => {}
            Source::Cards => {
                let mut from = 0;
                while let Some((start, end)) = run(space, from, usize::MAX, false, Which::All) {
                    cards::set_cards(start, end);
                    from = end;
                }
            }
        }
    }

    /// Adds `bytes` bytes to those that count as handed out: they are not armed.
    pub(crate) fn note_unarmed(&mut self, bytes: usize) {
        self.handed_out += bytes;
    }

    /// The bytes from `start` up to `end` came to the heap, and are about to be written. They count as
    /// written until taken. `ahead` lies around them, and will come soon; `None`: little there can be armed.
    pub(crate) fn enter(&mut self, start: usize, end: usize, ahead: Option<(usize, usize)>) {
        self.handed_out += end - start;
        if let Some(sums) = &self.sums {
            sums.forget(start, end);
        }
        match &mut self.source {
            Source::Kernel(tracker, covered) => match cover(tracker, covered, start, end) {
                // Memory that was not tracked before is not armed either.
                Some(true) => {}
                Some(false) => match ahead {
                    Some(ahead) => self.take_for_written(start, end, ahead),
                    // The sums are of other contents.
                    None if self.sums.is_some() => self.take_for_written(start, end, (start, end)),
                    None => {}
                },
                None => self.lost = true,
            },
            Source::Guard(parts) => {
                self.lost |= !add(parts, start, end);
                guard::note(Span::between(Addr::new(start), Addr::new(end)));
            }
            Source::Cards => cards::set_cards(start, end),
        }
    }

    /// A thread is to allocate from a block, from `start` up to `end`: its writes there need not cost faults.
    /// `ahead` lies around it, and will be next.
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
                // A failure only costs faults: the memory ahead may not be tracked yet.
                let is_done = |(start, end): (usize, usize)| {
                    tracker.disarm(Span::between(Addr::new(start), Addr::new(end))).is_ok()
                };
                self.expected = if is_done(ahead) { ahead } else { (start, end) };
                if self.expected != ahead {
                    is_done((start, end));
                }
            }
            // A fault for four blocks costs less than two map entries for each.
            Source::Guard(_) => {}
            Source::Cards => cards::set_cards(start, end),
        }
    }

    /// Returns whether it can go on between cycles.
    pub(crate) fn can_go_on(&self) -> bool {
        !self.lost && !matches!(self.source, Source::Guard(_))
    }

    /// Returns whether the source is page protection.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.source, Source::Guard(_))
    }

    /// The pages among `written` bytes, found since the last call, that nobody had expected to be written:
    /// each has cost the program a fault.
    pub(crate) fn surprises(&mut self, written: usize) -> usize {
        let surprising = written.saturating_sub(core::mem::take(&mut self.handed_out));
        if matches!(self.source, Source::Kernel(..)) { surprising / PAGE } else { 0 }
    }

    /// A slice ends. New objects are filled in without cards being set, so that the blocks that threads
    /// allocate from count as written.
    pub(crate) fn rest(&mut self, world: &World, slots: usize) {
        if let Source::Cards = self.source {
            for thread in world.known() {
                thread.blocks(slots).for_each(|block| {
                    let base = block.base.get();
                    cards::set_cards(base, base + block.extent.get());
                });
            }
        }
    }

    /// The next written part of such blocks, from `from` on, which is moved on. With `again`, parts that are
    /// found count as unwritten from now on.
    pub(crate) fn look(&mut self, space: &AddressTable, from: &mut usize, again: bool, which: Which) -> Look {
        if let Some(range) = self.found[..self.waiting].last_mut() {
            let (start, end) = (range.start, range.end.min(range.start + PIECE));
            range.start = end;
            if end == range.end {
                self.waiting -= 1;
            }
            return Look::Written(start.get(), end.get());
        }
        let Some((start, end)) = run(space, *from, STEP, self.is_exact(), which) else { return Look::End };
        let part = Span::between(Addr::new(start), Addr::new(end));
        if again {
            self.expected = (0, 0);
        }
        match &self.source {
            Source::Kernel(tracker, _) => match tracker.take(part, again, &mut self.found) {
                Ok(taken) => {
                    self.waiting = taken.ranges;
                    *from = taken.end.get().max(start + PAGE);
                }
                Err(_) => {
                    self.lost = true;
                    return Look::End;
                }
            },
            Source::Guard(_) => match guard::take(part, again, &mut self.found) {
                Ok(taken) => {
                    self.waiting = taken.ranges;
                    *from = taken.end.get();
                }
                Err(_) => {
                    self.lost = true;
                    return Look::End;
                }
            },
            Source::Cards => *from = cards::take_cards(start, end, again, &mut self.found, &mut self.waiting),
        }
        if let Some(sums) = &self.sums {
            let found = &self.found[..self.waiting];
            if again {
                found.iter().for_each(|part| sums.note(part.start.get(), part.end.get()));
            } else {
                let ends = found.iter().map(|part| part.end.get());
                let gaps = core::iter::once(start)
                    .chain(ends)
                    .zip(found.iter().map(|part| part.start.get()).chain([*from]));
                self.has_missed |= !gaps.into_iter().all(|(start, end)| sums.agrees(start, end));
            }
        }
        // They are reported from the last one on.
        self.found[..self.waiting].reverse();
        Look::On
    }
}

impl Drop for Dirty {
    fn drop(&mut self) {
        if let Source::Guard(parts) = &self.source {
            let span = |part: &Covered| Span::between(Addr::new(part.start), Addr::new(part.end));
            parts.iter().for_each(|part| guard::release(span(part)));
        }
    }
}

/// Records that `start..end` is protected; false if memory for that is out.
fn add(parts: &mut Buffer<Covered>, start: usize, end: usize) -> bool {
    match parts.last_mut() {
        Some(last) if last.end == start => last.end = end,
        _ => return parts.push(Covered { start, end }).is_ok(),
    }
    true
}

/// Makes the kernel track the untracked parts of `start..end`, rounded to huge pages. The page layer maps
/// these whole, so that few map entries are spent. Returns whether nothing of it was tracked before; `None`
/// if it fails.
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
        if covered.reserve(1).is_err() || tracker.cover(Span::new(Addr::new(at), to - at)).is_err() {
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

/// The first run of neighbouring blocks of kind `which` that ends above `from`; it may begin within a block.
/// The run may hold a few blocks without pointers, unless `exact` is set or `which` is not all. At most
/// `bytes` bytes of it are returned, up to the end of a huge page.
fn run(space: &AddressTable, from: usize, bytes: usize, exact: bool, which: Which) -> Option<(usize, usize)> {
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
