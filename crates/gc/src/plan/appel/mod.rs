//! The plan `appel`: generations, collected by copying.
//!
//! ```text
//!  old    │ blocks of objects that survived a collection: all marked, so minor collections leave them alone
//!  unused │ the cold end of the pool of free blocks: the old region grows into it
//!  new    │ blocks that threads have allocated from since the last collection, and large objects since then
//!  free   │ the warm end of the pool: threads take their blocks from it
//!
//!  minor   new ─▶ old: live objects are copied behind the old ones, slot by slot;
//!          pinned ones stay, and their blocks become old in time
//!  major   old and new ─▶ fresh blocks, which are the old region then; for the vacated ones see `vacated`
//!          a block that is dense stays, in either kind, unless all is to be copied (`AfterMajor`)
//! ```
//!
//! # What keeps minor collections small
//! All of the old region counts as alive in them. They scan only those of its objects that were written to
//! since the last collection. `write_tracking` knows these: from the program (`tells_writes`) or from the
//! kernel's account. Where it has neither, every collection is a major one, and the statistics say so.
//!
//! Survivors of a minor collection become old at once, so that nothing old leads to anything new after it.
//! The exceptions are the few blocks that pinned objects keep new for one more collection; the fields that
//! lead there are remembered (`minor`).
//!
//! # Invariants
//! * The heap's list has the old blocks first, `old_count` of them; none behind them
//!   [is](crate::space::block::Block::is_old).
//! * Between collections everything in an old block is marked. A slot's list of blocks with room has old
//!   blocks only; copies fill their holes.
//! * While `is_known`, one of three things holds of an old object that leads to a new one. It was written to
//!   since the last collection, and the account says where. Or it lies in a block that a thread allocates
//!   from, which counts as written. Or the field is remembered (`holders`).
//! * Everything an ambiguous pointer may lead to is pinned before the first object moves (`evacuation`). Of
//!   old untyped objects a minor collection scans the written parts only: elsewhere a word that looks like
//!   the address of a new object is an accident.
//!
//! # Source
//! Cooper, Nettles and Subramanian 1992, section 2, after Appel 1989; their section 3 for the heap that
//! drifts. Departures:
//! * Regions are sets of blocks, not stretches of memory: blocks belong to slots here (`size_class`), and
//!   pinned objects stay where they are. Old and new blocks are taken from the two ends of the pool, so that
//!   each region is nearly always contiguous.
//! * Dense blocks stay where they are (as in mark-region collectors: Blackburn and McKinley 2008), unless the
//!   source's ways are asked for. To copy such a block costs time and room; where memory is short, it also
//!   costs another write to the device. Which new blocks will be dense is predicted from the survivors
//!   of earlier ones; of old blocks the last major collection has found it.
//! * Objects may be pinned: this is mostly copying with generations. A pinned object's block is promoted in
//!   place, and its holes are filled by the next copies.
//! * A major collection copies old and new objects at one go where there is room for that, so that new ones
//!   are not copied twice. Where there is not, it follows a minor one, as in the source. An object for whose
//!   copy there is no room stays where it is. So a heap of twice the live data is enough, and a larger
//!   reserve buys speed only.
//! * A program that declares few types pins most of its objects, and copying cannot bring the rest together.
//!   If a major collection leaves more bytes between objects than in them, threads allocate there as under
//!   mark-sweep. Those objects are old at once, so that the next collection is a major one again. Nothing is
//!   moved while there are too many untyped objects to scan (`evacuation`).
//! * Copying back is a second pass of the same kind, as blocks cannot be moved without finding the pointers
//!   into them; the source moved the old region by a distance.

pub(crate) mod minor;
pub(crate) mod promote;
mod regions;
pub(crate) mod state;
mod vacated;

use crate::heap::Heap;
use crate::mutator::budget::Budget;
use crate::mutator::thread::Thread;
use crate::plan::appel::state::Appel;
use crate::plan::collection;
use crate::plan::contract::{Less, Plan};
use crate::plan::mark_sweep::cycle::Progress;
use crate::plan::sweep::KeptBlocks;
use crate::sizing::policy::Found;
use crate::space::block::{Address, Block, Scan};
use crate::space::size_class::BLOCK;
use crate::trace::frames;
use crate::write_tracking::{Dirty, Look, Which};

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

