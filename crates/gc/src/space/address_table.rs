//! From an address to its block: one subtraction, one shift, one load.
//!
//! Every block and large object starts at a multiple of [`BLOCK`] in the page layer's span. The table has one
//! pointer for each such multiple. The table is address space; only the parts that describe blocks are ever
//! written, and only those count as memory.

use crate::space::block::Block;
use crate::space::block_source;
use crate::space::size_class::{BLOCK, BLOCK_SHIFT};
use core::ptr::null;
use vellum_sys::{Span, map};

/// The distance of prefetched descriptors from the returned one, in entries.
const AHEAD: usize = 8;
const ENTRY: usize = size_of::<*const Block>();
/// Entries of the table made writable at a time: 64 KiB.
const PART: usize = (64 << 10) / ENTRY;
/// Parts there can be: enough for a span of 4 TiB.
const PARTS_MAX: usize = (4 << 40) / BLOCK / PART;

/// The table, and the part of the span that holds blocks.
#[derive(Debug)]
pub(crate) struct AddressTable {
    base: usize,
    bytes: usize,
    table: *mut *const Block,
    /// No block lies below.
    low: usize,
    /// No block lies at or above.
    high: usize,
    /// Which parts of the table are writable.
    opened: [u64; PARTS_MAX / 64],
    opened_parts: usize,
}

impl AddressTable {
    pub(crate) const fn none() -> AddressTable {
        AddressTable {
            base: 0,
            bytes: 0,
            table: core::ptr::null_mut(),
            low: usize::MAX,
            high: 0,
            opened: [0; PARTS_MAX / 64],
            opened_parts: 0,
        }
    }

    /// The space over the page layer's span; `None` if there is not enough address space.
    pub(crate) fn new() -> Option<AddressTable> {
        let (base, bytes) = block_source::span();
        let entries = (bytes >> BLOCK_SHIFT).next_multiple_of(PART);
        if bytes == 0 || entries / PART > PARTS_MAX {
            return None;
        }
        let table = map::reserve_readable(entries * ENTRY).ok()?;
        Some(AddressTable {
            base,
            bytes,
            table: table.start.ptr(),
            low: usize::MAX,
            high: 0,
            opened: [0; PARTS_MAX / 64],
            opened_parts: 0,
        })
    }

    /// Gives the table's address space back if the heap does not start. The table is still empty.
    pub(crate) fn give_back(self) {
        let entries = (self.bytes >> BLOCK_SHIFT).next_multiple_of(PART);
        // SAFETY: `new` reserved exactly these bytes, and `self` goes: nothing refers to the table any more.
        let _ = unsafe { map::release(Span::at(self.table, entries * ENTRY)) };
    }

    /// A table over blocks that follow each other in memory from `base`, for tests that need no more.
    #[cfg(test)]
    pub(crate) fn over(table: &[*const Block], base: usize) -> AddressTable {
        let bytes = table.len() * BLOCK;
        let table = table.as_ptr().cast_mut();
        AddressTable { base, bytes, table, low: base, high: base + bytes, ..AddressTable::none() }
    }

    /// The lowest and one beyond the highest address that can be in a block.
    #[inline]
    pub(crate) fn bounds(&self) -> (usize, usize) {
        (self.low, self.high)
    }

    /// The entry of the lowest block, for addresses within the bounds.
    pub(crate) fn lowest_entry(&self) -> *const *const Block {
        self.table.wrapping_add(self.low.saturating_sub(self.base) >> BLOCK_SHIFT)
    }

    /// The addresses that can be in a block at all: the first, and how many.
    pub(crate) fn span(&self) -> (usize, usize) {
        (self.base, self.bytes)
    }

