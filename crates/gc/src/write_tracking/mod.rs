//! Write tracking: which parts of the heap were written to since their last scan. A trace in slices has to
//! scan these again.
//!
//! The record of writes is the heap's *account*. It has one of three sources:
//!
//! * *cards*, one byte a page, which the program sets itself at each store of a pointer (`vel_gc_write` of
//!   the header), if its settings say that it does;
//! * [the kernel's record](vellum_sys::track) of written pages, which needs nothing of the program;
//! * [page protection](vellum_sys::guard) where the kernel has none. System calls that write to such a page
//!   fail. This source therefore never lasts beyond a *cycle* (a collection in slices). It covers blocks
//!   with pointers only, so `read` into an object without pointers works.
//!
//! ```text
//! begin, arm ──▶ nothing counts as written    enter: a block came to the heap meanwhile
//! look  ──▶ the next written part, lowest address first; with `again`, it counts as unwritten from now on
//! ```
//!
//! To arm a page (begin to track its writes) or to disarm it costs some 60 ns. Both are done in pieces. The
//! first write to an armed page costs ten times that. Pages in which a thread is about to allocate therefore
//! count as written beforehand ([`Dirty::expect`]).
//!
//! # Invariants
//! * A write after `arm` has reached its end, or after `look` has taken the written page, is reported by a
//!   later `look`. Too many pages may be reported, but never too few.
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
use vellum_pages::{Buffer, HUGE, PAGE};
use vellum_sys::caps::{self, Caps};
use vellum_sys::track::{Tracker, Written};
use vellum_sys::{Addr, Span, guard};

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

/// The source of an account.
enum Source {
    /// The kernel, in these parts of the address space.
    Kernel(Tracker, Buffer<Span>),
    /// Page protection, of these parts.
    Guard(Buffer<Span>),
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
    expected: Span,
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
    Written(Span),
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
            guard::open(space.span).ok()?;
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
        Dirty {
            source,
            lost,
            found,
            waiting: 0,
            expected: Span::EMPTY,
            handed_out: 0,
            sums: None,
            has_missed,
        }
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
    pub(crate) fn arm(&mut self, space: &AddressTable, from: Addr, which: Which) -> Option<Addr> {
        self.waiting = 0;
        self.expected = Span::EMPTY;
        let part = run(space, from, STEP, self.is_exact(), which)?;
        match &mut self.source {
            Source::Guard(parts) => {
                self.lost |= !add(parts, part) || guard::arm(part).is_err();
            }
            Source::Kernel(tracker, covered) => {
                self.lost |= cover(tracker, covered, part).is_none() || tracker.arm(part).is_err();
            }
            Source::Cards => {
                let (first, count) = cards::cards(part);
                // SAFETY: the cards of blocks lie within the table.
                unsafe { first.write_bytes(0, count) };
            }
        }
        if let Some(sums) = &self.sums {
            sums.note(part);
        }
        (!self.lost).then_some(part.end())
    }

    /// [`Dirty::arm`] for all such blocks.
    pub(crate) fn arm_all(&mut self, space: &AddressTable, which: Which) {
        let mut from = Addr::NULL;
        while let Some(next) = self.arm(space, from, which) {
            from = next;
        }
    }

    /// Makes the kernel track all present blocks, so that [`Dirty::arm`] of a block takes no memory. The
    /// world still runs.
    pub(crate) fn cover_all(&mut self, space: &AddressTable) {
        let mut from = Addr::NULL;
        while let Some(part) = run(space, from, usize::MAX, false, Which::All) {
            if let Source::Kernel(tracker, covered) = &mut self.source {
                self.lost |= cover(tracker, covered, part).is_none();
            }
            from = part.end();
        }
    }

    /// Ends the tracking of the next [`LET_GO`] bytes; false at the end. The rest ends when this is dropped.
    pub(crate) fn let_go(&mut self) -> bool {
        let Source::Kernel(tracker, covered) = &mut self.source else { return false };
        let Some(last) = covered.last_mut() else { return false };
        let [kept, gone] = last.split_at(last.bytes.saturating_sub(LET_GO));
        let is_gone = tracker.uncover(gone).is_ok();
        *last = kept;
        if kept.is_empty() {
            covered.truncate(covered.len() - 1);
        }
        is_gone
    }

