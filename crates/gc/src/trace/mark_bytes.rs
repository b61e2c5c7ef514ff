//! Mark bytes: marks of a byte each, for as long as several threads mark.
//!
//! Threads that share a word of mark bits must set a bit by an atomic operation, which waits for everything
//! before it. Cache misses of prefetched objects no longer overlap then, and marking takes twice as long
//! (measured: 7 and 15 ns an object). A byte needs a plain store only. Two threads that store the same byte
//! at the same time have both marked the object, and both scan it. The second scan only takes time.
//!
//! ```text
//! (block's address - heap's base) >> 4  ──▶  the block's 1024 bytes; it uses one for each of its objects
//! ```
//!
//! The table is address space. Touched pages, at most a sixteenth of the heap, stay until it has shrunk.
//!
//! # Invariants
//! * Between traces of several threads every byte is zero.
//! * A block's mark bits ([`Block::marks`]) hold the marks from before the trace. The bits are only read, not
//!   written, while several threads mark.

use crate::space::address_table::AddressTable;
use crate::space::block::{Block, Index};
use crate::space::size_class::GRANULE;
use core::sync::atomic::{AtomicU8, Ordering};
use vellum_sys::{Addr, PAGE, Span, map};

/// The table: the byte of the granule at address 0, by arithmetic; 0 while there is no table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(usize);

impl Bytes {
    pub(crate) const NONE: Bytes = Bytes(0);

    /// Makes the table for the addresses of `space`, once; false if there is no address space for it.
    pub(crate) fn make(&mut self, space: &AddressTable) -> bool {
        if self.0 != 0 {
            return true;
        }
        let Ok(table) = map::reserve_writable(space.span.bytes / GRANULE) else { return false };
        self.0 = table.start.get().wrapping_sub(space.span.start.get() / GRANULE);
        true
    }

    /// Gives the table's frames back after the heap has shrunk: most belong to memory without blocks. Between
    /// traces, when every byte is zero: so it stays.
    pub(crate) fn flush(self, space: &AddressTable) {
        let biased = self.0;
        if biased == 0 || space.bounds.is_empty() {
            return;
        }
        let byte = |address: Addr| Addr::new(biased.wrapping_add(address.get() / GRANULE));
        let marks = Span::between(byte(space.bounds.start), byte(space.bounds.end())).touched(PAGE);
        // SAFETY: within the table, which is this module's own, as the span begins and ends at whole pages of
        // it; nobody marks, and the frames that come next read zero.
        let flushed = unsafe { map::flush(marks) };
        debug_assert!(flushed.is_ok());
    }

    /// The byte of an object.
    #[inline(always)]
    fn of(self, block: &Block, index: Index) -> &'static AtomicU8 {
        let place = self.0.wrapping_add(block.base.get().get() / GRANULE) + index.0 as usize;
        // SAFETY: the table has a byte for each granule of the span, an object takes one at least, and the
        // table is never unmapped.
        unsafe { &*core::ptr::with_exposed_provenance::<AtomicU8>(place) }
    }

    /// Marks an object; false if it was marked or is not allocated. Two threads at once may both get true.
    #[inline(always)]
    pub(crate) fn mark(self, block: &Block, index: Index) -> bool {
        if block.marks(index.0 / 64).get() >> (index.0 % 64) & 1 != 0 {
            return false;
        }
        let byte = self.of(block, index);
        if byte.load(Ordering::Relaxed) != 0 {
            return false;
        }
        byte.store(1, Ordering::Relaxed);
        true
    }

    /// Moves the block's mark bytes into its bitmap, and clears them. By one thread, when the others are
    /// done.
    pub(crate) fn settle(self, block: &Block) {
        /// Bytes read at a time.
        const WORD: u32 = 8;
        /// Collects the lowest bits of eight bytes in the highest byte.
        const GATHER: u64 = 0x0102_0408_1020_4080;
        for pair in 0..block.pairs.get() {
            let mut bits = 0;
            for part in (0..64u32.min(block.count.get().saturating_sub(pair * 64))).step_by(WORD as usize) {
                let first =
                    core::ptr::from_ref(self.of(block, Index(pair * 64 + part))).cast::<u64>().cast_mut();
                // SAFETY: a region has a multiple of eight bytes and begins at one; no other thread marks
                // now.
                let bytes = unsafe { first.read() };
                if bytes != 0 {
                    bits |= (bytes.wrapping_mul(GATHER) >> (u64::BITS - WORD)) << part;
                    // SAFETY: `first` leads to eight bytes of the region; the other threads have ended their
                    // part of the trace.
                    unsafe { first.write(0) };
                }
            }
            block.marks(pair).set(block.marks(pair).get() | bits);
        }
    }
}

#[cfg(test)]
mod tests {
    /// The multiplication that gathers bits puts each where it belongs.
    #[test]
    fn eight_bytes_become_eight_bits() {
        for bits in 0..=255u64 {
            let bytes = (0..8).fold(0, |bytes, bit| bytes | (bits >> bit & 1) << (bit * 8));
            assert_eq!(u64::wrapping_mul(bytes, 0x0102_0408_1020_4080) >> 56, bits, "{bytes:#x}");
        }
    }
}
