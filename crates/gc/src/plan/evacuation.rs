//! Evacuation, for plans (ways to collect) that move objects: which blocks are emptied, which of their
//! objects must stay, and where the others are copied.
//!
//! This file chooses the blocks for the mostly-copying plan and for major collections of `appel`. For minor
//! collections see `appel::promote`.
//!
//! ```text
//! plan      choose sparse blocks, as many as can be copied into free memory       (before the world stops)
//! pin       objects in them that untyped objects or finalizers lead to, or whose addresses are in tables
//! root      registers, stacks, static data: mark and pin; then precise roots
//! graph     `mark`: copy what fields lead to, mark the rest where it is
//! free      blocks without pinned objects are freed whole; holes around pinned ones are reused (`sweep`)
//! ```
//!
//! # Invariants
//! * Everything an ambiguous pointer may lead to is pinned before the first object moves.
//! * A copy goes to a block of the same slot (objects of one size, sort and alignment).
//! * An object for whose copy there is no room stays where it is.
//! * The code here takes no lock and does not use the page layer while the world stands still.
//!
//! # Source
//! Smith and Morrisett 1998, section 2.2.1: pin, root, graph, free and sweep in one traversal, typed and
//! untyped objects in one heap. As in the source, *all* untyped objects are searched for pointers first,
//! even dead ones: the trace finds out only later which are alive. Departures:
//! * Objects are pinned, not pages, and the holes around them are used again (the source wasted them).
//! * Only blocks that are expected to be sparse, by the survivors of the last collections, are emptied
//!   ([`Young`](crate::space::survivor_statistics::Young)). Dense ones, and those whose survivors lie
//!   together, are marked in place, which costs less. The memory to reserve is therefore the bytes to copy
//!   and not half of the heap (the source ran in 4.5 times its live data).
//! * Blocks from which a stopped thread allocates stay. So do objects whose addresses are in tables: objects
//!   with finalizers, keys of ephemerons, and objects that contain links.

use crate::death::disclaim::Disclaimers;
use crate::death::finalizers::Finalizer;
use crate::death::links::{self, Link};
use crate::death::table::Table;
use crate::heap::Heap;
use crate::space::address_table::AddressTable;
use crate::space::block::{Block, Index, PAIRS_MAX, Scan};
use crate::space::descriptors::Descriptors;
use crate::space::size_class::{BLOCK, GRANULE, SLOTS_MAX, WORD};
use crate::space::slot::Slot;
use crate::space::survivor_statistics::{ALL, STEP_DENSE, STEPS, STEPS_ALL};
use crate::trace::mark::find;
use crate::trace::movement::Movement;
use core::ptr::null;
use vellum_pages::{Buffer, PAGE, Plain, round_up};
use vellum_sys::{Addr, Span};

/// Room for copies is the bytes that should be copied and, for surprises, one part in this many more.
pub(crate) const SURPRISE: usize = 4;
/// Untyped objects are searched for what must be pinned if they take at most one part in this many of the
/// blocks that are emptied. To read a word of them costs about what a word of emptied blocks saves.
const SEARCH_PART: usize = 4;

const _: () = assert!(PAIRS_MAX * 64 <= u16::MAX as usize);

/// The place of a slot's next copies.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub next: Addr,
    pub end: Addr,
    pub block: Option<&'static Block>,
}

// SAFETY: numbers, and a reference to a descriptor: a copy of the bits is the same value.
unsafe impl Plain for Run {}

pub(crate) const NO_RUN: Run = Run { next: Addr::NULL, end: Addr::NULL, block: None };

/// A plan's choice of the objects to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    /// Blocks are emptied whether it is worth it or not.
    pub all: bool,
    /// Blocks of this step of density and above are not emptied, unless all are.
    pub dense: usize,
    /// The survivors expected in a block decide for every slot, not only where survivors lie scattered.
    pub whole_slots: bool,
    /// Copies are to lie apart from new objects, at the cold end of the pool. The bytes to copy are exact
    /// then.
    pub beside_new: bool,
}

pub(crate) struct Copies {
    /// The choice of the current collection, or else of the last one.
    pub what: Copying,
    /// Blocks below this step are emptied; 0: none.
    pub step: usize,
    /// Copies go to holes of old blocks first: the collection is a minor one.
    pub fills: bool,
    /// Nothing is emptied, as too many untyped objects would have to be searched.
    pub too_dear: bool,
    /// Free blocks, which have entries in the address table, and no descriptor yet.
    pub ready: Buffer<Addr>,
    /// The blocks that copies went to.
    pub targets: Buffer<&'static Block>,
    /// Where copies of each slot go: as many as there were slots when room for copies was made last.
    pub runs: Buffer<Run>,
    /// Fields in the heap that lead to objects which a minor collection left where they were.
    pub holders: Buffer<Addr>,
    /// There was no room in `holders` for some fields.
    pub lost_holders: bool,
    /// Bytes that the current collection, or else the last one, has copied.
    pub copied: usize,
}

