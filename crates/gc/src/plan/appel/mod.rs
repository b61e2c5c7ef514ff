//! The plan `appel`: a generational copying collector (two generations, called new and old).
//!
//! ```text
//!  old    │ blocks of objects that survived a collection: all marked, so minor collections leave them alone
//!  unused │ one end of the pool of free blocks (its cold end): the old region grows into it
//!  new    │ blocks that threads have allocated from since the last collection, and large objects since then
//!  free   │ the pool's other end (its warm end): threads take their blocks from it
//!
//!  minor   new ─▶ old: live objects are copied behind the old ones, slot by slot;
//!          pinned ones stay, and their blocks become old in time
//!  major   old and new ─▶ fresh blocks, which are the old region then; for the vacated ones see `vacated`
//!          in both kinds, dense blocks stay, unless the setting `AfterMajor` has them copied
//! ```
//!
//! # What keeps minor collections small
//! All old objects count as alive in minor collections. These scan only old objects that were written to
//! since the last collection. `write_tracking` lists such objects, as reported by the program
//! (`tells_writes`) or by the kernel. With neither source every collection is a major one; the statistics
//! count these.
//!
//! Survivors of a minor collection become old at once, so that no old object leads to a new one after it.
//! The exceptions are the few blocks that pinned objects keep new for one more collection; the fields that
//! lead there are recorded (`minor`).
//!
//! # Invariants
//! * The heap's list begins with the `old_count` old blocks; no block after them is
//!   [old](crate::space::block::Block::is_old).
//! * Between collections everything in an old block is marked. A slot's list of blocks with room has old
//!   blocks only; copies fill their holes.
//! * While `is_known`, one of three things holds of an old object that leads to a new one. The object was
//!   written to since the last collection, and `write_tracking` lists its page. Or it lies in a block that a
//!   thread allocates from, which counts as written. Or the field is recorded (`holders`).
//! * Everything an ambiguous pointer may lead to is pinned before the first object moves (`evacuation`).
//!   Of old untyped objects a minor collection scans the written parts only: in other parts, a word that
//!   looks like a new object's address is an accident.
//!
//! # Source
//! Cooper, Nettles and Subramanian 1992, section 2, after Appel 1989; their section 3 for the heap that
//! drifts (moves through the address space). Departures:
//! * Regions are sets of blocks, not stretches of memory: blocks belong to slots here (`size_class`), and
//!   pinned objects stay where they are. Old and new blocks are taken from the two ends of the pool, so that
//!   each region is nearly always contiguous.
//! * Dense blocks stay where they are (as in mark-region collectors: Blackburn and McKinley 2008), unless the
//!   settings choose one of the source's ways. To copy such a block costs time and room; where memory is
//!   short, it also costs another write to the device. The density of new blocks is predicted from earlier
//!   survivors.
//! * Objects may be pinned, as in the plan `mostly_copying`. A pinned object's block is promoted in place,
//!   and its holes are filled by the next copies.
//! * A major collection copies old and new objects together if there is room, so that new ones are not
//!   copied twice. If not, it follows a minor collection, as in the source. An object for whose copy there
//!   is no room stays where it is. A heap of twice the live data is therefore enough; more room for copies
//!   adds speed only.
//! * A program that declares few types pins most of its objects, and copying cannot bring the rest together.
//!   If a major collection leaves more bytes between objects than in them, threads allocate there as under
//!   mark-sweep. Objects allocated there are old at once, so that the next collection is a major one again.
//!   Nothing is moved while there are too many untyped objects to scan (`evacuation`).
//! * Copying back (returning the old region to the start of its memory) is a second copying pass. The source
//!   moved the region as a whole, by one distance; here pointers to pinned objects must not change.

pub(crate) mod minor;
pub(crate) mod promote;
mod regions;
mod vacated;

use crate::heap::Heap;
use crate::plan::collection;
use crate::plan::contract::{KeptBlocks, Less, Plan, Progress};
use crate::plan::evacuation::Copies;
use crate::sizing::policy::{Found, Major};
use crate::space::block::{Block, Scan};
use crate::space::size_class::BLOCK;
use crate::trace::frames;
use crate::world::budget::Budget;
use crate::world::thread::Thread;
use crate::write_tracking::{Dirty, Look, Which};
use vellum_pages::Buffer;
use vellum_sys::Addr;

