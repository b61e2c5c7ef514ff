//! Finds the holder of a block from its address: a slab, the page layer, the pager or another allocator.

use crate::slab::Slab;
use crate::small::check_live;
use crate::space::Space;
use crate::{foreign, large, paged, small};

/// The holder of the memory at an address.
#[derive(Clone, Copy)]
pub(crate) enum Holder {
    /// A slab.
    Slab(&'static Slab),
    /// The page layer, if a large block starts there; the description of its unit.
    Extent(&'static Slab),
    /// The pager.
    Paged,
    /// Another allocator, or nobody.
    Other,
}

impl Holder {
    #[inline(always)]
    pub(crate) fn of(address: *mut u8) -> Holder {
        match Space::get().slab_of(address) {
            Some(slab) if slab.is_slab() => Holder::Slab(slab),
            Some(unit) => Holder::Extent(unit),
            None if paged::owns(address) => Holder::Paged,
            None => Holder::Other,
        }
    }

    /// Frees the block at `address`, of which this is the holder, or ends the process if there is none.
    /// Safety: the caller gives the block up.
    #[inline(always)]
    pub(crate) unsafe fn free(self, address: *mut u8) {
        // SAFETY: the caller gives the block up; each of these checks that one starts there.
        unsafe {
            match self {
                Holder::Slab(slab) => {
                    check_live("free", slab, address);
                    small::free_remote(slab, address);
                }
                Holder::Extent(unit) => large::free(unit, address),
                Holder::Paged => paged::free(address),
                Holder::Other => foreign::free(address),
            }
        }
    }

    /// The bytes that may be used of the block at `address`, of which this is the holder, or the end of the
    /// process if there is none. Safety: the block is in use.
    #[inline(always)]
    pub(crate) unsafe fn usable_size(self, function: &str, address: *mut u8) -> usize {
        match self {
            Holder::Slab(slab) => {
                // SAFETY: the address lies in the slab's unit.
                unsafe { check_live(function, slab, address) };
                slab.bytes.get() as usize
            }
            Holder::Extent(_) => large::usable_size(function, address),
            Holder::Paged => paged::usable_size(function, address),
            // SAFETY: the block is in use, by this function's condition.
            Holder::Other => unsafe { foreign::usable_size(address) },
        }
    }
}
