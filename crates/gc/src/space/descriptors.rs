//! Allocates block descriptors from units of the page layer. A freed descriptor is used again for a block
//! with bitmaps of the same length. It never returns to the page layer.

use crate::space::block::{BITMAPS, BITMAPS_MAX, Block, PAIRS_MAX, descriptor_bytes};
use vellum_pages::{Buffer, OutOfMemory, Pages, UNIT};

/// Descriptors not in use, and the unit new ones are cut from.
pub(crate) struct Descriptors {
    /// Free descriptors, by the pairs of bitmap words that they have room for.
    free: [Option<&'static Block>; PAIRS_MAX + 1],
    unit: *mut u8,
    used: usize,
    /// The addresses of units that are not in use yet.
    spare: Buffer<usize>,
    units: usize,
    /// Bitmaps in each descriptor.
    bitmaps: u32,
}

impl Descriptors {
    pub(crate) const fn new() -> Descriptors {
        Descriptors {
            free: [None; PAIRS_MAX + 1],
            unit: core::ptr::null_mut(),
            used: UNIT,
            spare: Buffer::new(),
            units: 0,
            bitmaps: BITMAPS,
        }
    }

    /// Gives descriptors pins from now on. Before the first is taken.
    pub(crate) fn with_pins(&mut self) {
        debug_assert!(self.units == 0);
        self.bitmaps = BITMAPS_MAX;
    }

    /// Makes sure that the next `count` descriptors need nothing of the page layer.
    pub(crate) fn reserve(&mut self, count: usize) -> Result<(), OutOfMemory> {
        let each = descriptor_bytes(PAIRS_MAX as u32, self.bitmaps);
        let mut there = (UNIT - self.used) / each + self.spare.len() * (UNIT / each);
        while there < count {
            self.spare.reserve(1)?;
            let unit = self.new_unit().ok_or(OutOfMemory { bytes: UNIT })?;
            self.spare.push(unit.expose_provenance())?;
            there += UNIT / each;
        }
        Ok(())
    }

    fn new_unit(&mut self) -> Option<*mut u8> {
        let mut unit = [core::ptr::null_mut()];
        if Pages::global().alloc_units(&mut unit) == 0 {
            return None;
        }
        self.units += 1;
        Some(unit[0])
    }

    /// A descriptor with room for `pairs` pairs; `None` if memory is out.
    pub(crate) fn take(&mut self, pairs: u32) -> Option<&'static Block> {
        if let Some(block) = self.free[pairs as usize] {
            self.free[pairs as usize] = block.next.get();
            return Some(block);
        }
        let bytes = descriptor_bytes(pairs, self.bitmaps);
        if self.used + bytes > UNIT {
            self.unit = match self.spare.last() {
                Some(&unit) => {
                    self.spare.truncate(self.spare.len() - 1);
                    core::ptr::with_exposed_provenance_mut(unit)
                }
                None => self.new_unit()?,
            };
            self.used = 0;
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
        *head = Some(block);
    }

    /// Bytes taken from the page layer.
    pub(crate) fn bytes(&self) -> usize {
        self.units * UNIT
    }
}

const _: () =
    assert!(descriptor_bytes(PAIRS_MAX as u32, BITMAPS_MAX) <= UNIT && size_of::<Block>().is_multiple_of(8));
