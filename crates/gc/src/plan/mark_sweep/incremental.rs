//! Incremental collection: a *cycle* of slices (small pieces of work), between which the program runs.
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
//! The program may change the heap between slices: it may hide an object behind an object that was already
//! scanned. Every written part is therefore scanned again, until no marked object was written since its
//! scan. Only the last scan, with the world stopped, makes this certain, but little is left for it (Boehm,
//! Demers and Shenker 1991).
//!
//! New objects are unmarked (*white*): those that die in the cycle are freed at its end, and the passes
//! find the live ones.
//!
//! # Invariants
//! * In every slice the heap's lock is held and the world is stopped; no thread is inside the collector.
//! * Between slices, objects to be scanned are on the mark stack. No such object is unmapped before the end:
//!   freed large objects wait.
//! * A block that is added to the heap during a cycle has its free objects marked, as
//!   [`Block::begin_trace`] marks those of other blocks.
//! * A cycle that cannot go on (no memory for lists, a forked child) is dropped: its marks mean nothing then.
//! * While writes are tracked, new objects are unmarked, whether a cycle is under way or not.
//!
//! Source: Bates 1999, section "Improving the Results", requires slices that are bounded, driven by
//! allocation and by idleness, and that yield at once. Slices copy 50 blocks there; here they have a time
//! limit.

use crate::death::explicit_free;
use crate::heap::Heap;
use crate::plan::collection::{self, with_world_stopped};
use crate::plan::contract::{Plan, Progress};
use crate::plan::mark_sweep::MarkSweep;
use crate::plan::pause::{Kind, Pause};
use crate::plan::sweep::sweep;
use crate::process::hooks;
use crate::space::block::Block;
use crate::space::heap_space::HeapSpace;
use crate::space::size_class::BLOCK;
use crate::trace::mark::{Marker, Paused};
use crate::trace::movement::InPlace;
use crate::trace::root_statistics::Rooted;
use crate::world::budget::Budget;
use crate::world::event::Event;
use crate::world::thread::Thread;
use crate::write_tracking::rescan::Written;
use crate::write_tracking::{Dirty, EXPECT_MAX, Look, Which};
use vellum_sys::{Addr, Span};

/// The part of the allocation budget that is used while a cycle is under way, at most: a quarter.
const CYCLE_PART: usize = 4;
/// Bytes that are allocated between two slices, if all slices of a cycle fit a quarter of the budget. A
/// program takes a few hundred microseconds for these bytes. Slices do not follow each other at once, and a
/// cycle begins as late as possible.
const QUANTUM: usize = 256 << 10;
/// The part of the allocation budget by which a cycle may overrun it.
pub(super) const OVERRUN_PART: usize = 4;
/// Slices besides marking: passes and the end.
const SLICES_MORE: u64 = 4;

/// Passes before the end, at most.
const PASSES_MAX: u32 = 4;
/// Written bytes found by a pass from which another pass is made. A further pass needs a pass that found less
/// than three quarters of the bytes of the one before: a program may write faster than its writes can be
/// scanned. The slices of such a pass follow each other at once, to leave the program little time to write.
const WRITTEN_MANY: usize = 256 << 10;

/// The stage that a cycle has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Write tracking is being armed, from this address on. Nothing is marked yet.
    Arm(Addr),
    /// All writes are tracked.
    Start,
    Mark,
    /// Scanning the written parts of the heap, from this address on.
    Pass(Addr),
    /// All but the last stop is done.
    Ready,
}

/// A collection that is under way.
pub(crate) struct Cycle {
    pub left: Paused,
    pub dirty: Dirty,
    pub phase: Phase,
    /// Old marks stay.
    pub is_partial: bool,
    pub passes: u32,
    /// Bytes found written in the last pass, or in this one so far, and in the one before.
    pub written: usize,
    pub written_before: usize,
    /// Pages that the program has written since the last cycle, each at the cost of a fault.
    pub faults: usize,
    /// Bytes allocated at which the next slice is due.
    pub due: usize,
    /// Bytes allocated between slices.
    pub quantum: usize,
    pub spent_ns: u64,
}

impl Cycle {
    /// Returns whether the end would take long for the written bytes, and another pass would find less.
    pub(crate) fn is_behind(&self) -> bool {
        self.passes > 0
            && self.passes < PASSES_MAX
            && self.written > WRITTEN_MANY
            && (self.passes == 1 || self.written < self.written_before / 4 * 3)
    }
}