/// See the head of this file.
pub(crate) struct Generations;

impl Plan for Generations {
    fn prepare(&self, heap: &mut Heap) -> bool {
        heap.prepare_vacated()
    }

    fn choose(&self, heap: &mut Heap) {
        heap.prepare_account();
        let what = heap.what_to_copy();
        heap.plan_copies(what);
    }

    /// Objects that are made in such blocks are old at once. So threads fill holes only if there is no room
    /// for a new block, or far too much room in old ones.
    fn may_fill_holes(&self, heap: &Heap) -> bool {
        heap.appel.is_pinned || heap.space.bytes + BLOCK + heap.sizing.reserve > heap.limit()
    }

    /// Writes to new objects need not be known; the pages of free blocks were released.
    fn block_came(&self, heap: &mut Heap, block: &Block) {
        if let Some(dirty) = &mut heap.tracking.account {
            dirty.cover(block.base.get(), block.base.get() + block.extent.get());
        }
    }

    fn block_goes_out(&self, heap: &mut Heap, block: &Block) {
        heap.block_goes_out(block);
    }

    fn collect_less(&self, heap: &mut Heap, thread: &'static Thread) -> Less {
        if !heap.is_minor_next() || !thread.standing_here(|| minor::collect(heap, thread)) {
            Less::Nothing
        } else if heap.is_major_due() {
            Less::NotEnough
        } else {
            Less::Enough
        }
    }

    fn collect_eagerly(&self, heap: &mut Heap, thread: &'static Thread, _budget: Budget) -> Option<Progress> {
        let is_minor = heap.may_be_minor() && heap.appel.minors < MINORS_EAGER;
        (is_minor && thread.standing_here(|| minor::collect(heap, thread))).then_some(Progress::Done)
    }

    fn is_whole_in_vain(&self, heap: &Heap) -> bool {
        heap.wants_slices_in_vain() || heap.wants_minors_in_vain()
    }

    /// With `CopyBack`, a second pass copies the live objects back to where they were (`vacated`).
    fn collect(&self, heap: &mut Heap, thread: &'static Thread) -> bool {
        let done = collection::collect(self, heap, thread);
        if done && heap.copies_back() && heap.copied_last() > 0 {
            collection::collect(self, heap, thread);
        }
        done
    }

    fn settle(&self, heap: &mut Heap, free_before: usize) {
        heap.place_vacated(free_before);
        heap.settle_regions();
    }

    fn size(&self, heap: &mut Heap, found: Found, is_major: bool) {
        heap.set_regions(found, is_major);
    }

    fn room_now(&self, heap: &mut Heap) -> usize {
        heap.free_region()
    }

    /// Regions are sized anew by the next major collection.
    fn least_changed(&self, _heap: &mut Heap) {}

    /// Everything old moves, and leaves that much free memory behind.
    fn kept(&self, heap: &Heap) -> KeptBlocks {
        let room = heap.sizing.room;
        KeptBlocks { needed: (room + room / COPIES_PART) / BLOCK, swings: heap.space.bytes * 2 }
    }
}

impl Heap {
    /// Whether a minor collection can be made.
    pub(crate) fn may_be_minor(&self) -> bool {
        self.appel.is_known && self.tracking.account.as_ref().is_some_and(Dirty::can_go_on)
    }

    /// Whether the collection that is needed now is to begin with a minor one.
    pub(crate) fn is_minor_next(&self) -> bool {
        self.may_be_minor()
            && !self.appel.is_pinned
            && self.sizing.used >= self.sizing.room / WORTH_PART
            && (!self.is_major_due() || !self.has_room_for_major())
    }

    /// Whether the next collection should be a major one.
    pub(crate) fn is_major_due(&self) -> bool {
        let Appel { old_live, old_size, old_max, waste, waste_least, .. } = self.appel;
        // Blocks that were promoted for a few pinned objects hold few live bytes, but they take their whole
        // size.
        old_size >= old_max || waste > waste_least + (old_live / WASTE_PART).max(WASTE_MIN)
    }

    /// Whether all that may be alive can be copied at one go.
    fn has_room_for_major(&self) -> bool {
        self.stays() || self.headroom_blocks().saturating_mul(BLOCK) >= self.appel.old_live + self.sizing.used
    }

