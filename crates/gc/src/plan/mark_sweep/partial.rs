//! Partial collections at one go: only what is new is traced, with the world stopped once.
//!
//! ```text
//! whole     begins the account of writes, or goes on with it; marks stay (`sticky`)
//! partial   stop · roots · old objects that were written to · trace · sweep · all counts as unwritten
//! partial   …
//! whole     no marks, everything
//! ```
//!
//! They are for heaps that collect at one go and that a whole collection takes long for: a program that makes
//! much garbage beside much that lives pays for its new objects only. Slices have partial cycles of their own
//! (`incremental`); both leave it to `sticky` when one is worth it.
//!
//! # Invariants
//! * The account is begun, and all of it armed, while the world stands still at the end of a whole
//!   collection: from there on it has every write.
//! * What a callback reads of other memory is in no account. So objects whose references a callback names
//!   count as written, always.
//!
//! Source: as `sticky`.

use crate::config::ROOM_MIN;
use crate::event::Event;
use crate::heap::Heap;
use crate::mutator::thread::{self, Thread};
use crate::plan::collection::{self, with_world_stopped};
use crate::plan::mark_sweep::MarkSweep;
use crate::plan::mark_sweep::incremental::{is_white, turn_white};
use crate::plan::pause::Pause;
use crate::plan::sweep::sweep;
use crate::sizing::policy::Found;
use crate::space::block::{Block, Region, Scan};
use crate::space::heap_space::HeapSpace;
use crate::trace::mark::{Marker, Paused};
use crate::trace::movement::InPlace;
use crate::trace::root_statistics::Rooted;
use crate::trace::{callbacks, loader};
use crate::write_tracking::{Dirty, Look, Which};

/// A whole collection must take this many nanoseconds for partial ones to be worth the account of writes.
const WORTH_NS: u64 = 2_500_000;
/// Writes to a block are tracked if one part in this many of its objects is alive. Where fewer are, to scan
/// these again costs less than to take the block for written when a thread allocates there.
const TRACKED_PART: usize = 4;
/// The part of the allocation budget that must have been used since the last collection. Sooner somebody is
/// in need, and wants everything that is to be had.
const USED_PART: usize = 4;

impl Heap {
    /// Whether partial collections at one go can be had at all.
    fn may_collect_partly(&self) -> bool {
        self.config.sticky_marks
            && self.config.slice_ns == 0
            && self.config.plan.constraints().slices
            && Dirty::is_lasting()
    }

    /// Whether writes should be tracked from the end of the next whole collection on.
    pub(crate) fn is_worth_tracking(&self) -> bool {
        let is_tested = self.config.eager != 0;
        self.may_collect_partly()
            && (is_tested
                || self.incremental.sticky.is_worth_keeping() && self.whole_ns_expected() > WORTH_NS)
    }

    /// Gets ready to track writes from the end of a whole collection on. The world still runs: nothing may
    /// fail for want of memory once it stands still.
    pub(super) fn prepare_account_at_one_go(&mut self) {
        if self.tracking.account.as_ref().is_some_and(Dirty::is_lost) {
            self.end_account();
        }
        if self.tracking.account.is_some() || !self.is_worth_tracking() {
            return;
        }
        let Some(mut dirty) = Dirty::begin_lasting() else { return };
        if self.config.paranoid {
            dirty.check(&self.space.table);
        }
        dirty.cover_all(&self.space.table);
        self.tracking.account = Some(dirty);
    }

    /// Whether blocks are tracked one by one, and [`Block::is_tracked`] tells which.
    pub(super) fn tracks_by_block(&self) -> bool {
        self.may_collect_partly()
    }

    /// Writes are tracked from here on. The world stands still at the end of a whole collection.
    pub(super) fn track_at_one_go(&mut self) {
        if !self.may_collect_partly() || self.tracking.is_leaving {
            return;
        }
        let Heap { space, tracking, .. } = self;
        let Some(dirty) = &mut tracking.account else { return };
        if is_white() {
            // Blocks that have died are to be used again without faults.
            dirty.disarm_all(&space.table);
        }
        track(space, dirty);
        turn_white();
    }

    /// Whether the collection that is due can be a partial one.
    pub(super) fn is_partial_due(&self) -> bool {
        let is_tested = self.config.eager != 0;
        self.may_collect_partly()
            && !self.tracking.is_leaving
            && self.tracking.account.as_ref().is_some_and(Dirty::can_go_on)
            && (is_tested || self.sizing.used >= self.sizing.room / USED_PART)
            && self.incremental.sticky.is_partial_next(self.stats.live_bytes as usize)
    }
}

/// Makes a partial collection, for `thread`, which is inside and holds the lock. False, and nothing was done,
/// if memory for the lists is out.
pub(super) fn collect(heap: &mut Heap, thread: &'static Thread) -> bool {
    loader::still(|| collect_with_libraries(heap, thread))
}

