//! Size classes: the block sizes. Requests of similar sizes get blocks of one class.
//!
//! Up to [`EXACT_MAX`] there is a class for every 16 bytes. Half of all requests are that small, and a step
//! of 16 wastes less than the header of a boundary-tag allocator. Above, up to [`SMALL_MAX`], each doubling
//! has eight classes, so that at most one ninth of a block is lost. More classes would waste less in blocks
//! and more in partly empty slabs (each slab has one class). Larger blocks are runs of whole pages.
//!
//! ```text
//! class   0        1   2   3  ..  16    17    18  ..  24    25  ..  32    33  ..    64
//! bytes  (16)     16  32  48  .. 256   288   320  .. 512   576  .. 1024  1152 .. 16384
//! ```
//!
//! `malloc` reads the class from one of two tables in the heap ([`crate::heap::Heap::fine`]). One table has
//! an entry for each 16 bytes up to [`FINE_MAX`]. The other has one for each [`COARSE_GRANULE`] bytes above.
//! No branch depends on which of the common sizes is requested. `malloc(0)` needs no test: the list of class
//! 0 is always empty, and the slow path serves the request from class 1.
//!
//! Invariants: `bytes_of(class_of(n)) >= n`; block sizes grow strictly from class 1 on; every block size is a
//! multiple of 16 bytes.

use vellum_pages::{PAGE, UNIT};

/// The unit of block sizes and of their alignment.
pub(crate) const GRANULE: usize = 16;
/// The largest size with a class every [`GRANULE`] bytes.
pub(crate) const EXACT_MAX: usize = 256;
/// The largest size whose class is found by its granules.
pub(crate) const FINE_MAX: usize = 1024;
pub(crate) const FINE: usize = FINE_MAX / GRANULE + 1;
/// The step of the classes above [`FINE_MAX`], of which every one is a multiple.
pub(crate) const COARSE_GRANULE: usize = FINE_MAX / STEPS;
/// The numbers of coarse granules up to [`SMALL_MAX`], of which a size has one less when it is not a
/// multiple.
pub(crate) const COARSE: usize = SMALL_MAX / COARSE_GRANULE;
pub(crate) const SMALL_MAX: usize = 16 << 10;
/// The largest request: differences of pointers into a block must fit, as in the C library.
pub(crate) const REQUEST_MAX: usize = isize::MAX as usize;
/// The number of size classes.
pub const CLASSES: usize = EXACT_CLASSES + STEPS * (SMALL_MAX / EXACT_MAX).ilog2() as usize;

const EXACT_CLASSES: usize = EXACT_MAX / GRANULE + 1;
const STEPS: usize = 8;
const STEPS_LOG2: u32 = STEPS.ilog2();
/// Free blocks that are worth waking a full slab for, at most, and the bytes they may hold back until then.
const WAKE_MAX: usize = 16;
const WAKE_BYTES: usize = 4 << 10;
/// The same for blocks freed by other threads: more, as notifying the owner writes a shared word.
const REMOTE_WAKE_MAX: usize = 64;
const REMOTE_WAKE_BYTES: usize = 4 << 10;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub bytes: u32,
    /// Tests without a division if a block starts at an offset: see [`Shape::limit`].
    pub inverse: u32,
    pub capacity: u16,
    /// Blocks laid out at a time: those of one page, so that unneeded pages are never touched.
    pub carve: u16,
    /// Frees by the owner after which a full slab is used again.
    pub wake: u16,
    /// Frees by other threads after which the freeing thread wakes the slab's owner.
    pub remote_wake: u8,
}

impl Shape {
    /// The bound below which `offset * inverse` (in 32 bits) lies exactly for the offsets of the first
    /// `blocks` blocks.
    ///
    /// With `inverse = floor(2^32 / bytes) + 1`, `inverse * bytes` is `2^32 + e`, `1 <= e <= bytes`. An
    /// offset of `q * bytes + r` gives `q * e + r * inverse`: for `r = 0` that is below `blocks * e` if `q <
    /// blocks`; for `0 < r` it is at least `inverse`, which is above `capacity * e`, and at most `2^32 + e -
    /// inverse + q * e`, which has not wrapped.
    #[inline]
    pub(crate) const fn limit(&self, blocks: u16) -> u32 {
        self.inverse.wrapping_mul(self.bytes) * blocks as u32
    }
}

pub(crate) const SHAPES: &[Shape; CLASSES] = &shapes();

/// The class of a request of more than [`EXACT_MAX`] and at most [`SMALL_MAX`] bytes.
const fn coarse_class_of(bytes: usize) -> usize {
    let last = bytes - 1;
    let log2 = last.ilog2();
    let step = last >> (log2 - STEPS_LOG2);
    STEPS * log2 as usize + step + EXACT_CLASSES - STEPS * (EXACT_MAX.ilog2() as usize + 1)
}

/// The class of a request of at most `SMALL_MAX` bytes.
#[inline]
pub const fn class_of(bytes: usize) -> usize {
    if bytes <= EXACT_MAX { bytes.div_ceil(GRANULE) } else { coarse_class_of(bytes) }
}

