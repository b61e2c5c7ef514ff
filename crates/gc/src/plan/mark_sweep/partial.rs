//! Partial collections without slices: only new objects are traced, with the world stopped once.
//!
//! ```text
//! whole     begins or continues the tracking of writes; marks are kept (`sticky`)
//! partial   stop · roots · old objects that were written to · trace · sweep · clear the record of writes
//! partial   …
//! whole     clears all marks, traces everything
//! ```
//!
//! Partial collections are for heaps without slices whose whole collections take long: a program with many
//! live objects that makes much garbage then pays for its new objects only. Collections in slices can be
//! partial as well (`incremental`). In both cases `sticky` decides whether a partial collection is worth it.
//!
//! # Invariants
//! * Write tracking begins, for all of the heap, while the world is stopped at the end of a whole
//!   collection. From then on it covers every write.
//! * Writes to memory outside the heap are not tracked, though a trace callback may read references there.
//!   Objects with such a callback therefore always count as written.
//!
//! The source is that of `sticky`.

use crate::config::ROOM_MIN;
use crate::heap::Heap;
use crate::plan::collection::{self, with_world_stopped};
use crate::plan::contract::Plan;
use crate::plan::mark_sweep::MarkSweep;
use crate::plan::mark_sweep::incremental::mark_roots;
use crate::plan::pause::{Kind, Pause};
use crate::plan::sweep::sweep;
use crate::process::hooks;
use crate::sizing::policy::Found;
use crate::space::block::{Block, Region, Scan};
use crate::space::heap_space::HeapSpace;
use crate::trace::mark::{Marker, Paused};
use crate::trace::movement::InPlace;
use crate::trace::root_statistics::Rooted;
use crate::world::World;
use crate::world::event::Event;
use crate::world::thread::Thread;
use crate::write_tracking::rescan::Written;
use crate::write_tracking::tracking::untrack;
use crate::write_tracking::{Dirty, Which};

/// A whole collection must take this many nanoseconds for partial ones to be worth the account of writes.
const WORTH_NS: u64 = 2_500_000;
/// Writes to a block are tracked if one part in this many of its objects is alive. Where fewer are, to scan
/// these again costs less than to take the block for written when a thread allocates there.
const TRACKED_PART: usize = 4;
/// The part of the allocation budget that must have been used since the last collection. An earlier
/// collection is forced by a lack of memory, and must free all it can.
const USED_PART: usize = 4;

impl Heap {
    /// Returns whether partial collections at one go can be had at all. Then blocks are tracked one by one,
    /// and [`Block::is_tracked`] shows which.
    pub(super) fn tracks_by_block(&self) -> bool {
        self.config.sticky_marks && self.config.slice_ns == 0 && Dirty::is_lasting()
    }
}

impl MarkSweep {
    /// Returns whether writes should be tracked from the end of the next whole collection on.
    pub(super) fn is_worth_tracking(&self, heap: &Heap) -> bool {
        let is_tested = heap.config.eager != 0;
        heap.tracks_by_block()
            && (is_tested || self.sticky.is_worth_keeping() && self.whole_ns_expected(heap) > WORTH_NS)
    }

    /// Gets ready to track writes from the end of a whole collection on. The world still runs: allocation may
    /// not fail once it stands still.
    pub(super) fn prepare_account_at_one_go(&mut self, heap: &mut Heap) {
        if heap.tracking.account.as_ref().is_some_and(Dirty::is_lost) {
            self.end_account(heap);
        }
        if heap.tracking.account.is_some() || !self.is_worth_tracking(heap) {
            return;
        }
        let Some(mut dirty) = Dirty::begin_lasting() else { return };
        if heap.config.paranoid {
            dirty.check(&heap.space.table, &mut heap.tracking.sums);
        }
        dirty.cover_all(&heap.space.table);
        heap.tracking.account = Some(dirty);
    }

    /// Returns whether the collection that is due can be a partial one.
    pub(super) fn is_partial_due(&self, heap: &Heap) -> bool {
        let is_tested = heap.config.eager != 0;
        heap.tracks_by_block()
            && !heap.tracking.is_leaving
            && heap.tracking.account.as_ref().is_some_and(Dirty::can_go_on)
            && (is_tested || heap.sizing.used >= heap.sizing.room / USED_PART)
            && self.sticky.is_partial_next(heap.stats.live_bytes as usize)
    }
}

/// Writes are tracked from here on. The world stands still at the end of a whole collection.
pub(super) fn track_at_one_go(heap: &mut Heap) {
    if !heap.tracks_by_block() || heap.tracking.is_leaving {
        return;
    }
    let Some(dirty) = &mut heap.tracking.account else { return };
    if heap.shared.is_white() {
        // Blocks that have died are to be used again without faults.
        dirty.disarm_all(&heap.space.table);
    }
    track(&heap.shared.world, &heap.space, dirty);
    heap.turn_white();
}

