//! A collection in slices: marking goes on in small pieces between which the program runs.
//!
//! ```text
//! arm      what is written from now on will be known                                ─┐
//! begin    world stopped: nothing is marked; roots                                    │
//! mark     trace from there                                                          │ slices, the program
//! pass     what was written meanwhile is looked through again, and the roots          │ runs in between
//! mark     trace from there; a further pass, until little was written                ─┘
//! finish   world stopped: roots and written parts once more, trace, links, survey
//! let go   of the account of what is written
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
//!
//! Source: slices that are bounded, driven by allocation and by idleness, and give way at once, are what Bates asks of a
//! collector (section "Improving the Results"). There a slice is 50 blocks of copying; here it is time.

use crate::block::Block;
use crate::budget::Budget;
use crate::class::BLOCK;
use crate::collect::{self, with_world_stopped};
use crate::config::Plan;
use crate::dirty::Dirty;
use crate::heap::Heap;
use crate::mark::{Marker, Paused};
use crate::movement::InPlace;
use crate::pause::Pause;
use crate::thread::{self, Thread};
use core::sync::atomic::{AtomicBool, Ordering};

/// Passes before the end, at most.
const PASSES_MAX: u32 = 4;
/// Written bytes a pass found from which another one is made.
const WRITTEN_MANY: usize = 256 << 10;
/// The part of the room that is allocated while a cycle is on: a quarter.
const CYCLE_PART: usize = 4;
/// What a cycle may overrun its room by, as a part of that.
const OVERRUN_PART: usize = 4;
/// Slices beyond those that marking needs: passes and the end.
const SLICES_MORE: u64 = 4;

/// Whether a cycle is on. Changes while the world stands still; read inside.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether new objects must be unmarked.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Where a cycle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What is written is being made known, from this address on. Nothing is marked yet.
    Arm(usize),
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
    passes: u32,
    /// Bytes found written in the last pass.
    written: usize,
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
        match &self.cycle {
            Some(cycle) => self.used >= cycle.due,
            None if self.leaving.is_some() => false,
            None => self.used >= self.room - self.room / CYCLE_PART && self.is_worth_slicing(),
        }
    }

    /// Whether a collection at one go would take longer than a slice, and slices can be had.
    fn is_worth_slicing(&self) -> bool {
        self.may_slice() && self.trace_ns_expected() > self.config.slice_ns
    }

    /// Whether slices can be had.
    pub(crate) fn may_slice(&self) -> bool {
        self.config.plan == Plan::MarkSweep && !self.slicing_failed && Dirty::is_available()
    }

    /// Whether all that is left to do is the end, which is made at one go.
    pub(crate) fn is_cycle_ready(&self) -> bool {
        self.cycle.as_ref().is_some_and(|cycle| cycle.phase == Phase::Ready)
    }

    /// How long tracing and survey will take, by how long they took.
    fn trace_ns_expected(&self) -> u64 {
        (self.bytes as u64 >> 10) * self.ns_a_kib
    }

    /// Bytes to hand out before the world must stop for a whole collection.
    #[inline]
    pub(crate) fn room_now(&self) -> usize {
        if self.cycle.is_some() { self.room + self.room / OVERRUN_PART } else { self.room }
    }

    /// A block or large object came to the heap.
    pub(crate) fn block_came(&mut self, block: &Block) {
        if let Some(cycle) = &mut self.cycle {
            cycle.dirty.enter(block.base.get(), block.extent.get());
            if block.slot.get() != 0 {
                block.begin_trace();
            }
        }
    }

    /// A thread is to allocate from a block that was there before.
    pub(crate) fn block_goes_out(&mut self, block: &Block) {
        if let Some(cycle) = &mut self.cycle {
            cycle.dirty.expect(block.base.get(), block.extent.get());
        }
    }

    fn mark_roots(&self, marker: &mut Marker<'_, InPlace>) {
        let _ = collect::mark_roots(marker, &self.roots, &self.kept, &self.finalizers, self.slots_used);
    }

    /// Drops a cycle that is on: the next collection begins anew.
    pub(crate) fn drop_cycle(&mut self) {
        self.leaving = None;
        if self.cycle.take().is_some() {
            ON.store(false, Ordering::Relaxed);
            for &block in self.blocks.iter() {
                // SAFETY: the list has the addresses of descriptors, which are never unmapped.
                unsafe { (*(block as *const Block)).overflowed.set(false) };
            }
        }
    }
}

