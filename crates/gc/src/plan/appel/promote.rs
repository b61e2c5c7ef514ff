//! Where a minor collection copies to, and the fields that it remembers as their objects stay.
//!
//! ```text
//! room     by how many of each slot's young objects survived the last time (the world still runs)
//! holes    of the slot's old blocks are filled first, from where the last minor collection ended
//! blocks   then fresh ones, as everywhere (`evacuation`)
//! ```
//!
//! Pinned objects stay new for one more collection, and fields of old objects that lead there are
//! *remembered*, [`HOLDERS_MAX`] at most: the next minor collection must scan them even if nobody writes to
//! them. If there are more, all pinned objects are promoted (`minor`).
//!
//! # Invariants
//! * Memory for remembered fields is there before the world stops.
//! * A block whose holes are being filled is on no list.

use crate::heap::Heap;
use crate::plan::copies::Run;
use crate::plan::evacuation::{Evacuation, SURPRISE};
use crate::space::block::{Address, Block};
use crate::space::size_class::{BLOCK, SLOTS_MAX};
use crate::space::survivor_statistics::{ALL, STEPS, STEPS_ALL};
use core::ptr::null;

/// Fields that a minor collection remembers at most.
pub(crate) const HOLDERS_MAX: usize = 4096;

impl Heap {
    /// Gets room for the copies that a minor collection should make, by how many young objects survived the
    /// last time. The world still runs.
    pub(crate) fn plan_promotion(&mut self) {
        let what = self.what_to_copy();
        self.copies.what = what;
        self.copies.step = 0;
        self.copies.before = self.copies.bytes;
        self.copies.too_dear = false;
        let mut bytes = [0usize; SLOTS_MAX];
        for &address in &self.space.blocks[self.appel.old_count..] {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(address as *const Block) };
            bytes[usize::from(block.slot.get())] += BLOCK;
        }
        let mut wanted = 0;
        for (slot, &bytes) in self.space.slots.iter().zip(&bytes).skip(1) {
            let moves = what.all || (slot.survival as usize) * STEPS < what.dense * ALL as usize;
            let bytes = if moves { bytes } else { 0 };
            let expected = bytes * slot.survival as usize / ALL as usize;
            // Each slot's last block is seldom full.
            wanted += if bytes == 0 { 0 } else { (expected + expected / SURPRISE).div_ceil(BLOCK) + 1 };
        }
        let wanted = wanted.min(self.headroom_blocks());
        let new = self.space.blocks.len() - self.appel.old_count;
        let needed = 2 * HOLDERS_MAX + new;
        let more = needed.saturating_sub(self.copies.holders.capacity() + self.appel.room_for_pinned());
        let has_room = self.may_take(more * size_of::<Address>())
            && self.copies.holders.reserve(HOLDERS_MAX).is_ok()
            && self.appel.holders.reserve(HOLDERS_MAX).is_ok()
            && self.appel.retained.reserve(new).is_ok();
        if has_room && self.make_ready(wanted) {
            self.copies.step = if what.all { STEPS_ALL } else { what.dense };
            self.copies.fills = true;
        }
    }

    /// Lets the next minor collection fill holes from where this one ended.
    pub(crate) fn keep_holes(&mut self) {
        for slot in 1..self.copies.runs.len() {
            // SAFETY: null, or a descriptor, which is never unmapped.
            let Some(block) = (unsafe { self.copies.runs[slot].block.as_ref() }) else { continue };
            let count = block.allocated_count();
            block.survivors.set(count as u16);
            if count < block.count.get() {
                block.next.set(self.space.slots[slot].roomy);
                self.space.slots[slot].roomy = block;
            }
        }
    }
}

impl Evacuation<'_> {
    /// Remembers the field at `at`, whose object stays where it is, if the collection is a minor one and the
    /// field is an object's.
    pub(crate) fn remember(&mut self, at: usize) {
        if self.copies.fills && self.space.block_of(at).is_some() {
            self.copies.lost_holders |=
                self.copies.holders.len() == HOLDERS_MAX || self.copies.holders.push(at).is_err();
        }
    }

    /// The next hole in the slot's old blocks.
    pub(crate) fn next_hole(&mut self, slot: usize) -> bool {
        let run = &mut self.copies.runs[slot];
        // SAFETY: null, or a descriptor, which is never unmapped.
        let mut at = unsafe { run.block.as_ref() };
        let mut from = at.map_or(0, |block| block.index_at(run.end - block.base.get()).0);
        loop {
            let Some(block) = at.filter(|block| block.is_old()) else {
                // SAFETY: null, or a descriptor, which is never unmapped.
                let Some(block) = (unsafe { self.slots[slot].roomy.as_ref() }) else { return false };
                self.slots[slot].roomy = block.next.get();
                block.next.set(null());
                block.begin_filling();
                (at, from) = (Some(block), 0);
                continue;
            };
            if let Some((start, end)) = block.find_run(from) {
                let size = block.size.get();
                let base = block.base.get();
                *run = Run { next: base + start as usize * size, end: base + end as usize * size, block };
                return true;
            }
            block.survivors.set(block.allocated_count() as u16);
            (at, run.block) = (None, null());
        }
    }
}