    /// Everything counts as written.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Tracks the bytes of `span`, which may be armed later. Until then writes there do not
    /// matter.
    pub(crate) fn cover(&mut self, span: Span) {
        if let Source::Kernel(tracker, covered) = &mut self.source {
            self.lost |= cover(tracker, covered, span).is_none();
        }
    }

    /// Writes to `span` do not matter any more. The world may stand still.
    pub(crate) fn release(&mut self, span: Span) {
        if let Source::Kernel(tracker, _) = &self.source {
            // A refusal costs the program a fault for each page, once.
            let _ = tracker.disarm(span);
        }
    }

    /// Everything counts as written, and writes cost nothing.
    pub(crate) fn disarm_all(&mut self, space: &AddressTable) {
        match &self.source {
            Source::Kernel(tracker, covered) => {
                for &part in covered.iter() {
                    self.lost |= tracker.disarm(part).is_err();
                }
            }
            Source::Guard(_) => {}
            Source::Cards => {
                let mut from = Addr::NULL;
                while let Some(part) = run(space, from, usize::MAX, false, Which::All) {
                    cards::set_cards(part);
                    from = part.end();
                }
            }
        }
    }

    /// Adds `bytes` bytes to those that count as handed out: they are not armed.
    pub(crate) fn note_unarmed(&mut self, bytes: usize) {
        self.handed_out += bytes;
    }

    /// The bytes of `span` came to the heap, and are about to be written. They count as
    /// written until taken. `ahead` lies around them, and will come soon; `None`: little there can be armed.
    pub(crate) fn enter(&mut self, span: Span, ahead: Option<Span>) {
        self.handed_out += span.bytes;
        if let Some(sums) = &self.sums {
            sums.forget(span);
        }
        match &mut self.source {
            Source::Kernel(tracker, covered) => match cover(tracker, covered, span) {
                // Memory that was not tracked before is not armed either.
                Some(true) => {}
                Some(false) => match ahead {
                    Some(ahead) => self.take_for_written(span, ahead),
                    // The sums are of other contents.
                    None if self.sums.is_some() => self.take_for_written(span, span),
                    None => {}
                },
                None => self.lost = true,
            },
            Source::Guard(parts) => {
                self.lost |= !add(parts, span);
                guard::note(span);
            }
            Source::Cards => cards::set_cards(span),
        }
    }

    /// A thread is to allocate from a block, in `span`: its writes there need not cost faults.
    /// `ahead` lies around it, and will be next.
    pub(crate) fn expect(&mut self, span: Span, ahead: Span) {
        self.handed_out += span.bytes;
        self.take_for_written(span, ahead);
    }

