//! A collection in slices: marking goes on in small pieces between which the program runs.
//!
//! ```text
//! arm      what is written from now on will be known        (once; between cycles the account goes on)      ─┐
//! start    world stopped: nothing is marked, or what is old (`sticky`); roots                                │
//! mark     trace from there                                                                                  │ slices, the program
//! pass     what was written meanwhile is looked through again, and the roots                                 │ runs in between
//! mark     trace from there; a further pass, until little was written                                       ─┘
//! finish   world stopped: roots and written parts once more, trace, links, survey
//! ```
//!
//! The program may change the heap between slices, and it may hide an object behind one that was looked through already. So
//! whatever is written is looked through again, until nothing that is marked has been written since it was looked through: that
//! is only certain while the world stands still, but by then little is left (Boehm, Demers and Shenker 1991).
//!
//! New objects are unmarked (*white*): those that die before the end are free at the end, and those that live are found by
//! the passes.
//!
//! # Invariants
//! * The heap's lock is held and the world stands still in every slice; no thread is inside then.
//! * Between slices, what waits is on the mark stack; nothing on it is unmapped before the end: large objects that are freed wait.
//! * A block that comes to the heap during a cycle has its free objects marked, as [`Block::begin_trace`] leaves those of the others.
//! * A cycle that cannot go on (no memory for lists, a forked child) is dropped: its marks mean nothing then.
//! * While there is an account, new objects are unmarked, be a cycle on or not.
//!
//! Source: slices that are bounded, driven by allocation and by idleness, and give way at once, are what Bates asks of a
//! collector (section "Improving the Results"). There a slice is 50 blocks of copying; here it is time.

use crate::block::Block;
use crate::budget::Budget;
use crate::class::BLOCK;
use crate::collect::{self, with_world_stopped};
use crate::config::{Plan, ROOM_MIN};
use crate::dirty::{Dirty, EXPECT_MAX, Look, Which};
use crate::event::{self, Event};
use crate::freed;
use crate::heap::Heap;
use crate::loader;
use crate::mark::{Marker, Paused};
use crate::movement::InPlace;
use crate::pause::Pause;
use crate::procedure;
use crate::rooted::Rooted;
use crate::survey::survey;
use crate::thread::{self, Thread};
use crate::written::Written;
use core::sync::atomic::{AtomicBool, Ordering};

/// Passes before the end, at most.
const PASSES_MAX: u32 = 4;
/// Written bytes a pass found from which another one is made, if it was less by a quarter than what the one before had found: a program
/// may write faster than its writes can be looked through. Its slices follow each other as fast as can be, so that little is written meanwhile.
const WRITTEN_MANY: usize = 256 << 10;
/// The part of the room that is allocated while a cycle is on, at most: a quarter.
const CYCLE_PART: usize = 4;
/// Bytes that are allocated between two slices, where a quarter of the room is more than that for all of them: what a program takes some
/// hundred microseconds for, so that slices do not follow each other at once, and a cycle begins as late as can be.
const QUANTUM: usize = 256 << 10;
/// What a cycle may overrun its room by, as a part of that.
const OVERRUN_PART: usize = 4;
/// Slices beyond those that marking needs: passes and the end.
const SLICES_MORE: u64 = 4;

/// Whether new objects must be unmarked: a cycle is on, or marks stay. Changes while the heap's lock is held; read inside.
static ON: AtomicBool = AtomicBool::new(false);

/// See [`ON`]. Who does not see it yet allocates before the world first stands still in the cycle that has set it.
#[inline]
pub(crate) fn is_white() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Where a cycle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What is written is being made known, from this address on. Nothing is marked yet.
    Arm(usize),
    /// What is written is known.
    Start,
    Mark,
    /// Looking through what was written, from this address on.
    Pass(usize),
    /// All but the last stop is done.
    Ready,
}

/// A collection that is under way.
pub(crate) struct Cycle {
    left: Paused,
    dirty: Dirty,
    phase: Phase,
    /// Old marks stay.
    is_partial: bool,
    passes: u32,
    /// Bytes found written in the last pass, or in this one so far, and in the one before.
    written: usize,
    written_before: usize,
    /// Pages that the program has written since the last cycle, each at the cost of a fault.
    faults: usize,
    /// Bytes allocated at which the next slice is due.
    due: usize,
    /// Bytes allocated between slices.
    quantum: usize,
    spent_ns: u64,
}

/// What a slice has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is more to do.
    More,
    /// The cycle is at its end: a collection has been made.
    Done,
    /// Nothing was done, and will not be before the next collection.
    Nothing,
}