impl Copies {
    pub(super) const fn new() -> Copies {
        Copies {
            what: Copying { all: false, dense: STEP_DENSE, whole_slots: false, beside_new: false },
            step: 0,
            fills: false,
            too_dear: false,
            ready: Buffer::new(),
            targets: Buffer::new(),
            runs: Buffer::new(),
            holders: Buffer::new(),
            lost_holders: false,
            copied: 0,
        }
    }

    /// Bytes the lists take.
    pub(crate) fn taken(&self) -> usize {
        (self.ready.capacity() + self.targets.capacity() + self.holders.capacity()) * size_of::<Addr>()
    }

    /// Returns whether the collection under way moves anything.
    pub(crate) fn any(&self) -> bool {
        self.step > 0
    }
}

/// Copies objects to blocks of their slots.
pub(crate) struct Evacuation<'h> {
    pub space: &'h AddressTable,
    pub slots: &'h mut [Slot],
    pub copies: &'h mut Copies,
    pub descriptors: &'h mut Descriptors,
}

impl Heap {
    /// Objects of a block that should be alive now. The block's old objects count as alive; its young ones
    /// count by the share of its slot's young objects that survive.
    fn expected(&self, block: &Block) -> usize {
        let old = usize::from(block.survivors.get());
        if block.is_old() {
            return old;
        }
        let young = (block.count.get() as usize).saturating_sub(old);
        old + young * self.space.slots[usize::from(block.slot.get())].survival as usize / ALL as usize
    }

    fn step_of(&self, block: &Block) -> usize {
        self.expected(block) * STEPS / (block.count.get() as usize).max(1)
    }
}

impl Copies {
    /// Chooses the blocks to empty, and gets room for the copies. The world still runs: locks may be taken.
    pub(super) fn plan(&mut self, heap: &mut Heap, what: Copying, is_worth_it: bool, left: &[Addr]) -> usize {
        self.what = what;
        self.step = 0;
        self.copied = 0;
        let (mut blocks, mut bytes) = ([0usize; STEPS_ALL], [0usize; STEPS_ALL]);
        let mut slots = [[0u64; SLOTS_MAX / 64]; STEPS_ALL];
        let restless = what.all;
        let dense = if restless { STEPS_ALL } else { what.dense };
        let mut untyped = 0;
        for &block in heap.space.blocks.iter() {
            if block.scan.get() == Scan::Words {
                untyped += block.extent.get();
            }
            let slot = usize::from(block.slot.get());
            if slot == 0 || block.extent.get() == 0 {
                continue;
            }
            let step = heap.step_of(block);
            if step < dense && self.may_be_sparse(heap, block) {
                blocks[step] += 1;
                bytes[step] += heap.expected(block) * block.size.get();
                slots[step][slot / 64] |= 1 << (slot % 64);
            }
        }
        let headroom = heap.headroom_blocks();
        let (mut step, mut wanted) = (0, 0);
        let (mut emptied, mut copied, mut of) = (0, 0, [0u64; SLOTS_MAX / 64]);
        for next in 0..dense {
            emptied += blocks[next];
            copied += bytes[next];
            of.iter_mut().zip(slots[next]).for_each(|(all, some)| *all |= some);
            // Each slot's last block is seldom full.
            let partial: u32 = of.iter().map(|word| word.count_ones()).sum();
            let surprise = if what.beside_new { 0 } else { copied / SURPRISE };
            let needed = (copied + surprise).div_ceil(BLOCK) + partial as usize;
            // No more must be kept free for the copies than emptying the blocks frees.
            if needed <= headroom && (needed <= emptied || restless) {
                (step, wanted) = (next + 1, needed);
            }
        }
        self.too_dear = untyped * SEARCH_PART > emptied * BLOCK && !is_worth_it;
        if step == 0 || self.too_dear {
            return 0;
        }
        let used = self.make_ready(heap, wanted, left);
        self.step = if used.is_some() { step } else { 0 };
        used.unwrap_or(0)
    }

    /// Returns whether the survivors expected in a block justify emptying it. Where survivors lie together,
    /// some blocks of a slot are wholly alive and others dead. Only for old blocks the last collection has
    /// found which.
    fn may_be_sparse(&self, heap: &Heap, block: &Block) -> bool {
        let what = self.what;
        what.all || what.whole_slots || heap.space.slots[usize::from(block.slot.get())].scattered
    }

