//! The destinations of a minor collection's copies, and the old fields that lead to pinned new objects.
//!
//! ```text
//! reserve  memory for the copies of each slot, sized by its last survivors (the program still runs)
//! fill     first the holes in the slot's old blocks, from where the last minor collection ended;
//! then     free blocks, as in other collections (`evacuation`)
//! ```
//!
//! A *slot* is all objects of one size and layout. *Pinned* objects (which must not move) stay new for one
//! more collection, and fields of old objects that lead to pinned ones are *recorded*, [`HOLDERS_MAX`] at
//! most. The next minor collection scans recorded fields, written or not. If there are more, all pinned
//! objects are promoted (`minor`).
//!
//! # Invariants
//! * Memory for recorded fields is allocated before the world stops.
//! * A block whose holes are being filled is on no list.

use crate::heap::Heap;
use crate::plan::appel::Appel;
use crate::plan::evacuation::{Copies, Evacuation, Run, SURPRISE};
use crate::space::size_class::{BLOCK, SLOTS_MAX};
use crate::space::survivor_statistics::{ALL, STEPS, STEPS_ALL};
use vellum_sys::Addr;

/// The limit of remembered fields.
pub(crate) const HOLDERS_MAX: usize = 4096;

impl Appel {
    /// Gets room for the copies that a minor collection should make, by how many young objects survived the
    /// last time. The world still runs.
    pub(super) fn plan_promotion(&mut self, heap: &mut Heap) {
        let what = heap.what_to_copy();
        self.copies.what = what;
        self.copies.step = 0;
        self.copies.copied = 0;
        self.copies.too_dear = false;
        let mut bytes = [0usize; SLOTS_MAX];
        for &block in &heap.space.blocks[self.old_count..] {
            bytes[usize::from(block.slot.get())] += BLOCK;
        }
        let mut wanted = 0;
        for (slot, &bytes) in heap.space.slots.iter().zip(&bytes).skip(1) {
            let moves = what.all || (slot.survival as usize) * STEPS < what.dense * ALL as usize;
            let bytes = if moves { bytes } else { 0 };
            let expected = bytes * slot.survival as usize / ALL as usize;
            // Each slot's last block is seldom full.
            wanted += if bytes == 0 { 0 } else { (expected + expected / SURPRISE).div_ceil(BLOCK) + 1 };
        }
        let wanted = wanted.min(heap.headroom_blocks());
        let new = heap.space.blocks.len() - self.old_count;
        let needed = 2 * HOLDERS_MAX + new;
        let more = needed.saturating_sub(self.copies.holders.capacity() + self.room_for_pinned());
        let has_room = heap.may_take(more * size_of::<Addr>())
            && self.copies.holders.reserve(HOLDERS_MAX).is_ok()
            && self.holders.reserve(HOLDERS_MAX).is_ok()
            && self.retained.reserve(new).is_ok();
        heap.plan_bytes.own = self.taken();
        let beyond = self.blocks_to_return_to();
        let used = has_room.then(|| self.copies.make_ready(heap, wanted, &self.left[..beyond])).flatten();
        if let Some(used) = used {
            self.forget_left(used);
            self.copies.step = if what.all { STEPS_ALL } else { what.dense };
            self.copies.fills = true;
        }
    }
}

impl Copies {
    /// Lets the next minor collection fill holes from where this one ended.
    pub(in crate::plan) fn keep_holes(&self, heap: &mut Heap) {
        for slot in 1..self.runs.len() {
            let Some(block) = self.runs[slot].block else { continue };
            let count = block.allocated_count();
            block.survivors.set(count as u16);
            if count < block.count.get() {
                heap.space.slots[slot].put_roomy(block);
            }
        }
    }
}

impl Evacuation<'_> {
    /// Records the field at `at`, whose object stays where it is, if the collection is a minor one and the
    /// field is an object's.
    pub(crate) fn remember(&mut self, at: Addr) {
        if self.copies.fills && self.space.block_of(at).is_some() {
            self.copies.lost_holders |=
                self.copies.holders.len() == HOLDERS_MAX || self.copies.holders.push(at).is_err();
        }
    }

    /// The next hole in the slot's old blocks.
    pub(crate) fn next_hole(&mut self, slot: usize) -> bool {
        let run = &mut self.copies.runs[slot];
        let mut at = run.block;
        let mut from = at.map_or(0, |block| block.index_at(run.end - block.base.get()).0);
        loop {
            let Some(block) = at.filter(|block| block.is_old()) else {
                let Some(block) = self.slots[slot].roomy else { return false };
                self.slots[slot].roomy = block.next.get();
                block.next.set(None);
                block.begin_filling();
                (at, from) = (Some(block), 0);
                continue;
            };
            if let Some((start, end)) = block.find_run(from) {
                let size = block.size.get();
                let at = |index: u32| block.base.get() + index as usize * size;
                *run = Run { next: at(start), end: at(end), block: Some(block) };
                return true;
            }
            block.survivors.set(block.allocated_count() as u16);
            (at, run.block) = (None, None);
        }
    }
}
