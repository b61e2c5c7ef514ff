//! Plans that move: which blocks are emptied, what in them must stay, and where the rest goes.
//!
//! The blocks are chosen here for the mostly-copying plan and for major collections under `appel`, which
//! empty every block they can, or every block that is not dense. For minor ones see `appel::promote`.
//!
//! ```text
//! plan      blocks that should be sparse, as many as there is room to copy from   (before the world stops)
//! pin       what untyped objects and finalizers lead to in them, and objects in tables by address
//! root      registers, stacks, static data: mark and pin; then precise roots
//! graph     `mark`: copy what fields lead to, mark the rest where it is
//! free      blocks without pinned objects are freed whole; holes around pinned ones are reused (`sweep`)
//! ```
//!
//! # Invariants
//! * Everything an ambiguous pointer may lead to is pinned before the first object moves.
//! * A copy goes to a block of the same slot: size, sort and alignment are the same there.
//! * No room for a copy is no failure: the object stays where it is.
//! * Nothing here takes a lock or asks the page layer for anything while the world stands still.
//!
//! # Source
//! Smith and Morrisett 1998, section 2.2.1: pin, root, graph, free and sweep in one traversal, typed and
//! untyped objects in one heap. As there, *all* untyped objects are searched for pointers first, the dead
//! among them too: which are alive is known only when it is too late. Departures:
//! * Objects are pinned, not pages, and the holes around them are used again (the source wasted them).
//! * Only blocks that should be sparse, by the survivors of the last collections, are emptied
//!   ([`Young`](crate::space::survivor_statistics::Young)). Dense ones, and those whose survivors lie
//!   together, are marked in place, which costs less. So the reserve is the bytes to copy and not half of the
//!   heap (the source ran in 4.5 times its live data).
//! * Blocks with a stopped thread's run stay. So do objects that tables know by their addresses: those with
//!   finalizers, keys of ephemerons, and objects that links lie in.

use crate::death::disclaim::Disclaimers;
use crate::death::finalizers::Finalizer;
use crate::death::links::{self, Link};
use crate::death::table::Table;
use crate::heap::Heap;
use crate::plan::copies::{Copies, Copying, NO_RUN, Run};
use crate::space::address_table::AddressTable;
use crate::space::block::{Address, Block, Index, PAIRS_MAX, Scan};
use crate::space::block_source;
use crate::space::descriptors::Descriptors;
use crate::space::size_class::{BLOCK, GRANULE, SLOTS_MAX, WORD};
use crate::space::slot::Slot;
use crate::space::survivor_statistics::{ALL, STEPS, STEPS_ALL};
use crate::trace::mark::find;
use crate::trace::movement::Movement;
use core::ptr::null;
use vellum_pages::{PAGE, round_up};

/// Room for copies is the bytes that should be copied and, for surprises, one part in this many more.
pub(crate) const SURPRISE: usize = 4;
/// Untyped objects are searched for what must be pinned if they take at most one part in this many of the
/// blocks that are emptied. Reading one of their words costs about as much as one word of emptied blocks
/// saves later.
const SEARCH_PART: usize = 4;

