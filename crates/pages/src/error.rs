//! The errors of the page layer.

use vellum_sys::Addr;

/// There is no memory, or no address space, for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes of the request.
    pub bytes: usize,
}

impl core::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "out of memory: no {} bytes could be had (check RLIMIT_AS, vm.overcommit_memory, vm.max_map_count and the control group's limit)",
            self.bytes
        )
    }
}

impl core::error::Error for OutOfMemory {}

/// The address passed is not the start of a live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misuse {
    /// The page layer never handed this address out.
    NotOurs,
    /// The address lies inside the block that starts at `start`.
    InsideBlock {
        /// The start of the block.
        start: Addr,
    },
    /// The block at this address has been given back already.
    AlreadyFree,
    /// The address is in a mapping that the program made by `mmap`: `munmap` gives that back.
    Mapping,
}

impl core::fmt::Display for Misuse {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Misuse::NotOurs => f.write_str("this address was never handed out"),
            Misuse::InsideBlock { start } => write!(f, "this address is inside the block at {start:?}"),
            Misuse::AlreadyFree => f.write_str("this block has been freed already"),
            Misuse::Mapping => f.write_str("this memory was mapped by mmap: munmap gives it back"),
        }
    }
}

impl core::error::Error for Misuse {}
