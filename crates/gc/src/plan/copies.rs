//! Room for copies, and where the next ones go: the state of plans that move, between and during collections.

use crate::space::block::{Address, Block};
use crate::space::survivor_statistics::STEP_DENSE;
use core::ptr::null;
use vellum_pages::Buffer;
use vellum_pages::Plain;

/// Where the next copies of a slot go.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub next: usize,
    pub end: usize,
    pub block: *const Block,
}

// SAFETY: a record of numbers and of a pointer that owns nothing.
unsafe impl Plain for Run {}

pub(crate) const NO_RUN: Run = Run { next: 0, end: 0, block: null() };

/// A plan's choice of the objects to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    /// Blocks are emptied whether it is worth it or not.
    pub all: bool,
    /// Blocks of this step of density and above are not emptied, unless all are.
    pub dense: usize,
    /// The survivors expected in a block decide for every slot, not only where survivors lie scattered.
    pub whole_slots: bool,
    /// Copies are to lie apart from new objects, at the cold end of the pool. The bytes to copy are known
    /// exactly then.
    pub beside_new: bool,
}

pub(crate) struct Copies {
    /// The choice of the current collection, or else of the last one.
    pub what: Copying,
    /// Blocks below this step are emptied; 0: none.
    pub step: usize,
    /// Copies go to holes of old blocks first: the collection is a minor one.
    pub fills: bool,
    /// Nothing is emptied, as too many untyped objects would have to be searched.
    pub too_dear: bool,
    /// Free blocks, known to the address table as nobody's.
    pub ready: Buffer<Address>,
    /// Descriptors of the blocks that copies went to.
    pub targets: Buffer<Address>,
    /// Where copies of each slot go: as many as there were slots when room for copies was made last.
    pub runs: Buffer<Run>,
    /// Fields in the heap that lead to objects which a minor collection left where they were.
    pub holders: Buffer<Address>,
    /// There was no room in `holders` for some of them.
    pub lost_holders: bool,
    /// Bytes copied since the heap began, and the same at the beginning of this collection.
    pub bytes: u64,
    pub before: u64,
}

impl Copies {
    pub(crate) const fn new() -> Copies {
        Copies {
            what: Copying { all: false, dense: STEP_DENSE, whole_slots: false, beside_new: false },
            step: 0,
            fills: false,
            too_dear: false,
            ready: Buffer::new(),
            targets: Buffer::new(),
            runs: Buffer::new(),
            holders: Buffer::new(),
            lost_holders: false,
            bytes: 0,
            before: 0,
        }
    }

    /// Bytes the lists take.
    pub(crate) fn taken(&self) -> usize {
        (self.ready.capacity() + self.targets.capacity() + self.holders.capacity()) * size_of::<Address>()
    }

    /// Whether the collection under way moves anything.
    pub(crate) fn any(&self) -> bool {
        self.step > 0
    }
}
