//! The kinds of memory operations, and their size classes.
//!
//! An operation is a kind and, for allocations, a size class: powers of four, from 16 bytes. It is packed in
//! 16 bits: the kind in the low byte, the class plus one (0: none) in the high one. The number of a kind
//! never changes its meaning; new kinds are appended.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $id:literal;)*) => {
        /// A kind of memory operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name),* }

        impl Kind {
            /// Every kind, in the order of their numbers.
            pub const ALL: &'static [Kind] = &[$(Kind::$name),*];

            /// The kind in words, as printed.
            pub const fn words(self) -> &'static str {
                match self { $(Kind::$name => $text),* }
            }

            /// The stable name used in JSON.
            pub const fn id(self) -> &'static str {
                match self { $(Kind::$name => $id),* }
            }
        }
    };
}

kinds! {
    /// `malloc`, and `realloc` of null.
    Malloc = "malloc", "malloc";
    /// `calloc`.
    Calloc = "calloc", "calloc";
    /// `free` and similar functions, of a block.
    Free = "free", "free";
    /// `realloc` to a size for which the block had space.
    ReallocKept = "realloc kept", "realloc_kept";
    /// `realloc` that grew the block in place.
    ReallocGrown = "realloc grown", "realloc_grown";
    /// `realloc` to another place by moving page tables.
    ReallocMoved = "realloc moved", "realloc_moved";
    /// `realloc` to another place by copying.
    ReallocCopied = "realloc copied", "realloc_copied";
    /// `realloc` to another place, in an allocator that does not report the method.
    ReallocElsewhere = "realloc elsewhere", "realloc_elsewhere";
    /// `aligned_alloc`, `posix_memalign`, `memalign`, `valloc`, `pvalloc`.
    Aligned = "aligned alloc", "aligned";
    /// Every form of `operator new`.
    New = "new", "new";
    /// Every form of `operator delete`, of a block.
    Delete = "delete", "delete";
    /// `mmap`.
    Mmap = "mmap", "mmap";
    /// `munmap`.
    Munmap = "munmap", "munmap";
    /// `mremap`.
    Mremap = "mremap", "mremap";
    /// `madvise`.
    Madvise = "madvise", "madvise";
    /// `mprotect`.
    Mprotect = "mprotect", "mprotect";
    /// `malloc_trim` and `vel_trim`.
    Trim = "trim", "trim";
    /// `vel_malloc_batch`, `vel_malloc_sizes`: one for each call, not each block.
    BatchMalloc = "malloc batch", "malloc_batch";
    /// `vel_free_batch`: one for each call.
    BatchFree = "free batch", "free_batch";
    /// `vel_realloc_batch`: one for each call.
    BatchRealloc = "realloc batch", "realloc_batch";
    /// `vel_relocate`.
    Relocate = "relocate", "relocate";
    /// `vel_swap`.
    Swap = "swap", "swap";
    /// `vel_pages_alloc`.
    PagesAlloc = "pages alloc", "pages_alloc";
    /// `vel_pages_free`.
    PagesFree = "pages free", "pages_free";
    /// `vel_pages_resize`.
    PagesResize = "pages resize", "pages_resize";
    /// `free` of null.
    FreeNull = "free(NULL)", "free_null";
    /// A page fault served without a read from a device.
    MinorFault = "page fault", "fault_minor";
    /// A page fault that needed a read.
    MajorFault = "page fault (major)", "fault_major";
}

/// The number of size classes.
pub const SIZE_CLASSES: usize = 13;
/// The largest size of the smallest class.
const CLASS_BYTES_MIN: usize = 16;

/// The largest size whose class is read from a table; most requests are smaller.
const FINE_MAX: usize = 1024;
const FINE_CLASSES: [u8; FINE_MAX / CLASS_BYTES_MIN + 1] = {
    let mut classes = [0; FINE_MAX / CLASS_BYTES_MIN + 1];
    let mut step = 0;
    while step < classes.len() {
        classes[step] = size_class(step * CLASS_BYTES_MIN) as u8;
        step += 1;
    }
    classes
};