impl MarkSweep {
    /// Returns whether a cycle should begin or go on, by the bytes allocated.
    #[inline]
    pub(super) fn is_slice_due(&self, heap: &Heap) -> bool {
        if heap.config.slice_ns == 0 || heap.held != 0 {
            return false;
        }
        let is_due = match &self.cycle {
            Some(cycle) => heap.sizing.used >= cycle.due,
            None if heap.tracking.is_leaving => false,
            None => {
                self.is_worth_slicing(heap)
                    && heap.sizing.used >= heap.sizing.room - lead(heap, self.slices_expected(heap))
            }
        };
        is_due && heap.is_welcome()
    }

    /// Returns whether a collection at one go would take longer than a slice, and slices can be had.
    fn is_worth_slicing(&self, heap: &Heap) -> bool {
        self.may_slice(heap) && self.whole_ns_expected(heap) > heap.config.slice_ns
    }

    /// Returns whether slices can be had. Not where callbacks name what objects refer to: they may read
    /// memory whose writes are not tracked.
    pub(crate) fn may_slice(&self, heap: &Heap) -> bool {
        !heap.has_procedures && !self.slicing_failed && Dirty::is_available()
    }

    /// Expected nanoseconds of a whole collection, tracing and sweep, by the last one.
    pub(super) fn whole_ns_expected(&self, heap: &Heap) -> u64 {
        (heap.space.bytes as u64 >> 10) * self.ns_a_kib
    }

    /// Slices that the next cycle will take.
    fn slices_expected(&self, heap: &Heap) -> u64 {
        let whole_ns = self.whole_ns_expected(heap);
        let is_partial = self.sticky.is_partial_next(heap.stats.live_bytes as usize);
        let ns = if is_partial { self.sticky.partial_ns(whole_ns) } else { whole_ns };
        ns / heap.config.slice_ns.max(1) + SLICES_MORE
    }

    /// The expected nanoseconds of the cycle's end if that is the next step; else 0.
    pub(crate) fn end_ns_expected(&self) -> u64 {
        let is_ready = self.cycle.as_ref().is_some_and(|cycle| cycle.phase == Phase::Ready);
        if is_ready { self.end_ns } else { 0 }
    }

    /// The account of writes, if there is one.
    pub(super) fn account<'a>(&'a mut self, heap: &'a mut Heap) -> Option<&'a mut Dirty> {
        self.cycle.as_mut().map(|cycle| &mut cycle.dirty).or(heap.tracking.account.as_mut())
    }

    /// A block or large object came to the heap.
    pub(super) fn enter(&mut self, heap: &mut Heap, block: &Block) {
        let span = block.span();
        let is_small = block.slot.get() != 0;
        let ahead = match is_small {
            _ if heap.tracks_by_block() => None,
            true => Some(pool_beside(heap, span)),
            false => Some(span),
        };
        if let Some(dirty) = self.account(heap) {
            dirty.enter(span, ahead);
            if is_small {
                block.begin_trace();
            }
        }
    }

    /// Drops a cycle that is on: the next collection starts from the beginning. The account goes on, if it
    /// can.
    pub(super) fn abandon(&mut self, heap: &mut Heap) {
        self.sticky.forget();
        if let Some(cycle) = self.cycle.take() {
            heap.tell(Event::End);
            for &block in heap.space.blocks.iter() {
                block.overflowed.set(false);
            }
            heap.tracking.account = Some(cycle.dirty);
        }
        if heap.tracking.account.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
            self.end_account(heap);
        }
    }

    /// A whole collection took `spent_ns`.
    fn took(&mut self, heap: &Heap, spent_ns: u64) {
        self.ns_a_kib = spent_ns / (heap.sizing.reached as u64 >> 10).max(1);
    }

    /// The kind of a slice.
    fn pause_kind(&self) -> Kind {
        if self.is_idle { Kind::Idle } else { Kind::Major }
    }

    /// A collection at one go has ended, with every object's mark as it should be; it took `spent_ns`.
    pub(super) fn whole_ended(&mut self, heap: &mut Heap, spent_ns: u64) {
        self.took(heap, spent_ns);
        if heap.tracking.account.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
            self.end_account(heap);
        }
        self.sticky.whole_ended(spent_ns, heap.stats.live_bytes as usize, heap.sizing.room);
        if heap.tracking.account.is_none() || heap.tracking.is_leaving {
            return;
        }
        if self.is_worth_slicing(heap) || self.is_worth_tracking(heap) {
            self.sticky.know();
        } else {
            heap.tracking.is_leaving = true;
        }
    }
}