fn collect_with_libraries(heap: &mut Heap, thread: &'static Thread) -> bool {
    if !collection::prepare(heap) {
        return false;
    }
    let Some(mut dirty) = heap.tracking.account.take() else { return false };
    heap.tell(Event::Begin);
    callbacks::tell_begin();
    let pause = Pause::begin();
    let (mut written, mut faults) = (0, 0);
    let sweep = with_world_stopped(heap, thread, |heap| {
        heap.check_after("the program ran", Heap::validate);
        // Others may be filling in objects of blocks that they are about to leave.
        dirty.rest(heap.slots_in_use());
        collection::retire(heap);
        for &block in heap.space.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            unsafe { (*(block as *const Block)).begin_again() };
        }
        for other in thread::known().filter(|other| !other.is_current()) {
            other.keep_runs(heap.slots_in_use());
        }
        heap.tell(Event::MarkBegin);
        let (left, rooted) = look(heap, &mut dirty, &mut written);
        heap.check_after("a partial collection", |_| dirty.check_told());
        collection::end_trace(heap, left, rooted);
        let found = collection::told(heap, sweep);
        faults = dirty.surprises(written);
        track(&heap.space, &mut dirty);
        found
    });
    heap.tracking.account = Some(dirty);
    let spent_ns = pause.end(heap);
    heap.stats.mark_ns_total += heap.stats.pause_ns_last;
    heap.end_partial(sweep, spent_ns, faults);
    heap.keep_marks_if_worth();
    true
}

/// Tracks writes to blocks of which enough is alive: the rest counts as written, so that new objects there
/// cost no faults, and what is alive there is scanned each time. The world stands still, and what is dead is
/// free.
fn track(space: &HeapSpace, dirty: &mut Dirty) {
    let mut unarmed = 0;
    for &address in space.blocks.iter() {
        // SAFETY: the list has the addresses of descriptors, which are never unmapped.
        let block = unsafe { &*(address as *const Block) };
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
    for thread in thread::known() {
        thread.blocks(space.slots.len()).filter(|block| block.is_tracked()).for_each(|block| {
            untrack(block);
            unarmed += block.extent.get();
        });
    }
    let mut from = 0;
    while let Some(next) = dirty.arm(&space.table, from, Which::Tracked) {
        from = next;
    }
    dirty.note_unarmed(unarmed);
    dirty.rest(space.slots.len());
}

/// The block counts as written from now on.
pub(super) fn untrack(block: &Block) {
    if block.is_tracked() {
        block.region.set(Region::New);
    }
}

/// Marks what the roots lead to, and what objects do that were written to.
fn look(heap: &Heap, dirty: &mut Dirty, written: &mut usize) -> (Paused, Rooted) {
    let Heap { space: HeapSpace { table, blocks, .. }, stack, config, .. } = heap;
    let mut marker = Marker::new(table, *stack, config.only_starts, InPlace);
    let rooted = heap.mark_roots(&mut marker);
    let mut again = |start: usize, end: usize| {
        marker.again(start, end);
        marker.drain(blocks);
    };
    let mut from = 0;
    loop {
        match dirty.look(table, &mut from, false, Which::All) {
            Look::Written(start, end) => {
                *written += end - start;
                again(start, end);
            }
            Look::On => {}
            Look::End => break,
        }
    }
    for &address in blocks.iter() {
        // SAFETY: the list has the addresses of descriptors, which are never unmapped.
        let block = unsafe { &*(address as *const Block) };
        let counts = dirty.is_lost() && Which::All.is(block) || block.scan.get() == Scan::Procedure;
        if counts && block.extent.get() != 0 {
            again(block.base.get(), block.base.get() + block.extent.get());
        }
    }
    (marker.pause(), rooted)
}

impl Heap {
    /// A partial collection ends: it has found `found` and taken `spent_ns`, and the program had written
    /// `faults` pages for the first time since the one before.
    pub(super) fn end_partial(&mut self, found: Found, spent_ns: u64, faults: usize) {
        // Old objects that have died count as alive: the heap is not to grow for them.
        let paid = self.sizing.paid;
        collection::end(&MarkSweep, self, found, None);
        self.sizing.paid = paid;
        self.stats.partial += 1;
        let live = self.stats.live_bytes as usize;
        self.incremental.sticky.partial_ended(spent_ns, live, faults);
        self.sizing.room = self.sizing.room.min(self.incremental.sticky.room_left(live)).max(ROOM_MIN);
    }

    /// The marks of the collection that has just ended stay, if that is worth it and writes are tracked.
    pub(super) fn keep_marks_if_worth(&mut self) {
        match () {
            () if !self.tracking.account.as_ref().is_some_and(Dirty::can_go_on) => self.end_account(),
            () if self.incremental.sticky.is_worth_keeping() || self.is_worth_tracking() => {
                self.incremental.sticky.know();
            }
            () => self.tracking.is_leaving = true,
        }
    }
}
