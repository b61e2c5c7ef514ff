//! Aligned blocks.
//!
//! Units begin at multiples of 64 KiB and their blocks at multiples of the block size, so every block of a
//! class whose size is a multiple of the alignment is aligned. Anything else is an extent, aligned by the
//! page layer.

use crate::alloc::malloc;
use crate::class::{GRANULE, REQUEST_MAX, aligned_class_of, bytes_of};
use crate::errno::out_of_memory;
use crate::{harden, large, mode, passthrough};
use vellum_pages::PAGE;

/// The largest alignment the page layer gives.
pub(crate) const ALIGN_MAX: usize = 1 << 30;

/// Allocates `bytes` bytes at a multiple of `align`, a power of two; null (and `ENOMEM`) when there are none.
pub fn aligned(align: usize, bytes: usize) -> *mut u8 {
    debug_assert!(align.is_power_of_two());
    if align <= GRANULE {
        return malloc(bytes);
    }
    if let Some(next) = passthrough::next() {
        return large::passthrough_aligned(next, align, bytes);
    }
    if !mode::is_hardened()
        && align <= PAGE
        && bytes <= REQUEST_MAX
        && let Some(class) = aligned_class_of(bytes, align)
    {
        return malloc(bytes_of(class));
    }
    if mode::is_hardened() && align <= ALIGN_MAX {
        return harden::allocate(align, bytes);
    }
    if align > ALIGN_MAX {
        return out_of_memory();
    }
    mode::consider(large::block(bytes, align, false), bytes)
}
