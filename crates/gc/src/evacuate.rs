//! Plans that move: which blocks are emptied, what in them must stay, and where the rest goes. Blocks are chosen here for the mostly-copying plan and for
//! major collections under `appel`, which empty all they can, or all that is not dense; for minor ones in `appel::promote`.
//!
//! ```text
//! plan      blocks that should be sparse, as many as there is room to copy from   (before the world stops)
//! pin       what untyped objects and finalizers lead to in them, and what tables know by its address
//! root      registers, stacks, static data: mark and pin; then precise roots
//! graph     `mark`: copy what fields lead to, mark the rest where it is
//! free      blocks left without anything pinned go whole; the holes around the pinned are used again (`survey`)
//! ```
//!
//! # Invariants
//! * Everything an ambiguous pointer may lead to is pinned before the first object moves.
//! * A copy goes to a block of the same slot: size, sort and alignment are the same there.
//! * No room for a copy is no failure: the object stays where it is.
//! * Nothing here takes a lock or asks the page layer for anything while the world stands still.
//!
//! # Source
//! Smith and Morrisett 1998, section 2.2.1: pin, root, graph, free and sweep in one traversal, typed and untyped objects in one heap. As
//! there, *all* untyped objects are searched for pointers first, the dead among them too: which are alive is known only when it is
//! too late. Departures:
//! * Objects are pinned, not pages, and the holes around them are used again (the source wasted them).
//! * Only blocks that should be sparse are emptied, by what the last collections found ([`Young`](crate::young::Young)); dense ones, and those whose
//!   survivors lie together, are marked in place, which costs less. So the reserve is what is copied and not half of the heap (the source ran in 4.5 times its live data).
//! * Blocks with a stopped thread's run stay, as do objects that tables know by their addresses: those with finalizers, keys of ephemerons, and
//!   objects that links lie in.

use crate::block::{Block, Index, PAIRS_MAX, Scan};
use crate::class::{BLOCK, GRANULE, SLOTS_MAX, WORD};
use crate::config::Plan;
use crate::descriptors::Descriptors;
use crate::disclaim::Disclaimers;
use crate::finalize::Finalizer;
use crate::ground;
use crate::heap::{Address, Heap, Slot};
use crate::links::{self, Link};
use crate::mark::find;
use crate::movement::Movement;
use crate::space::Space;
use crate::table::Table;
use crate::young::ALL;
use core::ptr::null;
use vellum_pages::{Buffer, PAGE, Plain, round_up};

/// Steps of density: a block is of step `n` if `n` to `n + 1` of this many parts of it should be alive.
pub(crate) const STEPS: usize = 16;
/// … and a step for those that should be alive whole.
pub(crate) const STEPS_ALL: usize = STEPS + 1;
/// Blocks of this step and above are never emptied: copying half a block costs more than its holes do.
pub(crate) const STEP_DENSE: usize = 8;
/// The same where copies fill holes and new objects do not (`appel`): what is not copied wastes its holes.
pub(crate) const STEP_FULL: usize = 14;
/// Room for copies is what should be copied and, for surprises, one part of so many more.
pub(crate) const SURPRISE: usize = 4;
/// Untyped objects are searched for what must be pinned if they take at most one part of so many of the blocks that are emptied: looking at
/// a word costs about as much as what a word of emptied blocks saves later.
const SEARCH_PART: usize = 4;

const _: () = assert!(PAIRS_MAX * 64 <= u16::MAX as usize);

/// Where the next copies of a slot go.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub next: usize,
    pub end: usize,
    pub block: *const Block,
}

// SAFETY: a record of numbers and of a pointer that owns nothing.
unsafe impl Plain for Run {}

const NO_RUN: Run = Run { next: 0, end: 0, block: null() };

/// Room for copies.
pub(crate) struct Copies {
    /// Blocks below this step are emptied; 0: none.
    pub step: usize,
    /// Copies go to holes of old blocks first: the collection is a minor one.
    pub fills: bool,
    /// Nothing is emptied, as too many untyped objects would have to be searched.
    pub too_dear: bool,
    /// Free blocks, known to the address table as nobody's.
    ready: Buffer<Address>,
    /// Descriptors of the blocks that copies went to.
    pub targets: Buffer<Address>,
    /// Where copies of each slot go: as many as there were slots when room for copies was made last.
    pub runs: Buffer<Run>,
    /// Fields in the heap that lead to what stayed where it was: of a minor collection.
    pub holders: Buffer<Address>,
    /// Some found no room there.
    pub lost_holders: bool,
    /// Bytes copied since the heap began, and when this collection did.
    pub bytes: u64,
    pub before: u64,
}