impl Heap {
    /// Whether a cycle should begin or go on, by what was allocated.
    #[inline]
    pub(crate) fn is_slice_due(&self) -> bool {
        if self.config.slice_ns == 0 || self.held != 0 {
            return false;
        }
        let is_due = match &self.cycle {
            Some(cycle) => self.used >= cycle.due,
            None if self.is_leaving => false,
            None => self.is_worth_slicing() && self.used >= self.room - self.lead(self.slices_expected()),
        };
        is_due && event::is_welcome(self)
    }

    /// Whether a collection at one go would take longer than a slice, and slices can be had.
    fn is_worth_slicing(&self) -> bool {
        self.may_slice() && self.whole_ns_expected() > self.config.slice_ns
    }

    /// Whether slices can be had. Not where procedures name what objects refer to: that may be written where nobody tells of it.
    pub(crate) fn may_slice(&self) -> bool {
        self.config.plan == Plan::MarkSweep
            && !self.has_procedures
            && !self.slicing_failed
            && Dirty::is_available()
    }

    /// Whether a collection is about to be made at one go, although slices are asked for, as nobody tells what is written.
    pub(crate) fn wants_slices_in_vain(&self) -> bool {
        self.config.slice_ns != 0 && (self.slicing_failed || self.has_procedures || !Dirty::is_available())
    }

    /// Whether all that is left to do is the end, which is made at one go.
    pub(crate) fn is_cycle_ready(&self) -> bool {
        self.cycle.as_ref().is_some_and(|cycle| cycle.phase == Phase::Ready)
    }

    /// How long tracing everything and the survey will take, by how long they took.
    fn whole_ns_expected(&self) -> u64 {
        (self.bytes as u64 >> 10) * self.ns_a_kib
    }

    /// Slices that the next cycle will take.
    fn slices_expected(&self) -> u64 {
        let whole_ns = self.whole_ns_expected();
        let is_partial = self.sticky.is_partial_next(self.stats.live_bytes as usize);
        let ns = if is_partial { self.sticky.partial_ns(whole_ns) } else { whole_ns };
        ns / self.config.slice_ns.max(1) + SLICES_MORE
    }

    /// Bytes to be allocated during a cycle of so many slices.
    fn lead(&self, slices: u64) -> usize {
        (slices as usize).saturating_mul(QUANTUM).min(self.room / CYCLE_PART)
    }

    /// Bytes to hand out before the world must stop for a whole collection.
    #[inline]
    pub(crate) fn room_now(&self) -> usize {
        if self.cycle.is_some() { self.room + self.room / OVERRUN_PART } else { self.room }
    }

    /// A new account of what is written, if that can be had.
    fn new_account(&self) -> Option<Dirty> {
        let mut dirty = Dirty::begin(&self.space)?;
        if self.config.paranoid {
            dirty.check(&self.space);
        }
        Some(dirty)
    }

    /// The account of what is written, if there is one.
    fn account(&mut self) -> Option<&mut Dirty> {
        self.cycle.as_mut().map(|cycle| &mut cycle.dirty).or(self.dirty.as_mut())
    }

    /// A block or large object came to the heap.
    pub(crate) fn block_came(&mut self, block: &Block) {
        let (start, end) = (block.base.get(), block.base.get() + block.extent.get());
        if self.config.plan == Plan::Appel {
            // Nobody asks what is written to new objects; what is free was released.
            if let Some(dirty) = &mut self.dirty {
                dirty.cover(start, end);
            }
            return;
        }
        let is_small = block.slot.get() != 0;
        let ahead = if is_small { self.pool_beside(start, end) } else { (start, end) };
        if let Some(dirty) = self.account() {
            dirty.enter(start, end, ahead);
            if is_small {
                block.begin_trace();
            }
        }
    }

    /// A thread is to allocate from a block that was there before; it leads to the next with room still.
    pub(crate) fn block_goes_out(&mut self, block: &Block) {
        let Some(dirty) = self.account() else { return };
        let (start, mut end) = (block.base.get(), block.base.get() + block.extent.get());
        let (own, mut next) = ((start, end), block.next.get());
        // SAFETY: null, or a descriptor, which is never unmapped.
        while let Some(beside) = unsafe { next.as_ref() }.filter(|next| next.base.get() == end) {
            if end - start >= EXPECT_MAX {
                break;
            }
            end += beside.extent.get();
            next = beside.next.get();
        }
        dirty.expect(own.0, own.1, (start, end));
    }

