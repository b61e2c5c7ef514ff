//! A collection in slices: marking goes on in small pieces between which the program runs.
//!
//! ```text
//! arm     writes are tracked from now on       (once: tracking goes on between cycles)  ─┐
//! start   world stopped: no marks, or only old ones (`sticky`); roots                    │ slices;
//! mark    trace from there                                                               │ the program
//! pass    scan again what was written meanwhile, and the roots                           │ runs between
//! mark    trace from there; another pass, until little was written                      ─┘
//! finish  world stopped: roots and written parts once more, trace, links, sweep
//! ```
//!
//! The program may change the heap between slices: it may hide an object behind one that was already scanned.
//! So every written part is scanned again, until no marked object was written since its scan. That is certain
//! only while the world stands still, but by then little is left (Boehm, Demers and Shenker 1991).
//!
//! New objects are unmarked (*white*): those that die before the end are free at the end, and those that live
//! are found by the passes.
//!
//! # Invariants
//! * The heap's lock is held and the world stands still in every slice; no thread is inside then.
//! * Between slices, objects to be scanned are on the mark stack. None of them is unmapped before the end:
//!   large objects that are freed wait.
//! * A block that comes to the heap during a cycle has its free objects marked, as [`Block::begin_trace`]
//!   leaves those of the others.
//! * A cycle that cannot go on (no memory for lists, a forked child) is dropped: its marks mean nothing then.
//! * While writes are tracked, new objects are unmarked, whether a cycle is under way or not.
//!
//! Source: Bates asks of a collector for slices that are bounded, driven by allocation and by idleness, and
//! that yield at once (section "Improving the Results"). There a slice is 50 blocks of copying; here it is a
//! time.

use crate::death::explicit_free;
use crate::event::Event;
use crate::heap::Heap;
use crate::mutator::budget::Budget;
use crate::mutator::thread::{self, Thread};
use crate::plan::collection::{self, with_world_stopped};
use crate::plan::mark_sweep::MarkSweep;
use crate::plan::mark_sweep::cycle::{Cycle, Phase, Progress};
use crate::plan::mark_sweep::partial::untrack;
use crate::plan::pause::Pause;
use crate::plan::sweep::sweep;
use crate::space::block::Block;
use crate::space::heap_space::HeapSpace;
use crate::space::size_class::BLOCK;
use crate::trace::mark::{Marker, Paused};
use crate::trace::movement::InPlace;
use crate::trace::root_statistics::Rooted;
use crate::trace::{callbacks, loader};
use crate::write_tracking::rescan::Written;
use crate::write_tracking::{Dirty, EXPECT_MAX, Look, Which};
use core::sync::atomic::{AtomicBool, Ordering};

/// The part of the allocation budget that is used while a cycle is under way, at most: a quarter.
const CYCLE_PART: usize = 4;
/// Bytes that are allocated between two slices, unless a quarter of the budget is less than that for all of
/// them. A program takes some hundred microseconds for these bytes: so slices do not follow each other at
/// once, and a cycle begins as late as can be.
const QUANTUM: usize = 256 << 10;
/// The part of the allocation budget by which a cycle may overrun it.
const OVERRUN_PART: usize = 4;
/// Slices beyond those that marking needs: passes and the end.
const SLICES_MORE: u64 = 4;

/// Whether new objects must be unmarked: a cycle is on, or marks stay. Changes while the heap's lock is held;
/// read inside.
static ON: AtomicBool = AtomicBool::new(false);

/// See [`ON`]. A thread that does not see it yet allocates before the world first stands still in the cycle
/// that has set it.
#[inline]
pub(crate) fn is_white() -> bool {
    ON.load(Ordering::Relaxed)
}