/// The bytes of a block of `class`.
pub const fn bytes_of(class: usize) -> usize {
    if class < EXACT_CLASSES {
        return if class == 0 { GRANULE } else { class * GRANULE };
    }
    let index = class - EXACT_CLASSES;
    (STEPS + index % STEPS + 1) << (EXACT_MAX.ilog2() as usize + index / STEPS - STEPS_LOG2 as usize)
}

/// The smallest class of at least `bytes` bytes whose blocks are all aligned to `align` (a power of two, at
/// most a page), if there is one.
pub(crate) fn aligned_class_of(bytes: usize, align: usize) -> Option<usize> {
    let rounded = vellum_sys::round_up(bytes.max(1), align);
    if rounded > SMALL_MAX {
        return None;
    }
    (class_of(rounded)..CLASSES).find(|&class| bytes_of(class).is_multiple_of(align))
}

const fn shapes() -> [Shape; CLASSES] {
    let mut shapes =
        [Shape { bytes: 0, inverse: 0, capacity: 0, carve: 0, wake: 0, remote_wake: 0 }; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let bytes = bytes_of(class);
        let capacity = UNIT / bytes;
        shapes[class] = Shape {
            bytes: bytes as u32,
            inverse: ((1 << 32) / bytes + 1) as u32,
            capacity: capacity as u16,
            carve: at_least_one(PAGE / bytes) as u16,
            wake: at_least_one(at_most(WAKE_BYTES / bytes, WAKE_MAX)) as u16,
            remote_wake: at_least_one(at_most(REMOTE_WAKE_BYTES / bytes, REMOTE_WAKE_MAX)) as u8,
        };
        class += 1;
    }
    shapes
}

const fn at_least_one(count: usize) -> usize {
    if count == 0 { 1 } else { count }
}

const fn at_most(count: usize, most: usize) -> usize {
    if count > most { most } else { count }
}

const _: () = assert!(bytes_of(CLASSES - 1) == SMALL_MAX);
const _: () = assert!(UNIT / GRANULE <= u16::MAX as usize && REMOTE_WAKE_MAX <= u8::MAX as usize);
// A slab whose free blocks have reached neither threshold still has a block in use: see `heap`.
const _: () = {
    let mut class = 0;
    while class < CLASSES {
        let shape = shapes()[class];
        assert!(shape.wake + shape.remote_wake as u16 <= shape.capacity);
        class += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_tightest_class() {
        for bytes in 1..=SMALL_MAX {
            let class = class_of(bytes);
            assert!(bytes_of(class) >= bytes, "{bytes} bytes in class {class}");
            assert!(class == 1 || bytes_of(class - 1) < bytes, "{bytes} bytes in class {class}");
        }
        for bytes in 0..=FINE_MAX {
            assert_eq!(class_of(bytes.div_ceil(GRANULE) * GRANULE), class_of(bytes), "one entry a granule");
        }
        for bytes in FINE_MAX + 1..=SMALL_MAX {
            let whole = bytes.div_ceil(COARSE_GRANULE) * COARSE_GRANULE;
            assert_eq!(class_of(whole), class_of(bytes), "one entry a coarse granule");
        }
        assert_eq!(class_of(0), 0);
        assert_eq!(class_of(SMALL_MAX), CLASSES - 1);
    }

    #[test]
    fn starts_are_told_from_all_other_offsets() {
        for shape in &SHAPES[1..] {
            for blocks in [0, 1, shape.capacity / 2, shape.capacity] {
                for offset in 0..UNIT as u32 {
                    let is_start = offset % shape.bytes == 0 && offset / shape.bytes < u32::from(blocks);
                    let told = offset.wrapping_mul(shape.inverse) < shape.limit(blocks);
                    assert_eq!(told, is_start, "{offset} among {blocks} blocks of {}", shape.bytes);
                }
            }
        }
    }

    #[test]
    fn classes_grow_and_waste_little() {
        for class in 2..CLASSES {
            assert!(bytes_of(class) > bytes_of(class - 1));
            assert_eq!(bytes_of(class) % GRANULE, 0);
        }
        for bytes in EXACT_MAX + 1..=SMALL_MAX {
            let block = bytes_of(class_of(bytes));
            assert!((block - bytes) * 9 <= block, "{bytes} bytes in a block of {block}");
        }
    }

    #[test]
    fn aligned_classes_are_aligned() {
        for shift in 4..=12 {
            let align = 1 << shift;
            for bytes in [1, 17, 100, 270, 1000, 1025, 3000, 4096, 4097, 9000, 16000] {
                if let Some(class) = aligned_class_of(bytes, align) {
                    assert!(
                        bytes_of(class) >= bytes && bytes_of(class).is_multiple_of(align),
                        "{bytes} at {align}"
                    );
                }
            }
        }
        assert_eq!(aligned_class_of(SMALL_MAX + 1, 16), None);
        assert_eq!(aligned_class_of(1, 4096).map(bytes_of), Some(4096));
    }
}