    /// The free blocks that will be taken next and lie beside the addresses from `start` up to `end`, and these.
    fn pool_beside(&self, mut start: usize, mut end: usize) -> (usize, usize) {
        for &unit in self.pool.iter().rev() {
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

    fn mark_roots(&self, marker: &mut Marker<'_, InPlace>) -> Rooted {
        let Heap { roots, kept, finalizers, disclaimers, slots, .. } = self;
        kept.mark(marker, &self.blocks);
        collect::mark_roots(marker, roots, finalizers, disclaimers, slots.len(), false)
    }

    /// Drops a cycle that is on: the next collection begins anew. The account of what is written goes on, if it can.
    pub(crate) fn drop_cycle(&mut self) {
        self.sticky.forget();
        if let Some(cycle) = self.cycle.take() {
            event::tell(Event::End, self);
            for &block in self.blocks.iter() {
                // SAFETY: the list has the addresses of descriptors, which are never unmapped.
                unsafe { (*(block as *const Block)).overflowed.set(false) };
            }
            self.dirty = Some(cycle.dirty);
        }
        if self.dirty.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
            self.end_account();
        }
    }

    /// Ends the account of what is written. No cycle is on.
    pub(crate) fn end_account(&mut self) {
        self.sticky.forget();
        self.dirty = None;
        self.is_leaving = false;
        ON.store(false, Ordering::Relaxed);
    }

    /// A collection at one go has ended, with every object's mark as it should be; it took `spent_ns`.
    pub(crate) fn whole_ended(&mut self, spent_ns: u64) {
        if self.dirty.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
            self.end_account();
        }
        self.sticky.whole_ended(spent_ns, self.stats.live_bytes as usize, self.room);
        if self.dirty.is_none() || self.is_leaving {
            return;
        }
        if self.is_worth_slicing() {
            self.sticky.know();
        } else {
            self.is_leaving = true;
        }
    }
}

/// Begins a cycle or goes on with it, for `thread`, which is inside and holds the lock. One that begins is whole if `whole` says so.
pub(crate) fn step(heap: &mut Heap, thread: &'static Thread, budget: Budget, whole: bool) -> Progress {
    loader::still(|| step_with_libraries(heap, thread, budget, whole))
}