/// Makes a partial collection, for `thread`, which is inside and holds the lock. False, and nothing was done,
/// if memory for the lists is out.
pub(super) fn collect(plan: &mut MarkSweep, heap: &mut Heap, thread: &'static Thread) -> bool {
    if !collection::prepare(heap) {
        return false;
    }
    let Some(mut dirty) = heap.tracking.account.take() else { return false };
    heap.tell(Event::Begin);
    hooks::tell_begin();
    let pause = Pause::begin();
    let (mut written, mut faults) = (0, 0);
    let sweep = with_world_stopped(heap, thread, |heap| {
        heap.check_after("the program ran", |heap| (plan as &dyn Plan).validate(heap));
        // Others may be filling in objects of blocks that they are about to leave.
        dirty.rest(&heap.shared.world, heap.slots_in_use());
        collection::retire(heap);
        for &block in heap.space.blocks.iter() {
            block.begin_again();
        }
        collection::keep_runs(heap);
        heap.tell(Event::MarkBegin);
        let (left, rooted) = look(heap, &mut dirty, &mut written);
        heap.check_after("a partial collection", |_| dirty.check_told());
        collection::end_trace(heap, left, rooted);
        let found = collection::told(heap, |heap| sweep(heap, false));
        faults = dirty.surprises(written);
        track(&heap.shared.world, &heap.space, &mut dirty);
        found
    });
    heap.tracking.account = Some(dirty);
    let spent_ns = pause.end(heap, Kind::Major);
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    plan.end_partial(heap, sweep, spent_ns, faults);
    plan.keep_marks_if_worth(heap);
    true
}

/// Tracks writes to blocks with enough live objects. The others count as written: new objects there cost no
/// faults, and the live ones are scanned each time. The world stands still, after the sweep.
fn track(world: &World, space: &HeapSpace, dirty: &mut Dirty) {
    let mut unarmed = 0;
    for &block in space.blocks.iter() {
        if block.scan.get() == Scan::Nothing || block.is_kept() {
            continue;
        }
        if block.allocated_count() as usize * TRACKED_PART >= block.count.get() as usize {
            block.region.set(Region::Tracked);
        } else {
            untrack(block);
            unarmed += block.extent.get();
        }
    }
    // They are about to be filled.
    for thread in world.known() {
        thread.blocks(space.slots.len()).filter(|block| block.is_tracked()).for_each(|block| {
            untrack(block);
            unarmed += block.extent.get();
        });
    }
    dirty.arm_all(&space.table, Which::Tracked);
    dirty.note_unarmed(unarmed);
    dirty.rest(world, space.slots.len());
}

/// Marks what the roots lead to, and what objects do that were written to.
fn look(heap: &Heap, dirty: &mut Dirty, written: &mut usize) -> (Paused, Rooted) {
    let Heap { space: HeapSpace { table, blocks, .. }, stack, config, .. } = heap;
    let mut marker = Marker::new(table, *stack, config.only_starts, InPlace);
    let rooted = mark_roots(heap, &mut marker);
    *written = Written { which: Which::All, drains: true }.look_through(&mut marker, dirty, table, blocks);
    let is_named = |block: &&&Block| block.scan.get() == Scan::Procedure && block.extent.get() != 0;
    for block in blocks.iter().filter(is_named) {
        marker.again(block.span());
        marker.drain(blocks);
    }
    (marker.pause(), rooted)
}

impl MarkSweep {
    /// A partial collection ends: it has found `found` and taken `spent_ns`, and the program had written
    /// `faults` pages for the first time since the one before.
    pub(super) fn end_partial(&mut self, heap: &mut Heap, found: Found, spent_ns: u64, faults: usize) {
        // Old objects that have died count as alive: the heap is not to grow for them.
        let paid = heap.sizing.paid;
        collection::end(self, heap, found, None, true);
        heap.sizing.paid = paid;
        heap.stats.partial += 1;
        let live = heap.stats.live_bytes as usize;
        self.sticky.partial_ended(spent_ns, live, faults);
        heap.sizing.room = heap.sizing.room.min(self.sticky.room_left(live)).max(ROOM_MIN);
    }

    /// The marks of the collection that has just ended stay, if that is worth it and writes are tracked.
    pub(super) fn keep_marks_if_worth(&mut self, heap: &mut Heap) {
        match () {
            () if !heap.tracking.account.as_ref().is_some_and(Dirty::can_go_on) => self.end_account(heap),
            () if self.sticky.is_worth_keeping() || self.is_worth_tracking(heap) => {
                self.sticky.know();
            }
            () => heap.tracking.is_leaving = true,
        }
    }
}