impl Heap {
    /// Whether a cycle should begin or go on, by the bytes allocated.
    #[inline]
    pub(crate) fn is_slice_due(&self) -> bool {
        if self.config.slice_ns == 0 || self.held != 0 {
            return false;
        }
        let is_due = match &self.incremental.cycle {
            Some(cycle) => self.sizing.used >= cycle.due,
            None if self.tracking.is_leaving => false,
            None => {
                self.is_worth_slicing()
                    && self.sizing.used >= self.sizing.room - self.lead(self.slices_expected())
            }
        };
        is_due && self.is_welcome()
    }

    /// Whether a collection at one go would take longer than a slice, and slices can be had.
    fn is_worth_slicing(&self) -> bool {
        self.may_slice() && self.whole_ns_expected() > self.config.slice_ns
    }

    /// Whether slices can be had. Not where callbacks name what objects refer to: they may read memory whose
    /// writes are not tracked.
    pub(crate) fn may_slice(&self) -> bool {
        self.config.plan.constraints().slices
            && !self.has_procedures
            && !self.incremental.slicing_failed
            && Dirty::is_available()
    }

    /// Whether a collection is about to be made at one go, although slices are asked for, as writes cannot be
    /// tracked.
    pub(crate) fn wants_slices_in_vain(&self) -> bool {
        self.config.slice_ns != 0
            && (self.incremental.slicing_failed || self.has_procedures || !Dirty::is_available())
    }

    /// Whether all that is left to do is the end, which is made at one go.
    pub(crate) fn is_cycle_ready(&self) -> bool {
        self.incremental.cycle.as_ref().is_some_and(|cycle| cycle.phase == Phase::Ready)
    }

    /// Expected nanoseconds of a whole collection, tracing and sweep, by the last one.
    pub(super) fn whole_ns_expected(&self) -> u64 {
        (self.space.bytes as u64 >> 10) * self.incremental.ns_a_kib
    }

    /// Slices that the next cycle will take.
    fn slices_expected(&self) -> u64 {
        let whole_ns = self.whole_ns_expected();
        let is_partial = self.incremental.sticky.is_partial_next(self.stats.live_bytes as usize);
        let ns = if is_partial { self.incremental.sticky.partial_ns(whole_ns) } else { whole_ns };
        ns / self.config.slice_ns.max(1) + SLICES_MORE
    }

    /// Bytes to be allocated during a cycle of `slices` slices.
    fn lead(&self, slices: u64) -> usize {
        (slices as usize).saturating_mul(QUANTUM).min(self.sizing.room / CYCLE_PART)
    }

    /// Bytes to hand out before the world must stop for a whole collection.
    #[inline]
    pub(crate) fn room_now(&self) -> usize {
        if self.incremental.cycle.is_some() {
            self.sizing.room + self.sizing.room / OVERRUN_PART
        } else {
            self.sizing.room
        }
    }

    /// A new account of writes, if that can be had.
    fn new_account(&self) -> Option<Dirty> {
        let mut dirty = Dirty::begin(&self.space.table)?;
        if self.config.paranoid {
            dirty.check(&self.space.table);
        }
        Some(dirty)
    }

    /// The account of writes, if there is one.
    fn account(&mut self) -> Option<&mut Dirty> {
        self.incremental.cycle.as_mut().map(|cycle| &mut cycle.dirty).or(self.tracking.account.as_mut())
    }

    /// A block or large object came to the heap.
    pub(crate) fn block_came(&mut self, block: &Block) {
        let (start, end) = (block.base.get(), block.base.get() + block.extent.get());
        let is_small = block.slot.get() != 0;
        let ahead = match is_small {
            _ if self.tracks_by_block() => None,
            true => Some(self.pool_beside(start, end)),
            false => Some((start, end)),
        };
        if let Some(dirty) = self.account() {
            dirty.enter(start, end, ahead);
            if is_small {
                block.begin_trace();
            }
        }
    }

