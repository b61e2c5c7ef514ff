//! A call's request: its operation, and its number of bytes.

use vellum_wire::operation::{Kind, Operation};

/// An operation and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    /// 0 where the call asks for no memory, or does not say how much.
    pub(crate) bytes: u64,
}

impl Asked {
    /// An operation that asks for no memory, or does not say how much.
    pub(crate) const fn of(kind: Kind) -> Asked {
        Asked { operation: Operation::of(kind), bytes: 0 }
    }

    /// An operation that asks for `bytes` bytes and has no classes of sizes.
    pub(crate) const fn over(kind: Kind, bytes: usize) -> Asked {
        Asked { operation: Operation::of(kind), bytes: possible(bytes) }
    }

    #[inline(always)]
    pub(crate) const fn sized(kind: Kind, bytes: usize) -> Asked {
        Asked { operation: Operation::sized(kind, bytes), bytes: possible(bytes) }
    }
}

/// What no allocator gives is not counted: products that overflowed, and negative sizes.
#[inline(always)]
pub(crate) const fn possible(bytes: usize) -> u64 {
    if bytes <= isize::MAX as usize { bytes as u64 } else { 0 }
}