/// One part in this many of the new objects is expected to survive and be copied.
const COPIES_PART: usize = 4;

/// Where a heap collects eagerly: minor collections between two major ones.
const MINORS_EAGER: u32 = 7;

/// A collection is a minor one only if at least one part in this many of the allocation budget was used:
/// after less, it would free too little for its cost.
const WORTH_PART: usize = 4;

/// Live bytes below which every collection is a major one where the kernel tracks writes: a dozen of its
/// calls take as long as tracing this much.
const ACCOUNT_MIN: usize = 128 << 10;

/// Growth of the bytes between old objects that brings a major collection: one part in this many of the old
/// objects' bytes, and at least [`WASTE_MIN`].
const WASTE_PART: usize = 2;
const WASTE_MIN: usize = 1 << 20;

/// The plan, with its state between collections.
pub(crate) struct Appel {
    pub copies: Copies,
    /// Blocks and large objects of the old region: the first of the heap's list.
    pub old_count: usize,
    /// Bytes of objects in the old region, the dead among them that no major collection has found yet.
    pub old_live: usize,
    /// Its size for the sizing policy: with the holes between objects, if blocks stay.
    pub old_size: usize,
    /// The most old blocks of untyped objects, and of objects with fields.
    pub old_untyped: usize,
    pub old_typed: usize,
    /// When the old region has reached this many bytes, the next collection is a major one.
    pub old_max: usize,
    /// The heap's state after the last major collection.
    pub major: Option<Major>,
    /// Writes to old objects have been tracked since the last collection.
    pub is_known: bool,
    /// Writes should be tracked, and could not be.
    pub is_refused: bool,
    /// Minor collections since the last major one.
    pub minors: u32,
    /// A minor collection is on.
    pub is_minor: bool,
    /// Fields of old objects that lead to objects which the last minor collection left new.
    pub holders: Buffer<Addr>,
    /// Blocks that the minor collection that is on leaves new.
    pub retained: Buffer<&'static Block>,
    /// Bytes of old blocks that are no objects, now and after the last major collection.
    pub waste: usize,
    pub waste_least: usize,
    /// Bytes of objects that the last major collection found alive.
    pub major_live: usize,
    /// Bytes alive in blocks that the next major collection empties, if not all are emptied.
    pub sparse: usize,
    /// The last major collection has left more bytes between objects than in them, because of pinned objects:
    /// threads allocate there.
    pub is_pinned: bool,
    /// It has left as many, but some lie in blocks whose sparseness was unknown. The next one empties these.
    pub is_loose: bool,
    /// Free blocks that a heap which drifts has left behind, the oldest first.
    pub left: Buffer<Addr>,
    /// How many of these were reported as unneeded (`block_source`).
    pub left_told: usize,
}

impl Appel {
    /// A block becomes one of the old region.
    pub(crate) fn adopt(&mut self, block: &Block) {
        block.become_old();
        self.old_untyped += usize::from(Which::OldUntyped.is(block));
        self.old_typed += usize::from(Which::OldTyped.is(block));
    }

    /// Entries that the lists for pinned objects have room for.
    pub(crate) fn room_for_pinned(&self) -> usize {
        self.holders.capacity() + self.retained.capacity()
    }

    /// Bytes the lists take, but those for copies.
    pub(crate) fn taken(&self) -> usize {
        (self.room_for_pinned() + self.left.capacity()) * size_of::<Addr>()
    }

    pub(crate) const fn new() -> Appel {
        Appel {
            copies: Copies::new(),
            old_count: 0,
            old_live: 0,
            old_size: 0,
            old_untyped: 0,
            old_typed: 0,
            old_max: 0,
            major: None,
            is_known: false,
            is_refused: false,
            minors: 0,
            is_minor: false,
            holders: Buffer::new(),
            retained: Buffer::new(),
            waste: 0,
            waste_least: 0,
            major_live: 0,
            sparse: 0,
            is_pinned: false,
            is_loose: false,
            left: Buffer::new(),
            left_told: 0,
        }
    }
}

impl Plan for Appel {
    fn counts_blocks(&self) -> bool {
        true
    }

    fn copies(&self) -> Option<&Copies> {
        Some(&self.copies)
    }

    fn copies_mut(&mut self) -> Option<&mut Copies> {
        Some(&mut self.copies)
    }