    /// A thread is to allocate from a block that was there before; `next` leads to the next one with room.
    pub(crate) fn block_goes_out(&mut self, block: &Block) {
        let by_block = self.tracks_by_block();
        let Some(dirty) = self.account().filter(|_| !by_block || block.is_tracked()) else { return };
        let (start, mut end) = (block.base.get(), block.base.get() + block.extent.get());
        let (own, mut next) = ((start, end), block.next.get());
        // SAFETY: null, or a descriptor, which is never unmapped.
        while let Some(beside) = unsafe { next.as_ref() }.filter(|next| next.base.get() == end) {
            if end - start >= EXPECT_MAX {
                break;
            }
            end += beside.extent.get();
            next = beside.next.get();
            if by_block {
                untrack(beside);
            }
        }
        if by_block {
            untrack(block);
            dirty.expect(start, end, (start, end));
        } else {
            dirty.expect(own.0, own.1, (start, end));
        }
    }

    /// The free blocks that will be taken next and lie beside the addresses from `start` up to `end`, and
    /// these.
    fn pool_beside(&self, mut start: usize, mut end: usize) -> (usize, usize) {
        for &unit in self.space.pool.iter().rev() {
            if end - start >= EXPECT_MAX {
                break;
            }
            if unit == end {
                end += BLOCK;
            } else if unit + BLOCK == start {
                start = unit;
            } else {
                break;
            }
        }
        (start, end)
    }

    pub(super) fn mark_roots(&self, marker: &mut Marker<'_, InPlace>) -> Rooted {
        let Heap { space, roots, deaths, .. } = self;
        deaths.kept.mark(marker, &space.blocks);
        collection::mark_roots(marker, roots, deaths, space.slots.len(), false)
    }

    /// Drops a cycle that is on: the next collection begins anew. The account of writes goes on, if it can.
    pub(crate) fn drop_cycle(&mut self) {
        self.incremental.sticky.forget();
        if let Some(cycle) = self.incremental.cycle.take() {
            self.tell(Event::End);
            for &block in self.space.blocks.iter() {
                // SAFETY: the list has the addresses of descriptors, which are never unmapped.
                unsafe { (*(block as *const Block)).overflowed.set(false) };
            }
            self.tracking.account = Some(cycle.dirty);
        }
        if self.tracking.account.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
            self.end_account();
        }
    }

    /// Ends the account of writes. No cycle is on.
    pub(crate) fn end_account(&mut self) {
        self.incremental.sticky.forget();
        self.tracking.account = None;
        self.tracking.is_leaving = false;
        ON.store(false, Ordering::Relaxed);
    }

    /// A collection at one go has ended, with every object's mark as it should be; it took `spent_ns`.
    pub(crate) fn whole_ended(&mut self, spent_ns: u64) {
        if self.tracking.account.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
            self.end_account();
        }
        self.incremental.sticky.whole_ended(spent_ns, self.stats.live_bytes as usize, self.sizing.room);
        if self.tracking.account.is_none() || self.tracking.is_leaving {
            return;
        }
        if self.is_worth_slicing() || self.is_worth_tracking() {
            self.incremental.sticky.know();
        } else {
            self.tracking.is_leaving = true;
        }
    }
}

/// New objects are to be unmarked from now on. The world stands still.
pub(super) fn turn_white() {
    ON.store(true, Ordering::Relaxed);
}

/// Begins a cycle or goes on with it, for `thread`, which is inside and holds the lock. One that begins is
/// whole if `whole` says so.
pub(crate) fn step(heap: &mut Heap, thread: &'static Thread, budget: Budget, whole: bool) -> Progress {
    loader::still(|| step_with_libraries(heap, thread, budget, whole))
}