    /// Whether every collection is a major one only because writes cannot be tracked.
    pub(crate) fn wants_minors_in_vain(&self) -> bool {
        self.appel.is_refused || !Dirty::is_lasting()
    }

    /// Makes ready to track writes to old objects from the end of a major collection on. The world still
    /// runs: nothing may fail for want of memory once it stands still.
    pub(crate) fn prepare_account(&mut self) {
        self.appel.is_known = false;
        if !Dirty::is_lasting() {
            return;
        }
        if self.is_account_dear() {
            self.end_account();
            return;
        }
        let going_on = self.tracking.account.take().filter(Dirty::can_go_on);
        let is_new = going_on.is_none();
        self.tracking.account = going_on.or_else(Dirty::begin_lasting);
        if let Some(dirty) = self.tracking.account.as_mut().filter(|_| is_new) {
            dirty.cover_all(&self.space.table);
        }
    }

    /// The survivors of a major collection become the old region. The world stands still.
    pub(crate) fn settle_regions(&mut self) {
        (self.appel.old_untyped, self.appel.old_typed) = (0, 0);
        for &address in self.space.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(address as *const Block) };
            self.appel.adopt(block);
        }
        self.appel.old_count = self.space.blocks.len();
        self.appel.minors = 0;
        self.appel.holders.truncate(0);
        self.begin_account();
    }

    /// Whether so little is alive that tracing it all costs less than the kernel's account of writes to it.
    fn is_account_dear(&self) -> bool {
        let is_tried = self.config.restless || self.config.eager != 0;
        self.appel.major_live < ACCOUNT_MIN && Dirty::asks_the_kernel() && !is_tried
    }

    /// Tracks writes to old objects from here on, if that can be had.
    fn begin_account(&mut self) {
        let Some(dirty) = &mut self.tracking.account else {
            self.appel.is_refused = Dirty::is_lasting() && !self.is_account_dear();
            return;
        };
        let mut from = 0;
        while let Some(next) = dirty.arm(&self.space.table, from, Which::Old) {
            from = next;
        }
        self.appel.is_known = dirty.can_go_on();
        self.appel.is_refused = !self.appel.is_known;
        dirty.rest(self.space.slots.len());
    }

    /// Whether anything can be reached by a field, so that it may move: where all is untyped, nothing can.
    pub(crate) fn has_fields(&self) -> bool {
        let is_typed = |&address: &Address| {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let scan = unsafe { (*(address as *const Block)).scan.get() };
            !matches!(scan, Scan::Words | Scan::Nothing)
        };
        self.appel.old_typed > 0
            || self.deaths.ephemerons.len() > 0
            || self.roots.precise().next().is_some()
            || frames::any()
            || self.space.blocks[self.appel.old_count..].iter().any(is_typed)
    }

    /// Fields of old objects written so far lead to old objects only: they count as unwritten from here on.
    /// The world stands still, at the end of a minor collection. The collection's own writes are among them,
    /// so that it met no faults there.
    pub(crate) fn take_for_unwritten(&mut self) {
        let Some(dirty) = &mut self.tracking.account else { return };
        let mut from = 0;
        while dirty.look(&self.space.table, &mut from, true, Which::Old) != Look::End {}
        self.appel.is_known = dirty.can_go_on();
        dirty.rest(self.space.slots.len());
    }

    /// Checks what this plan adds to the heap's invariants.
    ///
    /// # Errors
    /// Names the one that is broken.
    pub(crate) fn check_regions(&self) -> Result<(), &'static str> {
        for (at, &address) in self.space.blocks.iter().enumerate() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(address as *const Block) };
            if block.extent.get() == 0 {
                continue;
            }
            if block.is_old() != (at < self.appel.old_count) {
                return Err("the old region is the first part of the list of blocks");
            }
            let all = (0..block.pairs.get()).all(|pair| block.marks(pair).get() == !0);
            if block.is_old() && !all {
                return Err("everything in the old region is marked");
            }
        }
        if self.appel.left.iter().any(|&unit| self.space.table.block_of(unit).is_some()) {
            return Err("a block that was left behind has no descriptor");
        }
        if self.blocks_to_return_to() > 0 {
            return Err("what was left behind is within the span");
        }
        if self.appel.left_told > self.appel.left.len() {
            return Err("only blocks left behind have been reported");
        }
        Ok(())
    }
}
