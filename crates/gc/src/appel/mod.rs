//! The plan `appel`: generations, collected by copying.
//!
//! ```text
//!  old    │ blocks of what has outlived a collection: marked throughout, so that a minor collection need not touch them
//!  unused │ the cold end of the pool of free blocks: the old region grows into it
//!  new    │ blocks that threads have allocated from since the last collection, and the large objects since then
//!  free   │ the warm end of the pool: threads take their blocks from it
//!
//!  minor   new ─▶ old: what is alive is copied behind what is there, slot by slot; what is pinned stays, and its block becomes old in time
//!  major   old and new ─▶ fresh blocks, which are the old region then; `vacated` says what becomes of what they left
//!          a block that is dense stays, in either kind, unless all is to be copied (`AfterMajor`)
//! ```
//!
//! # What keeps minor collections small
//! All of the old region counts as alive in them, and nothing of it is looked at but what was written to since the last collection, which
//! `dirty` knows: by the program's word (`tells_writes`) or by the kernel's account. Where it has neither, every collection is a major one, and
//! the statistics say so. As survivors of a minor collection become old at once, nothing old leads to anything new after it, but for the few blocks that
//! pinned objects keep new for a turn, and what leads there is remembered (`minor`).
//!
//! # Invariants
//! * The heap's list has the old blocks first, `old_count` of them; none behind them [is](crate::block::Block::is_old).
//! * Between collections everything in an old block is marked. A slot's list of blocks with room has old blocks only; copies fill their holes.
//! * While `is_known`, an old object that leads to a new one was written to since the last collection, and the account says where; or it lies
//!   in a block that a thread allocates from, which counts as written; or the field is remembered (`holders`).
//! * Everything an ambiguous pointer may lead to is pinned before the first object moves, as everywhere (`evacuate`). Of old untyped objects a
//!   minor collection looks at what was written to only; what the rest of their words seem to say of new objects is an accident.
//!
//! # Source
//! Cooper, Nettles and Subramanian 1992, section 2, after Appel 1989; their section 3 for the heap that drifts. Departures:
//! * Regions are sets of blocks, and not stretches of memory: blocks belong to slots here (`class`), and what is pinned stays where it is. Old and new
//!   blocks are taken from the two ends of the pool, so that each lie together nearly always.
//! * What is dense stays where it is (as the mark-region collectors have it: Blackburn and McKinley 2008), unless the source's ways are asked for: a block of which nearly
//!   all lives costs its copy, the room for that, and, where memory is short, another time out to the device. Which of the new blocks will be
//!   dense is a guess by what became of the last ones; of the old ones it is known from the last major collection.
//! * Objects may be pinned: this is mostly copying with generations. A pinned object's block is promoted as it stands, and its holes are filled by the next copies.
//! * A major collection copies old and new at one go where there is room for that, and not the new objects twice; where there is not, it follows a
//!   minor one, as in the source. Where there is no room for a copy the object stays where it is: so a heap of twice the live data does, and the
//!   reserve is a matter of speed.
//! * A program that tells few types pins most of what it has, and copying cannot bring the rest together. If a major collection leaves more between objects than there
//!   are, threads allocate there as under mark-sweep; what they make is old at once, so that the next collection is a major one again; and nothing is moved while untyped objects are too many to be searched (`evacuate`).
//! * Copying back is a second pass of the same kind, as blocks cannot be moved without finding what leads into them; the source moved the
//!   old region by a distance.

pub(crate) mod minor;
pub(crate) mod promote;
mod regions;
mod vacated;

use crate::block::{Block, Scan};
use crate::class::BLOCK;
use crate::config::Plan;
use crate::dirty::{Dirty, Look, Which};
use crate::frames;
use crate::heap::{Address, Heap};
use crate::sizing::Major;
use vellum_pages::Buffer;