fn step_with_libraries(heap: &mut Heap, thread: &'static Thread, budget: Budget, whole: bool) -> Progress {
    // Before the world is stopped: the loader's lock may be held by anybody.
    if heap.roots.refresh().is_err() {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    match heap.incremental.cycle.as_ref().map(|cycle| cycle.phase) {
        None => {
            begin(heap, whole);
            slice(heap, thread, budget)
        }
        Some(Phase::Ready) => finish(heap, thread),
        Some(_) => slice(heap, thread, budget),
    }
}

/// Ends the tracking of writes step by step, for as long as `budget` says.
pub(crate) fn let_go(heap: &mut Heap, mut budget: Budget) {
    let pause = Pause::begin();
    while let Some(dirty) = &mut heap.tracking.account {
        if !dirty.let_go() {
            heap.end_account();
        }
        if !budget.look() {
            break;
        }
    }
    pause.end(heap);
}

fn begin(heap: &mut Heap, whole: bool) {
    if heap.tracking.is_leaving || heap.tracking.account.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
        // Two accounts cannot be kept of the same memory.
        heap.end_account();
    }
    let slices = heap.slices_expected();
    let is_partial = !whole && heap.incremental.sticky.is_partial_next(heap.stats.live_bytes as usize);
    let Some(dirty) = heap.tracking.account.take().or_else(|| heap.new_account()) else {
        // It would be refused again and again: the next collection is made at one go.
        heap.incremental.slicing_failed = true;
        return;
    };
    heap.tell(Event::Begin);
    callbacks::tell_begin();
    ON.store(true, Ordering::Relaxed);
    let quantum = (heap.lead(slices) / slices as usize).max(BLOCK);
    heap.incremental.cycle = Some(Cycle {
        left: Paused::default(),
        dirty,
        phase: if is_partial { Phase::Start } else { Phase::Arm(0) },
        is_partial,
        passes: 0,
        written: 0,
        written_before: usize::MAX,
        faults: 0,
        due: heap.sizing.used,
        quantum,
        spent_ns: 0,
    });
    if !is_partial {
        heap.incremental.sticky.forget();
    }
}

fn slice(heap: &mut Heap, thread: &'static Thread, mut budget: Budget) -> Progress {
    let Some(mut cycle) = heap.incremental.cycle.take() else { return Progress::Nothing };
    let pause = Pause::begin();
    with_world_stopped(heap, thread, |heap| cycle.work(heap, &mut budget));
    cycle.spent_ns += pause.end(heap);
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    heap.stats.slices += 1;
    cycle.due = heap.sizing.used + if cycle.is_behind() { 0 } else { cycle.quantum };
    let is_refused = matches!(cycle.phase, Phase::Arm(_)) && cycle.dirty.is_lost();
    heap.incremental.cycle = Some(cycle);
    if is_refused {
        heap.drop_cycle();
        heap.incremental.slicing_failed = true;
        return Progress::Nothing;
    }
    Progress::More
}

impl Cycle {
    fn work(&mut self, heap: &Heap, budget: &mut Budget) {
        while let Phase::Arm(from) = self.phase {
            match self.dirty.arm(&heap.space.table, from, Which::All) {
                Some(next) => self.phase = Phase::Arm(next),
                None if self.dirty.is_lost() => return,
                None => self.phase = Phase::Start,
            }
            if !budget.look() {
                // Armed pages are tracked from here on, also if another collection comes between.
                self.dirty.rest(heap.slots_in_use());
                return;
            }
        }
        if self.phase == Phase::Start {
            self.start(heap);
            if !budget.look() {
                return;
            }
        }
        let Heap { space: HeapSpace { table, blocks, .. }, stack, config, .. } = heap;
        let mut marker = Marker::resume(table, *stack, config.only_starts, InPlace, self.left);
        while marker.drain_while(blocks, || budget.go_on()) {
            match self.phase {
                Phase::Pass(mut from) => match self.dirty.look(table, &mut from, true, Which::All) {
                    Look::Written(start, end) => {
                        self.written += end - start;
                        marker.again(start, end);
                    }
                    Look::On => self.phase = Phase::Pass(from),
                    Look::End => {
                        if self.is_partial && self.passes == 0 {
                            self.faults = self.dirty.surprises(self.written);
                        }
                        self.phase = Phase::Mark;
                    }
                },
                _ if self.passes == 0 || self.is_behind() => {
                    self.passes += 1;
                    self.written_before = core::mem::take(&mut self.written);
                    self.phase = Phase::Pass(0);
                    let _ = heap.mark_roots(&mut marker);
                }
                _ => {
                    self.phase = Phase::Ready;
                    break;
                }
            }
            if !budget.look() {
                break;
            }
        }
        self.left = marker.pause();
        self.dirty.rest(heap.slots_in_use());
    }