/// Bytes to be allocated during a cycle of `slices` slices.
fn lead(heap: &Heap, slices: u64) -> usize {
    (slices as usize).saturating_mul(QUANTUM).min(heap.sizing.room / CYCLE_PART)
}

/// A new account of writes, if that can be had.
fn new_account(heap: &mut Heap) -> Option<Dirty> {
    let mut dirty = Dirty::begin(&heap.space.table)?;
    if heap.config.paranoid {
        dirty.check(&heap.space.table, &mut heap.tracking.sums);
    }
    Some(dirty)
}

/// The free blocks that will be taken next and lie beside the addresses from `start` up to `end`, and these.
fn pool_beside(heap: &Heap, mut span: Span) -> Span {
    for &unit in heap.space.pool.iter().rev() {
        if span.bytes >= EXPECT_MAX {
            break;
        }
        if unit + BLOCK == span.start {
            span.start = unit;
        } else if unit != span.end() {
            break;
        }
        span.bytes += BLOCK;
    }
    span
}

pub(super) fn mark_roots(heap: &Heap, marker: &mut Marker<'_, InPlace>) -> Rooted {
    let Heap { space, roots, deaths, .. } = heap;
    deaths.kept.mark(marker, &space.blocks);
    collection::mark_roots(marker, roots, deaths, space.slots.len(), false, &heap.shared.world)
}

/// Begins a cycle or goes on with it, for `thread`, which is inside and holds the lock. `whole`: a cycle that
/// begins is a whole one.
pub(crate) fn step(
    plan: &mut MarkSweep,
    heap: &mut Heap,
    thread: &'static Thread,
    budget: Budget,
    whole: bool,
) -> Progress {
    // Before the world is stopped: the loader's lock may be held by anybody.
    if heap.roots.refresh().is_err() {
        plan.abandon(heap);
        return Progress::Nothing;
    }
    match plan.cycle.as_ref().map(|cycle| cycle.phase) {
        None => {
            begin(plan, heap, whole);
            slice(plan, heap, thread, budget)
        }
        Some(Phase::Ready) => finish(plan, heap, thread),
        Some(_) => slice(plan, heap, thread, budget),
    }
}

/// Ends the tracking of writes step by step, within `budget`.
pub(super) fn let_go(plan: &mut MarkSweep, heap: &mut Heap, mut budget: Budget) {
    let pause = Pause::begin();
    while let Some(dirty) = &mut heap.tracking.account {
        if !dirty.let_go() {
            plan.end_account(heap);
        }
        if !budget.look() {
            break;
        }
    }
    pause.end(heap, Kind::Major);
}

fn begin(plan: &mut MarkSweep, heap: &mut Heap, whole: bool) {
    if heap.tracking.is_leaving || heap.tracking.account.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
        // Two accounts cannot be kept of the same memory.
        plan.end_account(heap);
    }
    let slices = plan.slices_expected(heap);
    let is_partial = !whole && plan.sticky.is_partial_next(heap.stats.live_bytes as usize);
    let Some(dirty) = heap.tracking.account.take().or_else(|| new_account(heap)) else {
        // It would be refused again and again: the next collection is made at one go.
        plan.slicing_failed = true;
        return;
    };
    heap.tell(Event::Begin);
    hooks::tell_begin();
    heap.turn_white();
    let quantum = (lead(heap, slices) / slices as usize).max(BLOCK);
    plan.cycle = Some(Cycle {
        left: Paused::default(),
        dirty,
        phase: if is_partial { Phase::Start } else { Phase::Arm(Addr::NULL) },
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
        plan.sticky.forget();
    }
}