    fn prepare(&mut self, heap: &mut Heap) -> bool {
        self.prepare_vacated(heap)
    }

    fn choose(&mut self, heap: &mut Heap) {
        self.prepare_account(heap);
        let what = heap.what_to_copy();
        // Everything is moved as long as that brings live objects together.
        let is_worth_it = what.all && !self.is_pinned;
        let beyond = self.blocks_to_return_to();
        let used = self.copies.plan(heap, what, is_worth_it, &self.left[..beyond]);
        self.forget_left(used);
    }

    /// Objects that are made in such blocks are old at once. So threads fill holes only if there is no room
    /// for a new block, or far too much room in old ones.
    fn may_fill_holes(&self, heap: &Heap) -> bool {
        self.is_pinned || heap.space.bytes + BLOCK + heap.sizing.reserve > heap.limit()
    }

    /// Writes to new objects are not tracked; the pages of free blocks were released.
    fn block_came(&mut self, heap: &mut Heap, block: &Block) {
        if let Some(dirty) = &mut heap.tracking.account {
            dirty.cover(block.span());
        }
    }

    fn block_goes_out(&mut self, heap: &mut Heap, block: &Block) {
        if let Some(dirty) = &mut heap.tracking.account {
            dirty.block_goes_out(block, false);
        }
    }

    fn collect_less(&mut self, heap: &mut Heap, thread: &'static Thread) -> Less {
        if !self.is_minor_next(heap) || !thread.collecting(|| minor::collect(self, heap, thread)) {
            Less::Nothing
        } else if self.is_major_due() {
            Less::NotEnough
        } else {
            Less::Enough
        }
    }

    fn collect_eagerly(
        &mut self,
        heap: &mut Heap,
        thread: &'static Thread,
        _budget: Budget,
    ) -> Option<Progress> {
        let is_minor = self.may_be_minor(heap) && self.minors < MINORS_EAGER;
        (is_minor && thread.collecting(|| minor::collect(self, heap, thread))).then_some(Progress::Done)
    }

    fn is_whole_in_vain(&self, heap: &Heap) -> bool {
        let slices = heap.config.slice_ns != 0 && (heap.has_procedures || !Dirty::is_available());
        slices || self.is_refused || !Dirty::is_lasting()
    }

    /// With `CopyBack`, a second pass copies the live objects back to where they were (`vacated`).
    fn collect(&mut self, heap: &mut Heap, thread: &'static Thread) -> bool {
        let done = collection::collect(self, heap, thread);
        if done && heap.copies_back() && self.copies.copied > 0 {
            collection::collect(self, heap, thread);
        }
        done
    }

    fn settle(&mut self, heap: &mut Heap, free_before: usize) {
        self.place_vacated(heap, free_before);
        self.settle_regions(heap);
    }

    fn size(&mut self, heap: &mut Heap, found: Found, is_major: bool) {
        self.set_regions(heap, found, is_major);
    }

    fn room_now(&mut self, heap: &mut Heap) -> usize {
        self.free_region(heap)
    }

    /// The next major collection sizes the regions.
    fn least_changed(&mut self, _heap: &mut Heap) {}

    /// Everything old moves, and leaves that much free memory behind.
    fn kept(&self, heap: &Heap) -> KeptBlocks {
        let room = heap.sizing.room;
        KeptBlocks { needed: (room + room / COPIES_PART) / BLOCK, swings: heap.space.bytes * 2 }
    }

    fn gave_back(&mut self, heap: &mut Heap) {
        self.report_left(heap);
    }

    /// Unwritten words of old untyped objects that look like addresses of new objects are accidents.
    fn leaves_out(&self, block: &Block) -> bool {
        self.is_minor && block.is_old() && block.scan.get() == Scan::Words
    }

    fn check(&self, heap: &Heap) -> Result<(), &'static str> {
        heap.check_old_region(self.old_count)?;
        if self.left.iter().any(|&unit| heap.space.table.block_of(unit).is_some()) {
            return Err("a block that was left behind has no descriptor");
        }
        if self.blocks_to_return_to() > 0 {
            return Err("what was left behind is within the span");
        }
        if self.left_told > self.left.len() {
            return Err("only blocks left behind have been reported");
        }
        Ok(())
    }
}