const _: () = assert!(PAIRS_MAX * 64 <= u16::MAX as usize);

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

    /// Chooses the blocks to empty, and gets room for the copies. The world still runs: locks may be taken.
    pub(crate) fn plan_copies(&mut self, what: Copying) {
        self.copies.what = what;
        self.copies.step = 0;
        self.copies.before = self.copies.bytes;
        let (mut blocks, mut bytes) = ([0usize; STEPS_ALL], [0usize; STEPS_ALL]);
        let mut slots = [[0u64; SLOTS_MAX / 64]; STEPS_ALL];
        let restless = what.all;
        let dense = if restless { STEPS_ALL } else { what.dense };
        let mut untyped = 0;
        for &address in self.space.blocks.iter() {
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
            let surprise = if what.beside_new { 0 } else { copied / SURPRISE };
            let needed = (copied + surprise).div_ceil(BLOCK) + partial as usize;
            // No more must be kept free for the copies than emptying the blocks frees.
            if needed <= headroom && (needed <= emptied || restless) {
                (step, wanted) = (next + 1, needed);
            }
        }
        // With generations, everything is moved as long as that brings live objects together.
        let is_worth_it = restless && !self.appel.is_pinned;
        self.copies.too_dear = untyped * SEARCH_PART > emptied * BLOCK && !is_worth_it;
        if step != 0 && !self.copies.too_dear && self.make_ready(wanted) {
            self.copies.step = step;
        }
    }

    /// Whether the survivors expected in a block say enough to empty it. Where survivors lie together, some
    /// blocks of a slot are wholly alive and others dead. Only of old blocks it is known which.
    fn may_be_sparse(&self, block: &Block) -> bool {
        let what = self.copies.what;
        what.all || what.whole_slots || self.space.slots[usize::from(block.slot.get())].scattered
    }

    /// Gets room for copies, `wanted` blocks or as many as there are; false if there is not even memory for
    /// the lists. The world still runs.
    pub(crate) fn make_ready(&mut self, wanted: usize) -> bool {
        let lists = self.copies.ready.reserve(wanted).is_ok()
            && self.copies.targets.reserve(wanted).is_ok()
            && self.space.blocks.reserve(wanted).is_ok()
            && self.space.pool.reserve(self.space.blocks.len() + wanted).is_ok()
            && self.space.descriptors.reserve(wanted).is_ok();
        if !lists {
            return false;
        }
        let more = self.space.slots.len().saturating_sub(self.copies.runs.capacity()) * size_of::<Run>();
        if more > 0 && !self.may_take(round_up(more, PAGE)) {
            return false;
        }
        while self.copies.runs.len() < self.space.slots.len() {
            if self.copies.runs.push(NO_RUN).is_err() {
                return false;
            }
        }
        // New objects use the warm end of the pool again and again. The old region grows from the other end,
        // and lies apart from them.
        let cold = if self.copies.what.beside_new { wanted.min(self.space.pool.len()) } else { 0 };
        let units: usize = (0..cold).take_while(|&index| self.is_ready(self.space.pool[index])).count();
        self.space.pool.copy_within(units.., 0);
        let left = self.space.pool.len() - units;
        self.space.pool.truncate(left);
        let left = self.blocks_to_return_to().min(wanted - units);
        let units: usize = (0..left).take_while(|&index| self.is_ready(self.appel.left[index])).count();
        self.forget_left(units);
        while self.copies.ready.len() < wanted {
            let Some(unit) = self.take_unit() else { break };
            if !self.is_ready(unit) {
                block_source::give_back(unit);
                break;
            }
        }
        // The first is taken first.
        self.copies.ready.reverse();
        self.expect_copies();
        true
    }

    /// Makes a free block room for copies; false, and it is not, if memory for the address table is out.
    fn is_ready(&mut self, unit: Address) -> bool {
        block_source::occupy(unit);
        self.space.table.enter(null(), unit, BLOCK) && self.copies.ready.push(unit).is_ok()
    }

    /// Reports to the account of writes, if there is one, where copies may go: neighbours at a time.
    fn expect_copies(&mut self) {
        let Some(dirty) = &mut self.tracking.account else { return };
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

    /// Bytes that the current collection, or else the last one, has copied.
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

    /// Pins what must stay in blocks that are emptied, except for what roots lead to. The world stands still.
    pub(crate) fn pin(&self) {
        if !self.copies.any() || self.copies.fills && !self.has_fields() {
            return;
        }
        // Of old untyped objects a minor collection scans the written parts only, before this (`appel`).
        let first = if self.copies.fills { self.appel.old_count } else { 0 };
        for &address in &self.space.blocks[first..] {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(address as *const Block) };
            if block.scan.get() == Scan::Words && block.extent.get() != 0 {
                let (base, size) = (block.base.get(), block.size.get());
                block.each_run(|from, to| {
                    self.pin_targets(base + from as usize * size, base + to as usize * size);
                });
            }
        }
        pin_tables(&self.space.table, &self.deaths.finalizers, &self.deaths.disclaimers, &self.deaths.links);
        self.deaths.ephemerons.each(|key, _| pin_target(&self.space.table, key, false));
    }

    /// Pins the objects that the words of untyped ones from `start` up to `end` may lead to.
    fn pin_targets(&self, start: usize, end: usize) {
        let (low, high) = self.space.table.bounds();
        let span = high.saturating_sub(low);
        // SAFETY: an allocated object's words may be read.
        let read = |at: usize| unsafe { (at as *const usize).read_volatile() };
        let mut at = start;
        while at < end {
            // Most are no addresses in the heap: a whole granule is tested at a time.
            let words: [usize; GRANULE / WORD] = core::array::from_fn(|index| read(at + index * WORD));
            if words.iter().fold(false, |any, word| any | (word.wrapping_sub(low) < span)) {
                words.iter().for_each(|&word| pin_target(&self.space.table, word, self.config.only_starts));
            }
            at += GRANULE;
        }
    }

    /// Puts the blocks that copies went to among the others, and the room that was not needed back. Before
    /// the sweep.
    pub(crate) fn finish_copies(&mut self) {
        for index in 0..self.copies.targets.len() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let target = unsafe { &*(self.copies.targets[index] as *const Block) };
            // Copied objects are not young.
            target.survivors.set(target.allocated_count() as u16);
            let pushed = self.space.blocks.push(self.copies.targets[index]);
            debug_assert!(pushed.is_ok(), "room was made before the world stopped");
        }
        self.copies.targets.truncate(0);
        for index in 0..self.copies.ready.len() {
            let pushed = self.space.pool.push(self.copies.ready[index]);
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
fn pin_target(space: &AddressTable, word: usize, only_starts: bool) {
    if let Some((block, index)) = find(space, word, only_starts)
        && block.evacuating.get()
    {
        block.pin(index);
    }
}

/// Pins objects that tables know by their addresses, and those that their links cannot follow.
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
    fn copy(&mut self, block: &Block, index: Index) -> Option<usize> {
        let slot = usize::from(block.slot.get());
        if self.copies.runs[slot].next == self.copies.runs[slot].end && !self.new_run(slot) {
            return None;
        }
        let run = &mut self.copies.runs[slot];
        let (from, to, bytes) = (block.address(index), run.next, block.size.get());
        run.next += bytes;
        self.copies.bytes += bytes as u64;
        // SAFETY: only `new_run` makes a run that is not empty, and gives it a descriptor, never unmapped.
        let target = unsafe { &*run.block };
        let place = target.index_at(to - target.base.get());
        target.settle_copy(place);
        if target.is_old() {
            target.note_copy(place);
        }
        // SAFETY: both places have `bytes` bytes, a multiple of a granule. `from` is an object and `to` is
        // free in another block; the heap's lock is held and the world stopped, so that nobody else accesses
        // either.
        unsafe { copy_granules(from as *const u128, to as *mut u128, bytes) };
        // SAFETY: the object has moved: its old place holds nothing but its new address from now on.
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
/// `bytes` bytes may be read at `from` and written at `to`, both aligned to a granule; they do not overlap.
#[inline(always)]
unsafe fn copy_granules(from: *const u128, to: *mut u128, bytes: usize) {
    for granule in 0..bytes / size_of::<u128>() {
        // SAFETY: by this function's condition; objects lie at multiples of a granule.
        unsafe { to.add(granule).write(from.add(granule).read()) };
    }
}

const _: () = assert!(crate::space::size_class::GRANULE == size_of::<u128>());

impl Evacuation<'_> {
    /// A block for the copies of a slot; false if there is none left.
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
        let pushed = self.copies.targets.push(core::ptr::from_ref(target).expose_provenance());
        debug_assert!(pushed.is_ok(), "room was made before the world stopped");
        let end = unit + count as usize * size;
        self.copies.runs[slot] = Run { next: unit, end, block: target };
        true
    }
}