/// What the plan knows between collections.
pub(crate) struct Appel {
    /// Blocks and large objects of the old region: the first of the heap's list.
    pub old_count: usize,
    /// Bytes of objects in the old region, the dead among them that no major collection has found yet.
    pub old_live: usize,
    /// Bytes that it is taken for: with the holes between objects, where blocks stay, as new objects have no use for them.
    pub old_size: usize,
    /// Old blocks of untyped objects, at most; and of those that have fields.
    old_untyped: usize,
    old_typed: usize,
    /// When the old region has come to so many bytes, the next collection is a major one.
    old_max: usize,
    /// How the last major collection left the heap.
    major: Option<Major>,
    /// What is written to old objects is known since the last collection.
    is_known: bool,
    /// It should be, and could not be had.
    is_refused: bool,
    /// Minor collections since the last major one.
    pub minors: u32,
    /// A minor collection is on.
    pub is_minor: bool,
    /// Fields of old objects that lead to what the last minor collection left new.
    pub holders: Buffer<Address>,
    /// Blocks that the minor collection that is on leaves new.
    pub retained: Buffer<Address>,
    /// Bytes of old blocks that are no objects, now and after the last major collection.
    pub waste: usize,
    pub waste_least: usize,
    /// Bytes of objects that the last major collection found alive.
    pub major_live: usize,
    /// Bytes alive in blocks that the next major collection empties, if not all are emptied.
    pub sparse: usize,
    /// So much is pinned that the last major collection has left more between objects than there are: threads allocate there.
    pub is_pinned: bool,
    /// It has left as much, and some of that may be of blocks that the next one empties: it did not know them for sparse.
    pub is_loose: bool,
    /// Free blocks that a heap which drifts has left behind, the oldest first.
    pub left: Buffer<Address>,
    /// So many of these have been told of (`ground`).
    pub left_told: usize,
}

impl Appel {
    /// A block becomes one of the old region.
    fn adopt(&mut self, block: &Block) {
        block.become_old();
        self.old_untyped += usize::from(Which::OldUntyped.is(block));
        self.old_typed += usize::from(Which::OldTyped.is(block));
    }

    /// What the lists for pinned objects have room for.
    pub(crate) fn room_for_pinned(&self) -> usize {
        self.holders.capacity() + self.retained.capacity()
    }

    /// Bytes the lists take.
    pub(crate) fn taken(&self) -> usize {
        (self.room_for_pinned() + self.left.capacity()) * size_of::<Address>()
    }