impl Appel {
    /// Returns whether a minor collection can be made.
    fn may_be_minor(&self, heap: &Heap) -> bool {
        self.is_known && heap.tracking.account.as_ref().is_some_and(Dirty::can_go_on)
    }

    /// Returns whether the collection that is needed now is to begin with a minor one.
    fn is_minor_next(&self, heap: &Heap) -> bool {
        self.may_be_minor(heap)
            && !self.is_pinned
            && heap.sizing.used >= heap.sizing.room / WORTH_PART
            && (!self.is_major_due() || !self.has_room_for_major(heap))
    }

    /// Returns whether the next collection should be a major one.
    fn is_major_due(&self) -> bool {
        let Appel { old_live, old_size, old_max, waste, waste_least, .. } = *self;
        // Blocks that were promoted for a few pinned objects hold few live bytes, but they take their whole
        // size.
        old_size >= old_max || waste > waste_least + (old_live / WASTE_PART).max(WASTE_MIN)
    }

    /// Returns whether all that may be alive can be copied at one go.
    fn has_room_for_major(&self, heap: &Heap) -> bool {
        heap.stays() || heap.headroom_blocks().saturating_mul(BLOCK) >= self.old_live + heap.sizing.used
    }

    /// Makes ready to track writes to old objects from the end of a major collection on. The world still
    /// runs: allocation may not fail once it stands still.
    fn prepare_account(&mut self, heap: &mut Heap) {
        self.is_known = false;
        if !Dirty::is_lasting() {
            return;
        }
        if self.is_account_dear(heap) {
            self.end_account(heap);
            return;
        }
        let going_on = heap.tracking.account.take().filter(Dirty::can_go_on);
        let is_new = going_on.is_none();
        heap.tracking.account = going_on.or_else(Dirty::begin_lasting);
        if let Some(dirty) = heap.tracking.account.as_mut().filter(|_| is_new) {
            dirty.cover_all(&heap.space.table);
        }
    }

    /// The survivors of a major collection become the old region. The world stands still.
    fn settle_regions(&mut self, heap: &mut Heap) {
        (self.old_untyped, self.old_typed) = (0, 0);
        for &block in heap.space.blocks.iter() {
            self.adopt(block);
        }
        self.old_count = heap.space.blocks.len();
        self.minors = 0;
        self.holders.truncate(0);
        self.begin_account(heap);
    }

    /// Returns whether tracing the live objects costs less than the kernel's account of writes to them.
    fn is_account_dear(&self, heap: &Heap) -> bool {
        let is_tried = heap.config.restless || heap.config.eager != 0;
        self.major_live < ACCOUNT_MIN && Dirty::asks_the_kernel() && !is_tried
    }

    /// Tracks writes to old objects from here on, if that can be had.
    fn begin_account(&mut self, heap: &mut Heap) {
        let Some(dirty) = &mut heap.tracking.account else {
            self.is_refused = Dirty::is_lasting() && !self.is_account_dear(heap);
            return;
        };
        dirty.arm_all(&heap.space.table, Which::Old);
        self.is_known = dirty.can_go_on();
        self.is_refused = !self.is_known;
        dirty.rest(&heap.shared.world, heap.space.slots.len());
    }

    /// Returns whether anything can be reached by a field, so that it may move: where all is untyped, nothing
    /// can.
    fn has_fields(&self, heap: &Heap) -> bool {
        let is_typed = |block: &&Block| !matches!(block.scan.get(), Scan::Words | Scan::Nothing);
        self.old_typed > 0
            || heap.deaths.ephemerons.len() > 0
            || heap.roots.precise().next().is_some()
            || frames::any(&heap.shared.world)
            || heap.space.blocks[self.old_count..].iter().any(is_typed)
    }

    /// Fields of old objects written so far lead to old objects only: they count as unwritten from here on.
    /// The world stands still, at the end of a minor collection. The collection's own writes are among them,
    /// so that it met no faults there.
    fn take_for_unwritten(&mut self, heap: &mut Heap) {
        let Some(dirty) = &mut heap.tracking.account else { return };
        let mut from = Addr::NULL;
        while dirty.look(&heap.space.table, &mut from, true, Which::Old) != Look::End {}
        self.is_known = dirty.can_go_on();
        dirty.rest(&heap.shared.world, heap.space.slots.len());
    }
}