fn slice(plan: &mut MarkSweep, heap: &mut Heap, thread: &'static Thread, mut budget: Budget) -> Progress {
    let Some(mut cycle) = plan.cycle.take() else { return Progress::Nothing };
    let pause = Pause::begin();
    with_world_stopped(heap, thread, |heap| cycle.work(heap, &mut budget));
    cycle.spent_ns += pause.end(heap, plan.pause_kind());
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    heap.stats.slices += 1;
    cycle.due = heap.sizing.used + if cycle.is_behind() { 0 } else { cycle.quantum };
    let is_refused = matches!(cycle.phase, Phase::Arm(_)) && cycle.dirty.is_lost();
    plan.cycle = Some(cycle);
    if is_refused {
        plan.abandon(heap);
        plan.slicing_failed = true;
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
                self.dirty.rest(&heap.shared.world, heap.slots_in_use());
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
                    Look::Written(part) => {
                        self.written += part.bytes;
                        marker.again(part);
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
                    self.phase = Phase::Pass(Addr::NULL);
                    let _ = mark_roots(heap, &mut marker);
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
        self.dirty.rest(&heap.shared.world, heap.slots_in_use());
    }

    /// Begins to mark.
    fn start(&mut self, heap: &Heap) {
        explicit_free::end_lists(&heap.shared.world, &heap.space.table, heap.slots_in_use());
        for &block in heap.space.blocks.iter() {
            if self.is_partial {
                block.begin_again();
            } else {
                block.begin_trace();
            }
        }
        let mut marker = Marker::new(&heap.space.table, heap.stack, heap.config.only_starts, InPlace);
        let _ = mark_roots(heap, &mut marker);
        self.left = marker.pause();
        self.dirty.rest(&heap.shared.world, heap.slots_in_use());
        // Objects written since the last cycle are roots of this one.
        self.phase = if self.is_partial { Phase::Pass(Addr::NULL) } else { Phase::Mark };
    }

    /// Scans everything that was written since its last scan, with the world stopped for the last time.
    /// Returns what the roots led to.
    fn look_again(&mut self, heap: &Heap) -> Rooted {
        let Heap { space: HeapSpace { table, blocks, .. }, stack, config, .. } = heap;
        let mut marker = Marker::resume(table, *stack, config.only_starts, InPlace, self.left);
        let rooted = mark_roots(heap, &mut marker);
        let all = Written { which: Which::All, drains: true };
        all.look_through(&mut marker, &mut self.dirty, table, blocks);
        self.left = marker.pause();
        rooted
    }
}

/// Ends the cycle that is on. Without memory for lists it is dropped.
pub(super) fn finish(plan: &mut MarkSweep, heap: &mut Heap, thread: &'static Thread) -> Progress {
    if !collection::prepare(heap) {
        plan.abandon(heap);
        return Progress::Nothing;
    }
    if plan.cycle.as_ref().is_none_or(|cycle| matches!(cycle.phase, Phase::Arm(_) | Phase::Start)) {
        plan.abandon(heap);
        return Progress::Nothing;
    }
    let Some(mut cycle) = plan.cycle.take() else { return Progress::Nothing };
    let pause = Pause::begin();
    let sweep = with_world_stopped(heap, thread, |heap| {
        // Others may be filling in objects of blocks that they are about to leave.
        cycle.dirty.rest(&heap.shared.world, heap.slots_in_use());
        collection::retire(heap);
        collection::keep_runs(heap);
        heap.tell(Event::MarkBegin);
        let rooted = cycle.look_again(heap);
        heap.check_after("a trace in slices", |_| cycle.dirty.check_told());
        collection::end_trace(heap, cycle.left, rooted);
        collection::told(heap, |heap| sweep(heap, false))
    });
    let Cycle { dirty, spent_ns, is_partial, faults, .. } = cycle;
    heap.stats.protected += u64::from(dirty.is_exact());
    // Page protection must be gone before any pages are given back.
    heap.tracking.account = Some(dirty).filter(Dirty::can_go_on);
    plan.end_ns = pause.end(heap, plan.pause_kind());
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    let spent_ns = spent_ns + plan.end_ns;
    if is_partial {
        plan.end_partial(heap, sweep, spent_ns, faults);
    } else {
        collection::end(plan, heap, sweep, Some(spent_ns), true);
        plan.took(heap, spent_ns);
        plan.sticky.whole_ended(spent_ns, heap.stats.live_bytes as usize, heap.sizing.room);
    }
    plan.keep_marks_if_worth(heap);
    Progress::Done
}