/// A memory operation: a kind, with a size class if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(u16);

impl Operation {
    /// An operation whose size does not matter.
    pub const fn of(kind: Kind) -> Operation {
        Operation(kind as u16)
    }

    /// An operation that requests `bytes` bytes.
    #[inline]
    pub const fn sized(kind: Kind, bytes: usize) -> Operation {
        let class = if bytes <= FINE_MAX {
            FINE_CLASSES[bytes.div_ceil(CLASS_BYTES_MIN)]
        } else {
            size_class(bytes) as u8
        };
        Operation(kind as u16 | (class as u16 + 1) << 8)
    }

    /// The operation as a number.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The operation with these `bits`, if this version has it.
    pub fn from_bits(bits: u16) -> Option<Operation> {
        let known = usize::from(bits & 0xff) < Kind::ALL.len() && usize::from(bits >> 8) <= SIZE_CLASSES;
        known.then_some(Operation(bits))
    }

    /// The kind.
    pub fn kind(self) -> Kind {
        Kind::ALL[usize::from(self.0 & 0xff)]
    }

    /// The largest size of its class in bytes, if it has a class. The inner value is `None` for the last
    /// class, which has no largest size.
    pub const fn class_max(self) -> Option<Option<usize>> {
        match self.0 >> 8 {
            0 => None,
            class if class as usize == SIZE_CLASSES => Some(None),
            class => Some(Some(CLASS_BYTES_MIN << (2 * (class - 1)))),
        }
    }

    /// The smallest size of the last class.
    pub const fn beyond_classes() -> usize {
        CLASS_BYTES_MIN << (2 * (SIZE_CLASSES - 2))
    }
}

/// The class of a request for `bytes` bytes: up to 16 B, 64 B, 256 B, 1 KiB, …, 64 MiB, and beyond.
#[inline]
pub const fn size_class(bytes: usize) -> usize {
    let last = if bytes == 0 { 0 } else { bytes - 1 };
    // The number of bits beyond the first class's four. Setting the lowest bit avoids the logarithm of 0.
    let above = ((last >> CLASS_BYTES_MIN.trailing_zeros()) << 1 | 1).ilog2();
    let class = above.div_ceil(2) as usize;
    if class < SIZE_CLASSES { class } else { SIZE_CLASSES - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_four() {
        for (bytes, max) in [
            (0, 16),
            (1, 16),
            (16, 16),
            (17, 64),
            (64, 64),
            (65, 256),
            (256, 256),
            (257, 1024),
            (1 << 20, 1 << 20),
            ((1 << 20) + 1, 4 << 20),
            (64 << 20, 64 << 20),
        ] {
            assert_eq!(Operation::sized(Kind::Malloc, bytes).class_max(), Some(Some(max)), "{bytes}");
        }
        assert_eq!(Operation::beyond_classes(), 64 << 20);
        for bytes in 0..=2 * FINE_MAX {
            let Some(Some(max)) = Operation::sized(Kind::New, bytes).class_max() else {
                panic!("{bytes} has a class")
            };
            assert!(bytes <= max && (max == 16 || bytes > max / 4), "{bytes} up to {max}");
            assert_eq!(Operation::sized(Kind::New, bytes).bits() >> 8, size_class(bytes) as u16 + 1);
        }
        for bytes in [(64 << 20) + 1, usize::MAX] {
            assert_eq!(Operation::sized(Kind::Malloc, bytes).class_max(), Some(None), "{bytes}");
        }
        assert_eq!(Operation::of(Kind::Free).class_max(), None);
    }

    #[test]
    fn operations_convert_to_bits_and_back() {
        for (number, &kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(kind as usize, number);
            for operation in
                [Operation::of(kind), Operation::sized(kind, 100), Operation::sized(kind, usize::MAX)]
            {
                assert_eq!(Operation::from_bits(operation.bits()), Some(operation));
                assert_eq!(operation.kind(), kind);
            }
        }
        assert_eq!(Operation::from_bits(Kind::ALL.len() as u16), None);
        assert_eq!(Operation::from_bits(0xff00), None);
    }
}
