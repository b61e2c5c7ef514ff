//! Finds the block of an address: one subtraction, one shift, one load.
//!
//! Every block and large object starts at a multiple of [`BLOCK`] in the page layer's span. The table has
//! one pointer for each such multiple. The table is reserved address space: only the parts that describe
//! blocks are ever written, and only those count as memory.

use crate::space::block::Block;
use crate::space::block_source;
use crate::space::size_class::{BLOCK, BLOCK_SHIFT};
use core::ptr::null;
use vellum_sys::{Addr, Span, map};

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
    /// The addresses that can be in a block at all.
    pub span: Span,
    table: *mut *const Block,
    /// No block lies outside.
    pub bounds: Span,
    /// Which parts of the table are writable.
    opened: [u64; PARTS_MAX / 64],
    opened_parts: usize,
}

impl AddressTable {
    pub(crate) const fn none() -> AddressTable {
        AddressTable {
            span: Span::EMPTY,
            table: core::ptr::null_mut(),
            bounds: Span::EMPTY,
            opened: [0; PARTS_MAX / 64],
            opened_parts: 0,
        }
    }

    /// The space over the page layer's span; `None` if there is not enough address space.
    pub(crate) fn new() -> Option<AddressTable> {
        let span = block_source::span();
        let entries = (span.bytes >> BLOCK_SHIFT).next_multiple_of(PART);
        if span.is_empty() || entries / PART > PARTS_MAX {
            return None;
        }
        let table = map::reserve_readable(entries * ENTRY).ok()?;
        Some(AddressTable { span, table: table.start.ptr(), ..AddressTable::none() })
    }

    /// Gives the table's address space back if the heap does not start. The table is still empty.
    pub(crate) fn give_back(self) {
        let entries = (self.span.bytes >> BLOCK_SHIFT).next_multiple_of(PART);
        // SAFETY: `new` reserved exactly these bytes, and `self` goes: nothing refers to the table any more.
        let _ = unsafe { map::release(Span::at(self.table, entries * ENTRY)) };
    }

    /// A table over blocks that follow each other in memory from `base`, for tests that need no more.
    #[cfg(test)]
    pub(crate) fn over(table: &[*const Block], start: Addr) -> AddressTable {
        let span = Span::new(start, table.len() * BLOCK);
        AddressTable { span, table: table.as_ptr().cast_mut(), bounds: span, ..AddressTable::none() }
    }

    /// The entry of the lowest block, for addresses within the bounds.
    pub(crate) fn lowest_entry(&self) -> *const *const Block {
        self.table.wrapping_add(self.bounds.start.since(self.span.start) >> BLOCK_SHIFT)
    }

    /// The block of `at`, or else the first one above it.
    pub(crate) fn next(&self, at: Addr) -> Option<&'static Block> {
        let from = self.bounds.from(at).non_empty()?;
        let last = (from.end() - self.span.start).div_ceil(BLOCK);
        let mut index = (from.start - self.span.start) >> BLOCK_SHIFT;
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

    /// Names `block` the owner of `span`. False, and nothing changed, if memory for
    /// the table is out.
    pub(crate) fn enter(&mut self, block: *const Block, span: Span) -> bool {
        debug_assert!(span.start.is_aligned(BLOCK) && self.span.intersect(span) == span);
        let first = (span.start - self.span.start) >> BLOCK_SHIFT;
        let count = span.bytes.div_ceil(BLOCK);
        let parts = first / PART..=(first + count - 1) / PART;
        if !parts.into_iter().all(|part| self.open(part)) {
            return false;
        }
        for index in first..first + count {
            // SAFETY: within the table, in the part just opened; the heap's lock is held.
            unsafe { self.table.add(index).write(block) };
        }
        let known = self.bounds.non_empty().unwrap_or(span);
        self.bounds = Span::between(known.start.min(span.start), known.end().max(span.end()));
        true
    }

    /// Names `block` the owner of the block at `start`, which was entered as nobody's.
    pub(crate) fn assign(&self, block: *const Block, start: Addr) {
        debug_assert!(self.bounds.contains(start));
        // SAFETY: within the table, in a part that `enter` opened; the heap's lock is held.
        unsafe { self.table.add((start - self.span.start) >> BLOCK_SHIFT).write(block) };
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
    pub(crate) fn leave(&mut self, span: Span) {
        let first = (span.start - self.span.start) >> BLOCK_SHIFT;
        for index in first..first + span.bytes.div_ceil(BLOCK) {
            // SAFETY: within the table, in a part that `enter` opened; the heap's lock is held.
            unsafe { self.table.add(index).write(null()) };
        }
    }

    /// The block of `address`, which lies within `bounds`.
    #[inline(always)]
    pub(crate) fn within_bounds(&self, address: Addr) -> *const Block {
        // SAFETY: within the bounds is within the span, and the table has an entry for every step of that.
        unsafe { self.table.add((address - self.span.start) >> BLOCK_SHIFT).read() }
    }

    #[inline]
    pub(crate) fn block_of(&self, address: Addr) -> Option<&'static Block> {
        if !self.bounds.contains(address) {
            return None;
        }
        // SAFETY: descriptors are never unmapped, and entries lead to those in use.
        unsafe { self.within_bounds(address).as_ref() }
    }
}