    /// Begins to mark.
    fn start(&mut self, heap: &Heap) {
        explicit_free::end_lists(&heap.space.table, heap.slots_in_use());
        for &block in heap.space.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(block as *const Block) };
            if self.is_partial {
                block.begin_again();
            } else {
                block.begin_trace();
            }
        }
        let mut marker = Marker::new(&heap.space.table, heap.stack, heap.config.only_starts, InPlace);
        let _ = heap.mark_roots(&mut marker);
        self.left = marker.pause();
        self.dirty.rest(heap.slots_in_use());
        // Objects written since the last cycle are roots of this one.
        self.phase = if self.is_partial { Phase::Pass(0) } else { Phase::Mark };
    }

    /// Scans everything that was written since its last scan, with the world stopped for the last time.
    /// Returns what the roots led to.
    fn look_again(&mut self, heap: &Heap) -> Rooted {
        let Heap { space: HeapSpace { table, blocks, .. }, stack, config, .. } = heap;
        let mut marker = Marker::resume(table, *stack, config.only_starts, InPlace, self.left);
        let rooted = heap.mark_roots(&mut marker);
        let all = Written { which: Which::All, drains: true };
        all.look_through(&mut marker, &mut self.dirty, table, blocks);
        self.left = marker.pause();
        rooted
    }
}

/// Ends the cycle that is on. Without memory for lists it is dropped.
pub(crate) fn finish(heap: &mut Heap, thread: &'static Thread) -> Progress {
    loader::still(|| finish_with_libraries(heap, thread))
}

fn finish_with_libraries(heap: &mut Heap, thread: &'static Thread) -> Progress {
    if !collection::prepare(heap) {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    if heap.incremental.cycle.as_ref().is_none_or(|cycle| matches!(cycle.phase, Phase::Arm(_) | Phase::Start))
    {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    let Some(mut cycle) = heap.incremental.cycle.take() else { return Progress::Nothing };
    let pause = Pause::begin();
    let sweep = with_world_stopped(heap, thread, |heap| {
        // Others may be filling in objects of blocks that they are about to leave.
        cycle.dirty.rest(heap.slots_in_use());
        collection::retire(heap);
        for other in thread::known().filter(|other| !other.is_current()) {
            other.keep_runs(heap.slots_in_use());
        }
        heap.tell(Event::MarkBegin);
        let rooted = cycle.look_again(heap);
        heap.check_after("a trace in slices", |_| cycle.dirty.check_told());
        collection::end_trace(heap, cycle.left, rooted);
        collection::told(heap, sweep)
    });
    let Cycle { dirty, spent_ns, is_partial, faults, .. } = cycle;
    heap.stats.protected += u64::from(dirty.is_exact());
    // Page protection must be gone before any pages are given back.
    heap.tracking.account = Some(dirty).filter(Dirty::can_go_on);
    heap.incremental.end_ns = pause.end(heap);
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    let spent_ns = spent_ns + heap.incremental.end_ns;
    if is_partial {
        heap.end_partial(sweep, spent_ns, faults);
    } else {
        collection::end(&MarkSweep, heap, sweep, Some(spent_ns));
        heap.incremental.sticky.whole_ended(spent_ns, heap.stats.live_bytes as usize, heap.sizing.room);
    }
    heap.keep_marks_if_worth();
    Progress::Done
}