    /// The block of `at`, or else the first one above it.
    pub(crate) fn next(&self, at: usize) -> Option<&'static Block> {
        if at >= self.high {
            return None;
        }
        let last = (self.high - self.base).div_ceil(BLOCK);
        let mut index = (at.max(self.low) - self.base) >> BLOCK_SHIFT;
        while index < last {
            let part = index / PART;
            if self.opened[part / 64] >> (part % 64) & 1 == 0 {
                // Nothing was ever entered there, and reading it would cost pages.
                index = (part + 1) * PART;
                continue;
            }
            // SAFETY: within the table; entries are null or lead to descriptors, which are never unmapped.
            if let Some(block) = unsafe { self.table.add(index).read().as_ref() } {
                // A walk from block to block would wait for each descriptor.
                if (index + AHEAD) / PART == part {
                    // SAFETY: within the table, in the same part.
                    let later = unsafe { self.table.add(index + AHEAD).read() };
                    vellum_sys::prefetch(later.cast());
                }
                return Some(block);
            }
            index += 1;
        }
        None
    }

    /// Names `block` the owner of the `bytes` bytes from `start`. False, and nothing changed, if memory for
    /// the table is out.
    pub(crate) fn enter(&mut self, block: *const Block, start: usize, bytes: usize) -> bool {
        debug_assert!(
            start.is_multiple_of(BLOCK) && start >= self.base && start + bytes <= self.base + self.bytes
        );
        let first = (start - self.base) >> BLOCK_SHIFT;
        let count = bytes.div_ceil(BLOCK);
        let parts = first / PART..=(first + count - 1) / PART;
        if !parts.into_iter().all(|part| self.open(part)) {
            return false;
        }
        for index in first..first + count {
            // SAFETY: within the table, in the part just opened; the heap's lock is held.
            unsafe { self.table.add(index).write(block) };
        }
        self.low = self.low.min(start);
        self.high = self.high.max(start + bytes);
        true
    }

    /// Names `block` the owner of the block at `start`, which was entered as nobody's.
    pub(crate) fn assign(&self, block: *const Block, start: usize) {
        debug_assert!(start >= self.low && start + BLOCK <= self.high);
        // SAFETY: within the table, in a part that `enter` opened; the heap's lock is held.
        unsafe { self.table.add((start - self.base) >> BLOCK_SHIFT).write(block) };
    }

    /// Bytes of the table that may be in memory.
    pub(crate) fn table_bytes(&self) -> usize {
        self.opened_parts * PART * ENTRY
    }

    /// Makes part `part` of the table writable, once.
    fn open(&mut self, part: usize) -> bool {
        let (word, bit) = (&mut self.opened[part / 64], 1 << (part % 64));
        if *word & bit == 0 {
            let start = self.table.wrapping_byte_add(part * PART * ENTRY);
            // SAFETY: the part is within the table, whose length is a multiple of parts, and which is this
            // space's own.
            if unsafe { map::make_writable(Span::at(start, PART * ENTRY)) }.is_err() {
                return false;
            }
            *word |= bit;
            self.opened_parts += 1;
        }
        true
    }

    /// Undoes [`AddressTable::enter`].
    pub(crate) fn leave(&mut self, start: usize, bytes: usize) {
        let first = (start - self.base) >> BLOCK_SHIFT;
        for index in first..first + bytes.div_ceil(BLOCK) {
            // SAFETY: within the table, in a part that `enter` opened; the heap's lock is held.
            unsafe { self.table.add(index).write(null()) };
        }
    }

    /// The block of `address`, which lies within [`AddressTable::bounds`].
    #[inline(always)]
    pub(crate) fn within_bounds(&self, address: usize) -> *const Block {
        // SAFETY: within the bounds is within the span, and the table has an entry for every step of that.
        unsafe { self.table.add((address - self.base) >> BLOCK_SHIFT).read() }
    }

    #[inline]
    pub(crate) fn block_of(&self, address: usize) -> Option<&'static Block> {
        if address < self.low || address >= self.high {
            return None;
        }
        // SAFETY: descriptors are never unmapped, and entries lead to those in use.
        unsafe { self.within_bounds(address).as_ref() }
    }
}