fn step_with_libraries(heap: &mut Heap, thread: &'static Thread, budget: Budget, whole: bool) -> Progress {
    // Before the world is stopped: the loader's lock may be held by anybody.
    if heap.roots.refresh().is_err() {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    match heap.cycle.as_ref().map(|cycle| cycle.phase) {
        None => {
            begin(heap, whole);
            slice(heap, thread, budget)
        }
        Some(Phase::Ready) => finish(heap, thread),
        Some(_) => slice(heap, thread, budget),
    }
}

/// Lets go of the account of what is written, for as long as `budget` says.
pub(crate) fn let_go(heap: &mut Heap, mut budget: Budget) {
    let pause = Pause::begin();
    while let Some(dirty) = &mut heap.dirty {
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
    if heap.is_leaving || heap.dirty.as_ref().is_some_and(|dirty| !dirty.can_go_on()) {
        // Two accounts cannot be kept of the same memory.
        heap.end_account();
    }
    let slices = heap.slices_expected();
    let is_partial = !whole && heap.sticky.is_partial_next(heap.stats.live_bytes as usize);
    let Some(dirty) = heap.dirty.take().or_else(|| heap.new_account()) else {
        // It would be refused again and again: the next collection is made at one go.
        heap.slicing_failed = true;
        return;
    };
    event::tell(Event::Begin, heap);
    procedure::tell_begin();
    ON.store(true, Ordering::Relaxed);
    let quantum = (heap.lead(slices) / slices as usize).max(BLOCK);
    heap.cycle = Some(Cycle {
        left: Paused::default(),
        dirty,
        phase: if is_partial { Phase::Start } else { Phase::Arm(0) },
        is_partial,
        passes: 0,
        written: 0,
        written_before: usize::MAX,
        faults: 0,
        due: heap.used,
        quantum,
        spent_ns: 0,
    });
    if !is_partial {
        heap.sticky.forget();
    }
}

fn slice(heap: &mut Heap, thread: &'static Thread, mut budget: Budget) -> Progress {
    let Some(mut cycle) = heap.cycle.take() else { return Progress::Nothing };
    let pause = Pause::begin();
    with_world_stopped(heap, thread, |heap| cycle.work(heap, &mut budget));
    cycle.spent_ns += pause.end(heap);
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    heap.stats.slices += 1;
    cycle.due = heap.used + if cycle.is_behind() { 0 } else { cycle.quantum };
    let is_refused = matches!(cycle.phase, Phase::Arm(_)) && cycle.dirty.is_lost();
    heap.cycle = Some(cycle);
    if is_refused {
        heap.drop_cycle();
        heap.slicing_failed = true;
        return Progress::Nothing;
    }
    Progress::More
}

impl Cycle {
    fn work(&mut self, heap: &Heap, budget: &mut Budget) {
        while let Phase::Arm(from) = self.phase {
            match self.dirty.arm(&heap.space, from, Which::All) {
                Some(next) => self.phase = Phase::Arm(next),
                None if self.dirty.is_lost() => return,
                None => self.phase = Phase::Start,
            }
            if !budget.look() {
                // What was armed is accounted for from here on, also if another collection comes between.
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
        let Heap { space, stack, config, .. } = heap;
        let mut marker = Marker::resume(space, *stack, config.only_starts, InPlace, self.left);
        while marker.drain_while(&heap.blocks, || budget.go_on()) {
            match self.phase {
                Phase::Pass(mut from) => match self.dirty.look(space, &mut from, true, Which::All) {
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

    /// Whether so much was written that the end would take long, and a further pass would find less.
    fn is_behind(&self) -> bool {
        self.passes > 0
            && self.passes < PASSES_MAX
            && self.written > WRITTEN_MANY
            && (self.passes == 1 || self.written < self.written_before / 4 * 3)
    }

    /// Begins to mark.
    fn start(&mut self, heap: &Heap) {
        freed::end_lists(&heap.space, heap.slots_in_use());
        for &block in heap.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(block as *const Block) };
            if self.is_partial {
                block.begin_again();
            } else {
                block.begin_trace();
            }
        }
        let mut marker = Marker::new(&heap.space, heap.stack, heap.config.only_starts, InPlace);
        let _ = heap.mark_roots(&mut marker);
        self.left = marker.pause();
        self.dirty.rest(heap.slots_in_use());
        // What was written since the last cycle is as good as a root.
        self.phase = if self.is_partial { Phase::Pass(0) } else { Phase::Mark };
    }

    /// Looks through everything that was written since it was looked through, with the world stopped for the last time. What roots led to.
    fn look_again(&mut self, heap: &Heap) -> Rooted {
        let Heap { space, stack, config, .. } = heap;
        let mut marker = Marker::resume(space, *stack, config.only_starts, InPlace, self.left);
        let rooted = heap.mark_roots(&mut marker);
        let all = Written { which: Which::All, drains: true };
        all.look_through(&mut marker, &mut self.dirty, space, &heap.blocks);
        self.left = marker.pause();
        rooted
    }
}

/// Ends the cycle that is on. Without memory for lists it is dropped.
pub(crate) fn finish(heap: &mut Heap, thread: &'static Thread) -> Progress {
    loader::still(|| finish_with_libraries(heap, thread))
}

fn finish_with_libraries(heap: &mut Heap, thread: &'static Thread) -> Progress {
    if !collect::prepare(heap) {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    if heap.cycle.as_ref().is_none_or(|cycle| matches!(cycle.phase, Phase::Arm(_) | Phase::Start)) {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    let Some(mut cycle) = heap.cycle.take() else { return Progress::Nothing };
    let pause = Pause::begin();
    let survey = with_world_stopped(heap, thread, |heap| {
        // Others may be filling in objects of blocks that they are about to leave.
        cycle.dirty.rest(heap.slots_in_use());
        collect::retire(heap);
        for other in thread::known().filter(|other| !other.is_current()) {
            other.keep_runs(heap.slots_in_use());
        }
        event::tell(Event::MarkBegin, heap);
        let rooted = cycle.look_again(heap);
        heap.check_after("a trace in slices", |_| cycle.dirty.check_told());
        collect::end_trace(heap, cycle.left, rooted);
        collect::told(heap, survey)
    });
    let Cycle { dirty, spent_ns, is_partial, faults, .. } = cycle;
    heap.stats.protected += u64::from(dirty.is_exact());
    // What protects pages must be gone before any are given back.
    heap.dirty = Some(dirty).filter(Dirty::can_go_on);
    heap.end_ns = pause.end(heap);
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    let spent_ns = spent_ns + heap.end_ns;
    collect::end(heap, survey, (!is_partial).then_some(spent_ns));
    if is_partial {
        heap.stats.partial += 1;
        let live = heap.stats.live_bytes as usize;
        heap.sticky.partial_ended(spent_ns, live, faults);
        heap.room = heap.room.min(heap.sticky.room_left(live)).max(ROOM_MIN);
    } else {
        heap.sticky.whole_ended(spent_ns, heap.stats.live_bytes as usize, heap.room);
    }
    match () {
        () if heap.dirty.is_none() => heap.end_account(),
        () if heap.sticky.is_worth_keeping() => heap.sticky.know(),
        () => heap.is_leaving = true,
    }
    Progress::Done
}
