//! The table of the sampled blocks in use: for each address, the amount that the block stands for, and its
//! stack.
//!
//! It is a hash table of open addressing with linear probes, at most half full. A deletion moves later
//! entries back, so that there are no tombstones (Knuth, *The Art of Computer Programming*, vol. 3, 6.4,
//! algorithm R). The table is mapped memory and doubles when half of it is used. A forked child has a copy.

use vellum_sys::{PAGE, Span, map};
use vellum_wire::held::Amount;

/// Blocks there is room for at first.
const FIRST_SLOTS: usize = 1 << 10;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// Its address; 0 for an empty slot.
    pub(super) address: u64,
    /// Bytes it stands for.
    pub(super) bytes: u64,
    /// Blocks it stands for, in units of a [`vellum_wire::held::BLOCK`]th.
    pub(super) blocks: u64,
    /// The entry of its stack, in words from the first.
    pub(super) stack: u32,
    /// Which of the process's parts that entry is in: see `super::part`.
    pub(super) generation: u32,
    /// Its size class; 0 for a large block; of a mapping, its pages.
    pub(super) class: u32,
    /// The unit, counted from 1, of the slab for the unsampled request; 0 if there is none.
    pub(super) neighbours: u32,
}

impl Sample {
    const EMPTY: Sample =
        Sample { address: 0, bytes: 0, blocks: 0, stack: 0, generation: 0, class: 0, neighbours: 0 };

    /// The end of a mapping.
    pub(super) fn end(&self) -> u64 {
        self.address + u64::from(self.class) * PAGE as u64
    }

    /// The part of a mapping from `from` to `to`; `None` if it is empty.
    pub(super) fn part(&self, from: u64, to: u64) -> Option<Sample> {
        let pages = to.checked_sub(from)? / PAGE as u64;
        let bytes = u128::from(self.bytes) * u128::from(pages) / u128::from(self.class.max(1));
        let part = Sample { address: from, bytes: bytes as u64, class: pages as u32, ..*self };
        (pages > 0).then_some(part)
    }

    pub(super) fn amount(&self) -> Amount {
        Amount { bytes: self.bytes, blocks: self.blocks, samples: 1 }
    }
}

#[derive(Debug)]
pub(super) struct Live {
    slots: *mut Sample,
    /// A power of two, or 0.
    length: usize,
    used: usize,
}

// SAFETY: the pointer is to memory of the whole process, which only the table's holder reaches.
unsafe impl Send for Live {}

impl Live {
    pub(super) const fn new() -> Live {
        Live { slots: core::ptr::null_mut(), length: 0, used: 0 }
    }

    fn slots(&mut self) -> &mut [Sample] {
        if self.length == 0 {
            return &mut [];
        }
        // SAFETY: `length` slots are mapped there, for this table alone.
        unsafe { core::slice::from_raw_parts_mut(self.slots, self.length) }
    }

    fn home(&self, address: u64) -> usize {
        (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.length - 1)
    }

    /// The slot of `address`, or the empty one where it would be. There is an empty one.
    fn slot(&mut self, address: u64) -> usize {
        let (mut index, mask) = (self.home(address), self.length - 1);
        let slots = self.slots();
        while slots[index].address != 0 && slots[index].address != address {
            index = (index + 1) & mask;
        }
        index
    }

    /// Makes room for one more. False if memory is out.
    pub(super) fn reserve(&mut self) -> bool {
        if 2 * (self.used + 1) <= self.length {
            return true;
        }
        let length = (2 * self.length).max(FIRST_SLOTS);
        let Ok(fresh) = map::reserve_writable(length * size_of::<Sample>()) else {
            return false;
        };
        let old = core::mem::replace(self, Live { slots: fresh.start.ptr(), length, used: self.used });
        let mut old = old;
        for sample in old.slots().iter().filter(|sample| sample.address != 0) {
            let index = self.slot(sample.address);
            self.slots()[index] = *sample;
        }
        if old.length != 0 {
            // SAFETY: the old table's memory, which nobody reaches any more.
            let _ = unsafe { map::release(Span::at(old.slots, old.length * size_of::<Sample>())) };
        }
        true
    }

    /// Adds a block, for which there is room; returns the block that was recorded at its address, if any.
    pub(super) fn insert(&mut self, sample: Sample) -> Option<Sample> {
        let index = self.slot(sample.address);
        let old = core::mem::replace(&mut self.slots()[index], sample);
        let is_new = old.address == 0;
        self.used += usize::from(is_new);
        (!is_new).then_some(old)
    }

    /// The block at `address`, if it is there.
    pub(super) fn get(&mut self, address: u64) -> Option<&mut Sample> {
        if self.length == 0 {
            return None;
        }
        let index = self.slot(address);
        Some(&mut self.slots()[index]).filter(|sample| sample.address == address)
    }

    /// Takes out a mapping that has pages from `start` to `end`.
    pub(super) fn take_overlapping(&mut self, start: u64, end: u64) -> Option<Sample> {
        if self.used == 0 {
            return None;
        }
        // Most mappings end as a whole.
        self.remove(start).or_else(|| {
            let is_cut = |sample: &&Sample| sample.address < end && start < sample.end();
            let address = self.samples().find(is_cut)?.address;
            self.remove(address)
        })
    }

    pub(super) fn samples(&self) -> impl Iterator<Item = &Sample> {
        let slots: &[Sample] = match self.length {
            0 => &[],
            // SAFETY: `length` slots are mapped there, for this table alone.
            length => unsafe { core::slice::from_raw_parts(self.slots, length) },
        };
        slots.iter().filter(|sample| sample.address != 0)
    }

    /// The address and the bytes of the table.
    pub(super) fn range(&self) -> Span {
        Span::at(self.slots, self.length * size_of::<Sample>())
    }

    /// Takes the block at `address` out, if it is there.
    pub(super) fn remove(&mut self, address: u64) -> Option<Sample> {
        let taken = *self.get(address)?;
        let (mut hole, mask) = (self.slot(address), self.length - 1);
        let mut next = (hole + 1) & mask;
        while self.slots()[next].address != 0 {
            let sample = self.slots()[next];
            // It may move back to the hole unless its home lies between the two.
            let home = self.home(sample.address);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.slots()[hole] = sample;
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.slots()[hole] = Sample::EMPTY;
        self.used -= 1;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use vellum_random::Rng;

    #[test]
    fn it_holds_what_a_map_holds() {
        let mut rng = Rng::new(7);
        let (mut live, mut model) = (Live::new(), HashMap::new());
        assert_eq!(live.remove(16), None);
        for step in 0..200_000u64 {
            // Few addresses at first, so that they meet; then enough to grow.
            let address = 16 * (1 + rng.below(if step < 100_000 { 300 } else { 4000 }));
            if rng.below(2) == 0 {
                let sample =
                    Sample { address, bytes: step, blocks: 1, stack: 2, generation: 3, ..Sample::EMPTY };
                assert!(live.reserve());
                assert_eq!(live.insert(sample), model.insert(address, sample));
            } else {
                assert_eq!(live.remove(address), model.remove(&address));
            }
            assert_eq!(live.used, model.len());
        }
        for (address, sample) in model {
            assert_eq!(live.get(address), Some(&mut { sample }));
        }
    }
}
