//! The request that a recorded call makes: its operation, and its number of bytes.

use vellum_wire::operation::{Kind, Operation};

/// An operation and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    /// 0 if the call requests no memory, or its size is unknown.
    pub(crate) bytes: u64,
}

impl Asked {
    /// An operation that requests no memory, or of unknown size.
    pub(crate) const fn of(kind: Kind) -> Asked {
        Asked { operation: Operation::of(kind), bytes: 0 }
    }

    /// An operation of `bytes` bytes without size classes.
    pub(crate) const fn over(kind: Kind, bytes: usize) -> Asked {
        Asked { operation: Operation::of(kind), bytes: possible(bytes) }
    }

    #[inline(always)]
    pub(crate) const fn sized(kind: Kind, bytes: usize) -> Asked {
        Asked { operation: Operation::sized(kind, bytes), bytes: possible(bytes) }
    }
}

/// The bytes of a request that some allocator could grant; 0 for overflowed products and negative sizes.
#[inline(always)]
pub(crate) const fn possible(bytes: usize) -> u64 {
    if bytes <= isize::MAX as usize { bytes as u64 } else { 0 }
}