    /// Gets room for copies, `wanted` blocks or as many as there are; false if there is not even memory for
    /// the lists. The world still runs.
    pub(super) fn make_ready(&mut self, heap: &mut Heap, wanted: usize, left: &[Addr]) -> Option<usize> {
        let lists = self.ready.reserve(wanted).is_ok()
            && self.targets.reserve(wanted).is_ok()
            && heap.space.blocks.reserve(wanted).is_ok()
            && heap.space.pool.reserve(heap.space.blocks.len() + wanted).is_ok()
            && heap.space.descriptors.reserve(wanted).is_ok();
        heap.plan_bytes.lists = self.taken();
        if !lists {
            return None;
        }
        let more = heap.space.slots.len().saturating_sub(self.runs.capacity()) * size_of::<Run>();
        if more > 0 && !heap.may_take(round_up(more, PAGE)) {
            return None;
        }
        while self.runs.len() < heap.space.slots.len() {
            self.runs.push(NO_RUN).ok()?;
        }
        heap.plan_bytes.runs = self.runs.capacity() * size_of::<Run>();
        // New objects use the warm end of the pool again and again. The old region grows from the other end,
        // and lies apart from them.
        let cold = if self.what.beside_new { wanted.min(heap.space.pool.len()) } else { 0 };
        let mut units = 0;
        while units < cold && self.is_ready(heap, heap.space.pool[units]) {
            units += 1;
        }
        heap.space.pool.copy_within(units.., 0);
        let rest = heap.space.pool.len() - units;
        heap.space.pool.truncate(rest);
        let left = left.iter().take(wanted - units);
        let used = left.take_while(|&&unit| self.is_ready(heap, unit)).count();
        while self.ready.len() < wanted {
            let Some(unit) = heap.take_unit() else { break };
            if !self.is_ready(heap, unit) {
                heap.space.source.give_back(unit);
                break;
            }
        }
        // The first is taken first.
        self.ready.reverse();
        self.expect_copies(heap);
        Some(used)
    }

    /// Makes a free block room for copies; false, and it is not, if memory for the address table is out.
    fn is_ready(&mut self, heap: &mut Heap, unit: Addr) -> bool {
        heap.space.source.occupy(unit);
        heap.space.table.enter(null(), Span::new(unit, BLOCK)) && self.ready.push(unit).is_ok()
    }

    /// Reports to the account of writes, if there is one, where copies may go: neighbours at a time.
    fn expect_copies(&self, heap: &mut Heap) {
        let Some(dirty) = &mut heap.tracking.account else { return };
        let mut at = 0;
        while let Some(&unit) = self.ready.get(at) {
            let (mut low, mut high) = (unit, unit + BLOCK);
            at += 1;
            while let Some(&beside) = self.ready.get(at).filter(|&&unit| unit + BLOCK == low || unit == high)
            {
                (low, high) = (low.min(beside), high.max(beside + BLOCK));
                at += 1;
            }
            dirty.cover(Span::between(low, high));
        }
    }

    /// Returns whether a block is to be emptied by the collection that begins.
    pub(super) fn is_sparse(&self, heap: &Heap, block: &Block) -> bool {
        let slot = usize::from(block.slot.get());
        slot != 0
            && block.extent.get() != 0
            && self.may_be_sparse(heap, block)
            && heap.step_of(block) < self.step
    }

    /// Pins what must stay in blocks that are emptied, except for what roots lead to. The untyped objects of
    /// the blocks before the `first`th are not searched. The world stands still.
    pub(super) fn pin(&self, heap: &Heap, first: usize) {
        if !self.any() {
            return;
        }
        for &block in &heap.space.blocks[first..] {
            if block.scan.get() == Scan::Words && block.extent.get() != 0 {
                let (base, size) = (block.base.get(), block.size.get());
                block.each_run(|from, to| {
                    pin_targets(heap, Span::new(base + from as usize * size, (to - from) as usize * size));
                });
            }
        }
        pin_tables(&heap.space.table, &heap.deaths.finalizers, &heap.deaths.disclaimers, &heap.deaths.links);
        heap.deaths.ephemerons.each(|key, _| pin_target(&heap.space.table, key, false));
    }

    /// Puts the targets of copies among the other blocks, and the unused room back. Before the sweep.
    pub(super) fn finish(&mut self, heap: &mut Heap) {
        for &target in self.targets.iter() {
            // Copied objects are not young.
            target.survivors.set(target.allocated_count() as u16);
            let pushed = heap.space.blocks.push(target);
            debug_assert!(pushed.is_ok(), "room was made before the world stopped");
        }
        self.targets.truncate(0);
        for index in 0..self.ready.len() {
            let pushed = heap.space.pool.push(self.ready[index]);
            debug_assert!(pushed.is_ok(), "room was made before the world stopped");
        }
        self.ready.truncate(0);
        if self.any() {
            if core::mem::take(&mut self.fills) {
                self.keep_holes(heap);
            }
            self.runs.fill(NO_RUN);
        }
        self.step = 0;
        heap.stats.copied_bytes += self.copied as u64;
    }
}

