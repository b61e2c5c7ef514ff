//! The address range (*span*) of all blocks, and the table of its units, which leads from addresses to slabs.

use crate::mode;
use crate::slab::{Block, Slab};
use crate::state::MALLOC;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use vellum_pages::{ANNEX_BYTES, ANNEX_UNITS, Pages, UNIT, UNIT_SIDE};

/// `log2(UNIT) - log2(UNIT_SIDE)`: a byte offset in the span, shifted by this, is one in the side table.
const SIDE_SHIFT: u32 = UNIT.ilog2() - UNIT_SIDE.ilog2();

#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub base: usize,
    pub bytes: usize,
    pub side: *mut u8,
}

impl Space {
    /// The span, placed now if it was not before and is needed: in passthrough, where nothing was ever
    /// served, it is empty.
    pub(crate) fn get() -> Space {
        let bytes = MALLOC.space.bytes.load(Acquire);
        if bytes != 0 {
            return Space {
                base: MALLOC.space.base.load(Relaxed),
                bytes,
                side: MALLOC.space.side.load(Relaxed),
            };
        }
        let pages = Pages::global();
        if pages.placed().is_empty() && mode::is_passthrough() {
            return Space { base: 0, bytes: 0, side: null_mut() };
        }
        let span = pages.span();
        let base = span.start.get();
        // A pager's objects lie behind its units, and are no blocks of the page layer's.
        let bytes = if span.is_empty() { 0 } else { span.bytes - ANNEX_BYTES + ANNEX_UNITS };
        let side = pages.side();
        crate::seal::draw_key();
        MALLOC.space.base.store(base, Relaxed);
        MALLOC.space.side.store(side, Relaxed);
        MALLOC.space.bytes.store(bytes, Release);
        Space { base, bytes, side }
    }

    /// The description of the unit that holds `address`, if that lies in the span.
    #[inline]
    pub(crate) fn slab_of(&self, address: *const u8) -> Option<&'static Slab> {
        let offset = (address as usize).wrapping_sub(self.base);
        if offset >= self.bytes {
            return None;
        }
        // SAFETY: `offset` is within the span, and the side table has an entry for each of its units.
        Some(unsafe { slab_at(self.side, offset) })
    }

    /// The first byte of the unit that `slab` describes.
    #[inline]
    pub(crate) fn unit_of(&self, slab: &Slab) -> *mut u8 {
        let index = (core::ptr::from_ref(slab) as usize - self.side as usize) / UNIT_SIDE;
        core::ptr::with_exposed_provenance_mut(self.base + index * UNIT)
    }
}

/// The description of the unit `offset` bytes into the span. Safety: `side` is the side table and `offset`
/// lies within the span.
#[inline(always)]
pub(crate) unsafe fn slab_at(side: *mut u8, offset: usize) -> &'static Slab {
    let entry = (offset >> SIDE_SHIFT) & !(UNIT_SIDE - 1);
    // SAFETY: the entry lies in the side table, as `offset` lies in the span; entries are UNIT_SIDE bytes,
    // aligned, and a zeroed one is a Slab.
    unsafe { &*side.add(entry).cast::<Slab>() }
}

/// The granule index of `block` in its unit.
#[inline]
pub(crate) fn granule_of(block: *const u8) -> u32 {
    ((block as usize % UNIT) / crate::class::GRANULE) as u32
}

/// The block at `granule` of the unit that starts at `unit`.
#[inline]
pub(crate) fn block_at(unit: *mut u8, granule: u32) -> *mut Block {
    unit.wrapping_add(granule as usize * crate::class::GRANULE).cast()
}