    pub(crate) const fn new() -> Appel {
        Appel {
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

/// A collection is a minor one if at least one part of so many of the room was used: less would not give back what it takes.
const WORTH_PART: usize = 4;

/// Bytes alive below which every collection is a major one where the kernel is to tell what is written: a dozen of its calls take as long as tracing so much.
const ACCOUNT_MIN: usize = 128 << 10;

/// What is between old objects may grow by one part of so many of them, and by so many bytes, before a major collection comes for its sake.
const WASTE_PART: usize = 2;
const WASTE_MIN: usize = 1 << 20;

impl Heap {
    /// Whether a minor collection can be made.
    pub(crate) fn may_be_minor(&self) -> bool {
        self.config.plan == Plan::Appel
            && self.appel.is_known
            && self.dirty.as_ref().is_some_and(Dirty::can_go_on)
    }

    /// Whether the collection that is needed now is to begin with a minor one.
    pub(crate) fn is_minor_next(&self) -> bool {
        self.may_be_minor()
            && !self.appel.is_pinned
            && self.used >= self.room / WORTH_PART
            && (!self.is_major_due() || !self.has_room_for_major())
    }

    /// Whether the next collection should be a major one.
    pub(crate) fn is_major_due(&self) -> bool {
        let Appel { old_live, old_size, old_max, waste, waste_least, .. } = self.appel;
        // Blocks that were promoted for the sake of a few pinned objects do not count as what they hold, and still are there.
        old_size >= old_max || waste > waste_least + (old_live / WASTE_PART).max(WASTE_MIN)
    }

    /// Whether all that may be alive can be copied at one go.
    fn has_room_for_major(&self) -> bool {
        self.stays() || self.headroom_blocks().saturating_mul(BLOCK) >= self.appel.old_live + self.used
    }

    /// Whether collections are major ones only as nobody tells what is written.
    pub(crate) fn wants_minors_in_vain(&self) -> bool {
        self.config.plan == Plan::Appel && (self.appel.is_refused || !Dirty::is_lasting())
    }

    /// Sees to it that what is written to old objects can be known from the end of a major collection on. The world still runs, and
    /// nothing may fail for want of memory once it stands still.
    pub(crate) fn prepare_account(&mut self) {
        self.appel.is_known = false;
        if self.config.plan != Plan::Appel || !Dirty::is_lasting() {
            return;
        }
        if self.is_account_dear() {
            self.end_account();
            return;
        }
        let going_on = self.dirty.take().filter(Dirty::can_go_on);
        let is_new = going_on.is_none();
        self.dirty = going_on.or_else(Dirty::begin_lasting);
        if let Some(dirty) = self.dirty.as_mut().filter(|_| is_new) {
            dirty.cover_all(&self.space);
        }
    }

    /// What has outlived a major collection is the old region. The world stands still.
    pub(crate) fn settle_regions(&mut self) {
        if self.config.plan != Plan::Appel {
            return;
        }
        (self.appel.old_untyped, self.appel.old_typed) = (0, 0);
        for &address in self.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(address as *const Block) };
            self.appel.adopt(block);
        }
        self.appel.old_count = self.blocks.len();
        self.appel.minors = 0;
        self.appel.holders.truncate(0);
        self.begin_account();
    }

    /// Whether so little is alive that to look at it all costs less than the kernel's account of what is written there.
    fn is_account_dear(&self) -> bool {
        let is_tried = self.config.restless || self.config.eager != 0;
        self.appel.major_live < ACCOUNT_MIN && Dirty::asks_the_kernel() && !is_tried
    }

    /// From here on it is known what is written to old objects, if that can be had.
    fn begin_account(&mut self) {
        let Some(dirty) = &mut self.dirty else {
            self.appel.is_refused = Dirty::is_lasting() && !self.is_account_dear();
            return;
        };
        let mut from = 0;
        while let Some(next) = dirty.arm(&self.space, from, Which::Old) {
            from = next;
        }
        self.appel.is_known = dirty.can_go_on();
        self.appel.is_refused = !self.appel.is_known;
        dirty.rest(self.slots.len());
    }

    /// Whether anything can be reached by a field, so that it may move: where all is untyped, nothing can.
    pub(crate) fn has_fields(&self) -> bool {
        let is_typed = |&address: &Address| {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let scan = unsafe { (*(address as *const Block)).scan.get() };
            !matches!(scan, Scan::Words | Scan::Nothing)
        };
        self.appel.old_typed > 0
            || self.ephemerons.len() > 0
            || self.roots.precise().next().is_some()
            || frames::any()
            || self.blocks[self.appel.old_count..].iter().any(is_typed)
    }

    /// What was written to old objects so far leads to old ones only. The world stands still, at the end of a minor collection: pages that the collection has
    /// written itself are among them, so that it met no fault there.
    pub(crate) fn take_for_unwritten(&mut self) {
        let Some(dirty) = &mut self.dirty else { return };
        let mut from = 0;
        while dirty.look(&self.space, &mut from, true, Which::Old) != Look::End {}
        self.appel.is_known = dirty.can_go_on();
        dirty.rest(self.slots.len());
    }

    /// Checks what this plan adds to the heap's invariants.
    ///
    /// # Errors
    /// Names the one that is broken.
    pub(crate) fn check_regions(&self) -> Result<(), &'static str> {
        for (at, &address) in self.blocks.iter().enumerate() {
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
        if self.appel.left.iter().any(|&unit| self.space.block_of(unit).is_some()) {
            return Err("a block that was left behind has no descriptor");
        }
        if self.blocks_to_return_to() > 0 {
            return Err("what was left behind is within the span");
        }
        if self.appel.left_told > self.appel.left.len() {
            return Err("only what was left behind has been told of");
        }
        Ok(())
    }
}