    fn take_for_written(&mut self, span: Span, ahead: Span) {
        match &self.source {
            Source::Kernel(tracker, _) => {
                if self.expected.start <= span.start && span.end() <= self.expected.end() {
                    return;
                }
                // A failure only costs faults: the memory ahead may not be tracked yet.
                let is_done = |part| tracker.disarm(part).is_ok();
                self.expected = if is_done(ahead) { ahead } else { span };
                if self.expected != ahead {
                    is_done(span);
                }
            }
            // A fault for four blocks costs less than two map entries for each.
            Source::Guard(_) => {}
            Source::Cards => cards::set_cards(span),
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
                thread.blocks(slots).for_each(|block| cards::set_cards(block.span()));
            }
        }
    }

    /// The next written part of such blocks, from `from` on, which is moved on. With `again`, parts that are
    /// found count as unwritten from now on.
    pub(crate) fn look(&mut self, space: &AddressTable, from: &mut Addr, again: bool, which: Which) -> Look {
        if let Some(range) = self.found[..self.waiting].last_mut() {
            let (start, end) = (range.start, range.end.min(range.start + PIECE));
            range.start = end;
            if end == range.end {
                self.waiting -= 1;
            }
            return Look::Written(Span::between(start, end));
        }
        let Some(part) = run(space, *from, STEP, self.is_exact(), which) else { return Look::End };
        if again {
            self.expected = Span::EMPTY;
        }
        match &self.source {
            Source::Kernel(tracker, _) => match tracker.take(part, again, &mut self.found) {
                Ok(taken) => {
                    self.waiting = taken.ranges;
                    *from = taken.end.max(part.start + PAGE);
                }
                Err(_) => {
                    self.lost = true;
                    return Look::End;
                }
            },
            Source::Guard(_) => match guard::take(part, again, &mut self.found) {
                Ok(taken) => {
                    self.waiting = taken.ranges;
                    *from = taken.end;
                }
                Err(_) => {
                    self.lost = true;
                    return Look::End;
                }
            },
            Source::Cards => *from = cards::take_cards(part, again, &mut self.found, &mut self.waiting),
        }
        if let Some(sums) = &self.sums {
            let found = &self.found[..self.waiting];
            if again {
                found.iter().for_each(|part| sums.note(Span::between(part.start, part.end)));
            } else {
                let starts = core::iter::once(part.start).chain(found.iter().map(|part| part.end));
                let mut gaps = starts.zip(found.iter().map(|part| part.start).chain([*from]));
                self.has_missed |= !gaps.all(|(start, end)| sums.agrees(Span::between(start, end)));
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
            parts.iter().for_each(|&part| guard::release(part));
        }
    }
}

/// Records that `span` is protected; false if memory for that is out.
fn add(parts: &mut Buffer<Span>, span: Span) -> bool {
    match parts.last_mut() {
        Some(last) if last.end() == span.start => last.bytes += span.bytes,
        _ => return parts.push(span).is_ok(),
    }
    true
}

/// Makes the kernel track the untracked parts of `span`, rounded to huge pages. The page layer maps
/// these whole, so that few map entries are spent. Returns whether nothing of it was tracked before; `None`
/// if it fails.
fn cover(tracker: &Tracker, covered: &mut Buffer<Span>, span: Span) -> Option<bool> {
    let span = span.touched(HUGE);
    let (mut at, mut is_new) = (span.start, true);
    while at < span.end() {
        if let Some(known) = covered.iter().find(|known| known.contains(at)) {
            at = known.end();
            is_new = false;
            continue;
        }
        let to =
            covered.iter().map(|known| known.start).filter(|&start| start > at).fold(span.end(), Addr::min);
        let new = Span::between(at, to);
        if covered.reserve(1).is_err() || tracker.cover(new).is_err() {
            return None;
        }
        match covered.iter_mut().find(|known| known.end() == at) {
            Some(known) => known.bytes += new.bytes,
            None => _ = covered.push(new),
        }
        at = to;
    }
    Some(is_new)
}

/// The first run of neighbouring blocks of kind `which` that ends above `from`; it may begin within a block.
/// The run may hold a few blocks without pointers, unless `exact` is set or `which` is not all. At most
/// `bytes` bytes of it are returned, up to the end of a huge page.
fn run(space: &AddressTable, from: Addr, bytes: usize, exact: bool, which: Which) -> Option<Span> {
    let exact = exact || which != Which::All;
    let gap = if exact { 0 } else { GAP_BLOCKS * BLOCK };
    let mut found: Option<Span> = None;
    let mut at = from;
    while let Some(block) = space.next(at) {
        let (base, stop) = (block.base.get(), block.span().end());
        // `at` is where the block before ended, or the next could begin.
        if found.is_some_and(|found| base > at || exact && base > found.end()) {
            break;
        }
        match (&mut found, which.is(block)) {
            (Some(found), false) if stop - found.end() > gap => break,
            (_, false) => {}
            (Some(found), true) => found.bytes = stop - found.start,
            (None, true) if stop > from => found = Some(block.span().from(from)),
            (None, true) => {}
        }
        at = stop.round_up(BLOCK);
        if found.is_some_and(|found| found.bytes >= bytes) {
            break;
        }
    }
    found.map(|found| found.before(found.start.saturating_add(bytes).round_down(HUGE)))
}