/// Pins the objects that the words of untyped ones from `start` up to `end` may lead to.
fn pin_targets(heap: &Heap, span: Span) {
    let bounds = heap.space.table.bounds;
    // SAFETY: an allocated object's words may be read.
    let read = |at: Addr| unsafe { at.ptr::<Addr>().read_volatile() };
    let mut at = span.start;
    while at < span.end() {
        // Most are no addresses in the heap: a whole granule is tested at a time.
        let words: [Addr; GRANULE / WORD] = core::array::from_fn(|index| read(at + index * WORD));
        if words.iter().fold(false, |any, &word| any | bounds.contains(word)) {
            words.iter().for_each(|&word| pin_target(&heap.space.table, word, heap.config.only_starts));
        }
        at += GRANULE;
    }
}

/// Pins the object that `word` leads to, if it would leave its block.
fn pin_target(space: &AddressTable, word: Addr, only_starts: bool) {
    if let Some((block, index)) = find(space, word, only_starts)
        && block.evacuating.get()
    {
        block.pin(index);
    }
}

/// Pins the objects of tables by address, and objects with links inside.
fn pin_tables(
    space: &AddressTable,
    finalizers: &Table<Finalizer>,
    disclaimers: &Disclaimers,
    links: &Table<Link>,
) {
    finalizers.each(|object, _| pin_target(space, object, false));
    disclaimers.each(|object| pin_target(space, object, false));
    links::pin(links, space, |address| pin_target(space, address, false));
}

impl Movement for Evacuation<'_> {
    const MOVES: bool = true;

    #[inline(always)]
    fn copy(&mut self, block: &Block, index: Index) -> Option<Addr> {
        let slot = usize::from(block.slot.get());
        if self.copies.runs[slot].next == self.copies.runs[slot].end && !self.new_run(slot) {
            return None;
        }
        let run = &mut self.copies.runs[slot];
        let (from, to, bytes) = (block.address(index), run.next, block.size.get());
        run.next += bytes;
        self.copies.copied += bytes;
        let target = run.block?;
        let place = target.index_at(to - target.base.get());
        target.settle_copy(place);
        if target.is_old() {
            target.note_copy(place);
        }
        // SAFETY: both places have `bytes` bytes, a multiple of a granule. `from` is an object and `to` is
        // free in another block; the heap's lock is held and the world stopped, so that nobody else accesses
        // either.
        unsafe { copy_granules(from.ptr(), to.ptr(), bytes) };
        // SAFETY: the object has moved: its old place holds nothing but its new address from now on.
        unsafe { from.ptr::<Addr>().write_volatile(to) };
        Some(to)
    }

    fn note_pinned(&mut self, at: Addr) {
        self.remember(at);
    }

    fn target(&self, index: usize) -> Option<&'static Block> {
        self.copies.targets.get(index).copied()
    }
}

/// Copies `bytes` bytes, whole granules: objects are mostly smaller than a call of `memcpy` is worth.
///
/// # Safety
/// `bytes` bytes may be read at `from` and written at `to`, both aligned to a granule; they do not overlap.
#[inline(always)]
unsafe fn copy_granules(from: *const u128, to: *mut u128, bytes: usize) {
    for granule in 0..bytes / size_of::<u128>() {
        // SAFETY: the granule lies within the `bytes` bytes of both, which are aligned and do not overlap.
        unsafe { to.add(granule).write(from.add(granule).read()) };
    }
}

const _: () = assert!(crate::space::size_class::GRANULE == size_of::<u128>());

impl Evacuation<'_> {
    /// Takes a block for the copies of a slot; false if none is left.
    #[cold]
    fn new_run(&mut self, slot: usize) -> bool {
        (self.copies.fills && self.next_hole(slot)) || self.new_target(slot)
    }

    fn new_target(&mut self, slot: usize) -> bool {
        let Slot { size, scan, layout, .. } = self.slots[slot];
        let Some(&unit) = self.copies.ready.last() else { return false };
        let count = crate::space::block::count_of(size);
        let Some(target) = self.descriptors.take(crate::space::block::pairs_of(count)) else { return false };
        self.copies.ready.truncate(self.copies.ready.len() - 1);
        target.begin(unit, size, count, slot as u16, scan, layout);
        target.begin_trace();
        self.space.assign(target, unit);
        let pushed = self.copies.targets.push(target);
        debug_assert!(pushed.is_ok(), "room was made before the world stopped");
        let end = unit + count as usize * size;
        self.copies.runs[slot] = Run { next: unit, end, block: Some(target) };
        true
    }
}