impl Copies {
    pub(crate) const fn new() -> Copies {
        Copies {
            step: 0,
            fills: false,
            too_dear: false,
            ready: Buffer::new(),
            targets: Buffer::new(),
            runs: Buffer::new(),
            holders: Buffer::new(),
            lost_holders: false,
            bytes: 0,
            before: 0,
        }
    }

    /// Bytes the lists take.
    pub(crate) fn taken(&self) -> usize {
        (self.ready.capacity() + self.targets.capacity() + self.holders.capacity()) * size_of::<Address>()
    }

    /// Whether the collection under way moves anything.
    pub(crate) fn any(&self) -> bool {
        self.step > 0
    }
}

impl Heap {
    /// Objects of a block that should be alive now, by how many were and by how many of its slot's young ones live on.
    fn expected(&self, block: &Block) -> usize {
        let old = usize::from(block.survivors.get());
        if block.is_old() {
            return old;
        }
        let young = (block.count.get() as usize).saturating_sub(old);
        old + young * self.slots[usize::from(block.slot.get())].survival as usize / ALL as usize
    }

    fn step_of(&self, block: &Block) -> usize {
        self.expected(block) * STEPS / (block.count.get() as usize).max(1)
    }

    /// Chooses what to empty, and gets the room for it. The world still runs: locks may be taken.
    pub(crate) fn plan_copies(&mut self) {
        self.copies.step = 0;
        self.copies.before = self.copies.bytes;
        if !self.config.plan.moves() {
            return;
        }
        let (mut blocks, mut bytes) = ([0usize; STEPS_ALL], [0usize; STEPS_ALL]);
        let mut slots = [[0u64; SLOTS_MAX / 64]; STEPS_ALL];
        let restless = self.moves_all();
        let dense = if restless { STEPS_ALL } else { self.step_dense() };
        let mut untyped = 0;
        for &address in self.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(address as *const Block) };
            if block.scan.get() == Scan::Words {
                untyped += block.extent.get();
            }
            let slot = usize::from(block.slot.get());
            if slot == 0 || block.extent.get() == 0 {
                continue;
            }
            let step = self.step_of(block);
            if step < dense && self.may_be_sparse(block) {
                blocks[step] += 1;
                bytes[step] += self.expected(block) * block.size.get();
                slots[step][slot / 64] |= 1 << (slot % 64);
            }
        }
        let headroom = self.headroom_blocks();
        let (mut step, mut wanted) = (0, 0);
        let (mut emptied, mut copied, mut of) = (0, 0, [0u64; SLOTS_MAX / 64]);
        for next in 0..dense {
            emptied += blocks[next];
            copied += bytes[next];
            of.iter_mut().zip(slots[next]).for_each(|(all, some)| *all |= some);
            // Each slot's last block is seldom full.
            let partial: u32 = of.iter().map(|word| word.count_ones()).sum();
            let surprise = if self.config.plan == Plan::Appel { 0 } else { copied / SURPRISE };
            let needed = (copied + surprise).div_ceil(BLOCK) + partial as usize;
            // What must be kept free for copies of it is not to be more than what it frees.
            if needed <= headroom && (needed <= emptied || restless) {
                (step, wanted) = (next + 1, needed);
            }
        }
        // Where there are generations, all is moved as long as that brings together what lives.
        let is_worth_it = restless && !self.appel.is_pinned;
        self.copies.too_dear = untyped * SEARCH_PART > emptied * BLOCK && !is_worth_it;
        if step != 0 && !self.copies.too_dear && self.make_ready(wanted) {
            self.copies.step = step;
        }
    }

    /// Whether blocks are emptied be it worth it or not.
    pub(crate) fn moves_all(&self) -> bool {
        self.config.restless || self.config.plan == Plan::Appel && !self.stays()
    }

    /// Blocks of this step and above are not emptied, unless all are.
    pub(crate) fn step_dense(&self) -> usize {
        if self.stays() { STEP_FULL } else { STEP_DENSE }
    }

    /// Whether what is expected of a block says enough to empty it: where survivors lie together, some blocks of a slot are alive whole and others
    /// dead, and only of old ones it is known which.
    fn may_be_sparse(&self, block: &Block) -> bool {
        self.moves_all() || self.stays() || self.slots[usize::from(block.slot.get())].scattered
    }

    /// Gets room for copies, `wanted` blocks or what there is; false if there is not even memory for lists. The world still runs.
    pub(crate) fn make_ready(&mut self, wanted: usize) -> bool {
        let lists = self.copies.ready.reserve(wanted).is_ok()
            && self.copies.targets.reserve(wanted).is_ok()
            && self.blocks.reserve(wanted).is_ok()
            && self.pool.reserve(self.blocks.len() + wanted).is_ok()
            && self.descriptors.reserve(wanted).is_ok();
        if !lists {
            return false;
        }
        let more = self.slots.len().saturating_sub(self.copies.runs.capacity()) * size_of::<Run>();
        if more > 0 && !self.may_take(round_up(more, PAGE)) {
            return false;
        }
        while self.copies.runs.len() < self.slots.len() {
            if self.copies.runs.push(NO_RUN).is_err() {
                return false;
            }
        }
        // New objects go round in the warm end of the pool: the old region grows from the other one, and lies apart from them.
        let cold = if self.config.plan == Plan::Appel { wanted.min(self.pool.len()) } else { 0 };
        let units: usize = (0..cold).take_while(|&index| self.is_ready(self.pool[index])).count();
        self.pool.copy_within(units.., 0);
        let left = self.pool.len() - units;
        self.pool.truncate(left);
        let left = self.blocks_to_return_to().min(wanted - units);
        let units: usize = (0..left).take_while(|&index| self.is_ready(self.appel.left[index])).count();
        self.forget_left(units);
        while self.copies.ready.len() < wanted {
            let Some(unit) = self.take_unit() else { break };
            if !self.is_ready(unit) {
                ground::give_back(unit);
                break;
            }
        }
        // The first is taken first.
        self.copies.ready.reverse();
        self.expect_copies();
        true
    }

    /// Has a free block be room for copies; false, and it is not, if memory for the address table is out.
    fn is_ready(&mut self, unit: Address) -> bool {
        ground::occupy(unit);
        self.space.enter(null(), unit, BLOCK) && self.copies.ready.push(unit).is_ok()
    }

    /// Tells the account of what is written, if there is one, where copies may go: neighbours at a time.
    fn expect_copies(&mut self) {
        let Some(dirty) = &mut self.dirty else { return };
        let mut at = 0;
        while let Some(&unit) = self.copies.ready.get(at) {
            let (mut low, mut high) = (unit, unit + BLOCK);
            at += 1;
            while let Some(&beside) =
                self.copies.ready.get(at).filter(|&&unit| unit + BLOCK == low || unit == high)
            {
                (low, high) = (low.min(beside), high.max(beside + BLOCK));
                at += 1;
            }
            dirty.cover(low, high);
        }
    }

    /// Bytes that the last collection, or the one that is on, has copied.
    pub(crate) fn copied_last(&self) -> usize {
        (self.copies.bytes - self.copies.before) as usize
    }

    /// Whether a block is to be emptied by the collection that begins.
    pub(crate) fn is_sparse(&self, block: &Block) -> bool {
        let slot = usize::from(block.slot.get());
        slot != 0
            && block.extent.get() != 0
            && self.may_be_sparse(block)
            && self.step_of(block) < self.copies.step
    }

    /// Pins what must stay in blocks that are emptied, but for what roots lead to. The world stands still.
    pub(crate) fn pin(&self) {
        if !self.copies.any() || self.copies.fills && !self.has_fields() {
            return;
        }
        // Of old untyped objects a minor collection knows what was written to, and looks through that first (`appel`).
        let first = if self.copies.fills { self.appel.old_count } else { 0 };
        for &address in &self.blocks[first..] {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(address as *const Block) };
            if block.scan.get() == Scan::Words && block.extent.get() != 0 {
                let (base, size) = (block.base.get(), block.size.get());
                block.each_run(|from, to| {
                    self.pin_targets(base + from as usize * size, base + to as usize * size);
                });
            }
        }
        pin_tables(&self.space, &self.finalizers, &self.disclaimers, &self.links);
        self.ephemerons.each(|key, _| pin_target(&self.space, key, false));
    }

    /// Pins what the words of untyped objects from `start` up to `end` may lead to.
    fn pin_targets(&self, start: usize, end: usize) {
        let (low, high) = self.space.bounds();
        let span = high.saturating_sub(low);
        // SAFETY: an allocated object's words may be read.
        let read = |at: usize| unsafe { (at as *const usize).read_volatile() };
        let mut at = start;
        while at < end {
            // Most are no addresses in the heap: a granule is passed over at a time.
            let words: [usize; GRANULE / WORD] = core::array::from_fn(|index| read(at + index * WORD));
            if words.iter().fold(false, |any, word| any | (word.wrapping_sub(low) < span)) {
                words.iter().for_each(|&word| pin_target(&self.space, word, self.config.only_starts));
            }
            at += GRANULE;
        }
    }

    /// Puts the blocks that copies went to among the others, and the room that was not needed back. Before the survey.
    pub(crate) fn finish_copies(&mut self) {
        for index in 0..self.copies.targets.len() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let target = unsafe { &*(self.copies.targets[index] as *const Block) };
            // What was copied is not young.
            target.survivors.set(target.allocated_count() as u16);
            let pushed = self.blocks.push(self.copies.targets[index]);
            debug_assert!(pushed.is_ok(), "room was made before the world stopped");
        }
        self.copies.targets.truncate(0);
        for index in 0..self.copies.ready.len() {
            let pushed = self.pool.push(self.copies.ready[index]);
            debug_assert!(pushed.is_ok(), "room was made before the world stopped");
        }
        self.copies.ready.truncate(0);
        if self.copies.any() {
            if core::mem::take(&mut self.copies.fills) {
                self.keep_holes();
            }
            self.copies.runs.fill(NO_RUN);
        }
        self.copies.step = 0;
    }
}

