//! Length words: the lengths of large blocks, in the side table, which describes each unit (64 KiB). With
//! them, neither `free` nor `malloc_usable_size` calls the page layer for most blocks. If a unit is no slab,
//! the second half of its description has a word for each page of the unit ([`Slab::lengths`]).
//!
//! | word | meaning for its page |
//! | --- | --- |
//! | 0 | not the start of a block, or only the page layer has the block's length |
//! | n | the start of a block in use of n pages |
//! | n, [`KEPT`] | the start of a freed block of n pages in a magazine ([`crate::magazine`]): a second free is refused |
//! | n, [`SAMPLED`] | the start of a sampled block in use ([`crate::sampling`]), of n pages; of any length if n is 0 |
//! | n, `HARDENED` | the start of a block of the hardened mode, which keeps nothing in magazines |

use crate::slab::Slab;
use crate::space::Space;
use core::sync::atomic::AtomicU32;
use vellum_pages::{PAGE, UNIT};

/// Mark of a block that waits in a magazine.
pub(crate) const KEPT: u32 = 1 << 31;
/// Mark of a sampled block.
pub(crate) const SAMPLED: u32 = 1 << 29;

/// The length word of the block at `address`, if that is page-aligned and lies in no slab.
pub(crate) fn length_of(address: *mut u8) -> Option<&'static AtomicU32> {
    let slab = Space::get().slab_of(address)?;
    length_in(slab, address)
}

pub(crate) fn length_in(slab: &'static Slab, address: *mut u8) -> Option<&'static AtomicU32> {
    (address as usize).is_multiple_of(PAGE).then(|| &slab.lengths()[address as usize % UNIT / PAGE])
}