/// Begins a cycle or goes on with it, for `thread`, which is inside and holds the lock.
pub(crate) fn step(heap: &mut Heap, thread: &'static Thread, budget: Budget) -> Progress {
    // Before the world is stopped: the loader's lock may be held by anybody.
    if heap.roots.refresh().is_err() {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    match heap.cycle.as_ref().map(|cycle| cycle.phase) {
        None => {
            begin(heap);
            slice(heap, thread, budget)
        }
        Some(Phase::Ready) => finish(heap, thread),
        Some(_) => slice(heap, thread, budget),
    }
}

/// Lets go of the account of what was written in the last cycle, for as long as `budget` says.
pub(crate) fn let_go(heap: &mut Heap, mut budget: Budget) {
    let pause = Pause::begin();
    while let Some(dirty) = &mut heap.leaving {
        if !dirty.let_go() {
            heap.leaving = None;
        }
        if !budget.look() {
            break;
        }
    }
    pause.end(heap);
}

fn begin(heap: &mut Heap) {
    // Two accounts cannot be kept of the same memory.
    heap.leaving = None;
    let Some(dirty) = Dirty::begin() else {
        // It would be refused again and again: the next collection is made at one go.
        heap.slicing_failed = true;
        return;
    };
    let slices = heap.trace_ns_expected() / heap.config.slice_ns.max(1) + SLICES_MORE;
    let quantum = (heap.room / CYCLE_PART / slices as usize).max(BLOCK);
    heap.cycle = Some(Cycle {
        left: Paused::default(),
        dirty,
        phase: Phase::Arm(0),
        passes: 0,
        written: 0,
        due: heap.used,
        quantum,
        spent_ns: 0,
    });
}

fn slice(heap: &mut Heap, thread: &'static Thread, mut budget: Budget) -> Progress {
    let Some(mut cycle) = heap.cycle.take() else { return Progress::Nothing };
    let pause = Pause::begin();
    with_world_stopped(heap, thread, |heap| cycle.work(heap, &mut budget));
    cycle.spent_ns += pause.end(heap);
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    heap.stats.slices += 1;
    cycle.due = heap.used + cycle.quantum;
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
        if let Phase::Arm(mut from) = self.phase {
            while let Some(next) = self.dirty.arm(&heap.space, from) {
                from = next;
                self.phase = Phase::Arm(from);
                if !budget.look() {
                    return;
                }
            }
            if !self.dirty.is_lost() {
                self.start(heap);
            }
            return;
        }
        let Heap { space, stack, config, .. } = heap;
        let mut marker = Marker::resume(space, *stack, config.only_starts, InPlace, self.left);
        while marker.drain_while(&heap.blocks, || budget.go_on()) {
            match self.phase {
                Phase::Pass(from) => {
                    let written = &mut self.written;
                    let next = self.dirty.each(space, from, true, |start, end| {
                        *written += end - start;
                        marker.again(start, end);
                    });
                    self.phase = next.map_or(Phase::Mark, Phase::Pass);
                }
                _ if self.passes == 0 || self.written > WRITTEN_MANY && self.passes < PASSES_MAX => {
                    self.passes += 1;
                    self.written = 0;
                    self.phase = Phase::Pass(0);
                    heap.mark_roots(&mut marker);
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
        for &block in heap.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            unsafe { (*(block as *const Block)).begin_trace() };
        }
        let mut marker = Marker::new(&heap.space, heap.stack, heap.config.only_starts, InPlace);
        heap.mark_roots(&mut marker);
        self.left = marker.pause();
        self.dirty.rest(heap.slots_in_use());
        self.phase = Phase::Mark;
        ON.store(true, Ordering::Relaxed);
    }

    /// Looks through everything that was written since it was looked through, with the world stopped for the last time.
    fn look_again(&mut self, heap: &Heap) {
        let Heap { space, stack, config, .. } = heap;
        let mut marker = Marker::resume(space, *stack, config.only_starts, InPlace, self.left);
        heap.mark_roots(&mut marker);
        let mut from = Some(0);
        while let Some(at) = from {
            from = self.dirty.each(space, at, false, |start, end| marker.again(start, end));
            // What was found waits on the stack: it is emptied before it is full.
            marker.drain(&heap.blocks);
        }
        if self.dirty.is_lost() {
            for &block in heap.blocks.iter() {
                // SAFETY: the list has the addresses of descriptors, which are never unmapped.
                let block = unsafe { &*(block as *const Block) };
                marker.again(block.base.get(), block.base.get() + block.extent.get());
                marker.drain(&heap.blocks);
            }
        }
        self.left = marker.pause();
    }
}

/// Ends the cycle that is on. Without memory for lists it is dropped.
pub(crate) fn finish(heap: &mut Heap, thread: &'static Thread) -> Progress {
    if !collect::prepare(heap) {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    if heap.cycle.as_ref().is_none_or(|cycle| matches!(cycle.phase, Phase::Arm(_))) {
        heap.drop_cycle();
        return Progress::Nothing;
    }
    let Some(mut cycle) = heap.cycle.take() else { return Progress::Nothing };
    let pause = Pause::begin();
    let survey = with_world_stopped(heap, thread, |heap| {
        collect::retire(heap);
        for other in thread::known().filter(|other| !other.is_current()) {
            other.keep_runs(heap.slots_in_use());
        }
        cycle.look_again(heap);
        collect::end_trace(heap, cycle.left);
        ON.store(false, Ordering::Relaxed);
        crate::survey::survey(heap)
    });
    let Cycle { dirty, spent_ns, .. } = cycle;
    heap.leaving = Some(dirty);
    heap.end_ns = pause.end(heap);
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    let spent_ns = spent_ns + heap.end_ns;
    collect::end(heap, survey, spent_ns);
    Progress::Done
}