/// Pins the object that `word` leads to, if it would leave its block.
fn pin_target(space: &Space, word: usize, only_starts: bool) {
    if let Some((block, index)) = find(space, word, only_starts)
        && block.evacuating.get()
    {
        block.pin(index);
    }
}

/// Pins what the tables know by its address, and what links cannot follow.
fn pin_tables(space: &Space, finalizers: &Table<Finalizer>, disclaimers: &Disclaimers, links: &Table<Link>) {
    finalizers.each(|object, _| pin_target(space, object, false));
    disclaimers.each(|object| pin_target(space, object, false));
    links::pin(links, space, |address| pin_target(space, address, false));
}

/// Copies objects to blocks of their slots.
pub(crate) struct Evacuation<'h> {
    pub space: &'h Space,
    pub slots: &'h mut [Slot],
    pub copies: &'h mut Copies,
    pub descriptors: &'h mut Descriptors,
}

impl Movement for Evacuation<'_> {
    const MOVES: bool = true;

    #[inline(always)]
    fn copy(&mut self, block: &Block, index: Index) -> Option<usize> {
        let slot = usize::from(block.slot.get());
        if self.copies.runs[slot].next == self.copies.runs[slot].end && !self.new_run(slot) {
            return None;
        }
        let run = &mut self.copies.runs[slot];
        let (from, to, bytes) = (block.address(index), run.next, block.size.get());
        run.next += bytes;
        self.copies.bytes += bytes as u64;
        // SAFETY: a run has a block.
        let target = unsafe { &*run.block };
        let place = target.index_at(to - target.base.get());
        target.settle_copy(place);
        if target.is_old() {
            target.note_copy(place);
        }
        // SAFETY: both have so many bytes; one is an object, the other free; nobody else reads or writes either.
        unsafe { copy_granules(from as *const u128, to as *mut u128, bytes) };
        // SAFETY: the object has moved: its old place has nothing but its new address.
        unsafe { (from as *mut usize).write_volatile(to) };
        Some(to)
    }

    fn note_pinned(&mut self, at: usize) {
        self.remember(at);
    }

    fn target(&self, index: usize) -> Option<usize> {
        self.copies.targets.get(index).copied()
    }
}

