//! Size classes of small objects, and the numbers of the slots.
//!
//! A *slot* is the set of all objects of one size and one arrangement of pointers; a block belongs to one
//! slot. An object's kind therefore follows from its address and costs no header word. Smith and Morrisett
//! 1998 measured up to 20 % of client time for header words (Figure 2).
//!
//! ```text
//! slot     0   1 ..= 48          64 + (1 ..= 48)     128 ..
//!          -   untyped, by class  atomic, by class    typed: the next number for a new size and layout
//! ```
//!
//! Classes 1 to 32 are multiples of a granule (16 bytes), up to 512 bytes: the inline functions of
//! `vellum_gc.h` need no table. Above 512 bytes each doubling of the size has four classes.

pub use crate::process::local::SLOTS_MAX;

/// Bytes of a granule: sizes and alignments of small objects are multiples of it.
pub const GRANULE: usize = 16;
/// Bytes of a word: where pointers lie.
pub const WORD: usize = 8;
/// `log2` of [`BLOCK`].
pub(crate) const BLOCK_SHIFT: u32 = 14;
/// Bytes of a block, which is cut into objects of one slot; the step of the address table.
pub const BLOCK: usize = 1 << BLOCK_SHIFT;
/// The largest object cut from a block; larger ones have pages of their own.
pub const SMALL_MAX: usize = 4 << 10;
/// The largest object whose class is its number of granules.
pub const EXACT_MAX: usize = 512;
/// The first slot of atomic objects.
pub const ATOMIC_FIRST: usize = 64;
/// The first slot of typed objects.
pub const TYPED_FIRST: usize = 128;
/// The largest alignment served.
pub const ALIGN_MAX: usize = BLOCK;

const EXACT_CLASSES: usize = EXACT_MAX / GRANULE;
/// Classes for each doubling of the size, above the exact ones.
const STEPS: usize = 4;
pub(crate) const CLASS_LAST: usize = EXACT_CLASSES + STEPS * (SMALL_MAX / EXACT_MAX).ilog2() as usize;

const _: () = assert!(CLASS_LAST < ATOMIC_FIRST && ATOMIC_FIRST + CLASS_LAST < TYPED_FIRST);
const _: () = assert!(BLOCK / SMALL_MAX >= 4);

/// The class of objects of `bytes` bytes, 1 to [`SMALL_MAX`] (0 is taken for 1).
#[inline]
pub(crate) const fn class_of(bytes: usize) -> usize {
    if bytes <= EXACT_MAX {
        return if bytes == 0 { 1 } else { bytes.div_ceil(GRANULE) };
    }
    let last = bytes - 1;
    let doubling = (last.ilog2() - EXACT_MAX.ilog2()) as usize;
    let step = (last >> (EXACT_MAX.ilog2() as usize + doubling - STEPS.ilog2() as usize)) % STEPS;
    EXACT_CLASSES + doubling * STEPS + step + 1
}

#[inline]
pub(crate) const fn bytes_of(class: usize) -> usize {
    if class <= EXACT_CLASSES {
        return class * GRANULE;
    }
    let above = class - EXACT_CLASSES - 1;
    let doubling = EXACT_MAX << (above / STEPS);
    doubling + doubling / STEPS * (above % STEPS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_least_that_holds_its_sizes() {
        for bytes in 1..=SMALL_MAX {
            let class = class_of(bytes);
            assert!(bytes_of(class) >= bytes, "{bytes} in class {class}");
            assert!(class == 1 || bytes_of(class - 1) < bytes, "{bytes} would fit class {}", class - 1);
            assert!(bytes_of(class).is_multiple_of(GRANULE));
        }
        assert_eq!(class_of(SMALL_MAX), CLASS_LAST);
    }
}
