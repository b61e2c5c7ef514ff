//! Memory for descriptors: cut from units of the page layer, used again by length, never given back.

use crate::block::{Block, PAIRS_MAX, descriptor_bytes};
use core::ptr::null;
use vellum_pages::{Pages, UNIT};

/// Descriptors not in use, and the unit new ones are cut from.
pub(crate) struct Descriptors {
    /// Those with room for so many pairs of bitmap words.
    free: [*const Block; PAIRS_MAX + 1],
    unit: *mut u8,
    used: usize,
    units: usize,
}

impl Descriptors {
    pub(crate) const fn new() -> Descriptors {
        Descriptors { free: [null(); PAIRS_MAX + 1], unit: core::ptr::null_mut(), used: UNIT, units: 0 }
    }

    /// A descriptor with room for `pairs` pairs; `None` if memory is out.
    pub(crate) fn take(&mut self, pairs: u32) -> Option<&'static Block> {
        let head = self.free[pairs as usize];
        // SAFETY: null, or a descriptor that nobody uses.
        if let Some(block) = unsafe { head.as_ref() } {
            self.free[pairs as usize] = block.next.get();
            return Some(block);
        }
        let bytes = descriptor_bytes(pairs);
        if self.used + bytes > UNIT {
            let mut unit = [core::ptr::null_mut()];
            if Pages::global().alloc_units(&mut unit) == 0 {
                return None;
            }
            self.unit = unit[0];
            self.used = 0;
            self.units += 1;
        }
        // SAFETY: within the unit, which is ours; a zeroed descriptor is a valid one.
        let block = unsafe {
            let place = self.unit.add(self.used);
            place.write_bytes(0, bytes);
            &*place.cast::<Block>()
        };
        self.used += bytes;
        block.pairs.set(pairs);
        Some(block)
    }

    /// Takes back a descriptor that nothing leads to any more.
    pub(crate) fn put(&mut self, block: &'static Block) {
        let head = &mut self.free[block.pairs.get() as usize];
        block.next.set(*head);
        *head = block;
    }

    /// Bytes taken from the page layer.
    pub(crate) fn bytes(&self) -> usize {
        self.units * UNIT
    }
}

const _: () = assert!(descriptor_bytes(PAIRS_MAX as u32) <= UNIT && size_of::<Block>().is_multiple_of(8));