/// Copies `bytes` bytes, whole granules: objects are mostly smaller than a call of `memcpy` is worth.
///
/// # Safety
/// So many bytes may be read at `from` and written at `to`; they do not overlap.
#[inline(always)]
unsafe fn copy_granules(from: *const u128, to: *mut u128, bytes: usize) {
    for granule in 0..bytes / size_of::<u128>() {
        // SAFETY: by this function's condition; objects lie at multiples of a granule.
        unsafe { to.add(granule).write(from.add(granule).read()) };
    }
}

const _: () = assert!(crate::class::GRANULE == size_of::<u128>());

impl Evacuation<'_> {
    /// A block for the copies of a slot; false if there is none left.
    #[cold]
    fn new_run(&mut self, slot: usize) -> bool {
        (self.copies.fills && self.next_hole(slot)) || self.new_target(slot)
    }

    fn new_target(&mut self, slot: usize) -> bool {
        let Slot { size, scan, layout, .. } = self.slots[slot];
        let Some(&unit) = self.copies.ready.last() else { return false };
        let count = crate::block::count_of(size);
        let Some(target) = self.descriptors.take(crate::block::pairs_of(count)) else { return false };
        self.copies.ready.truncate(self.copies.ready.len() - 1);
        target.begin(unit, size, count, slot as u16, scan, layout);
        target.begin_trace();
        self.space.assign(target, unit);
        let pushed = self.copies.targets.push(core::ptr::from_ref(target).expose_provenance());
        debug_assert!(pushed.is_ok(), "room was made before the world stopped");
        let end = unit + count as usize * size;
        self.copies.runs[slot] = Run { next: unit, end, block: target };
        true
    }
}
