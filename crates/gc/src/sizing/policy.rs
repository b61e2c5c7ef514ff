//! Sizing policies (when to collect): the trait [`Policy`], its inputs ([`Seen`]) and outputs ([`Sizes`]).

use crate::sizing::rates::Rates;

/// The memory available to the heap, for the policy `knee`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Bytes of the heap that may be resident; `usize::MAX` while memory is plenty.
    pub target: usize,
    /// True if `target` was given to the heap's job for its use, by a cgroup's limit or a governor.
    pub is_given: bool,
    /// Bytes that may be paged out beyond `target`; 0 without paging space, where too large a heap would be
    /// killed.
    pub paged: usize,
    /// The cost of having a page back, in nanoseconds.
    pub refault_ns: u64,
}

impl Memory {
    /// There is enough.
    pub(crate) const PLENTY: Memory = Memory { target: usize::MAX, is_given: false, paged: 0, refault_ns: 0 };
}

/// The findings of a collection that the next one depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Bytes of blocks and large objects.
    pub bytes: usize,
    /// Bytes of objects alive.
    pub live: usize,
    /// Of these, bytes that a collection scans.
    pub scanned: usize,
    /// Bytes of roots.
    pub roots: usize,
    /// Of the live bytes, those in blocks that the next collection should empty.
    pub sparse: usize,
    /// Bytes of young objects that the collection met …
    pub young: usize,
    /// … and the part of them to be copied, at the same rate of survival.
    pub young_to_copy: usize,
    /// The expected cost of the next collection: [`cost_ns`](crate::sizing::limits::cost_ns).
    pub cost_ns: usize,
}

impl Found {
    pub(crate) const NOTHING: Found =
        Found { bytes: 0, live: 0, scanned: 0, roots: 0, sparse: 0, young: 0, young_to_copy: 0, cost_ns: 0 };
}

/// How a plan uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Live objects stay where they are, except for some that the next collection copies.
    InPlace {
        /// Bytes to be copied.
        copies: usize,
    },
    /// An old region to which minor collections add, and a free one.
    Regions {
        /// Bytes that a major collection copies, at most.
        copies: usize,
    },
}

impl Shape {
    /// Regions of which major collections copy every live object.
    pub(crate) const COPIED: Shape = Shape::Regions { copies: usize::MAX };
}

/// The inputs of a policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Bytes that the last major collection found alive.
    pub live: usize,
    /// Bytes of the old region now; after a major collection, the live bytes.
    pub old: usize,
    /// Bytes of the blocks that live objects are spread over.
    pub spread: usize,
    /// How the plan uses memory.
    pub shape: Shape,
    /// The allocation budget before the next major collection, while memory is plenty.
    pub plenty: usize,
    /// The costs of collecting and allocating.
    pub rates: Rates,
    /// The memory available.
    pub memory: Memory,
}

/// How large the regions are until the next collection, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes that may be allocated before the next collection.
    pub free: usize,
    /// The next collection is a major one if the old region has reached this size. Unused without minor ones.
    pub old_max: usize,
}

/// How the last major collection left the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Major {
    /// Bytes alive.
    pub live: usize,
    /// The sizes decided then.
    pub sizes: Sizes,
}

/// Sizes regions. Pure: the sizes depend on the arguments alone.
pub(crate) trait Policy {
    /// The sizes after a collection that has traced the whole heap.
    fn major(&self, seen: &Seen) -> Sizes;

    /// The sizes after a collection of new objects only; `last` is the major one before.
    fn minor(&self, seen: &Seen, last: &Major) -> Sizes;
}

#[cfg(test)]
impl Seen {
    /// A heap of `live` and `old` bytes while memory is plenty.
    pub(crate) fn plain(live: usize, old: usize, shape: Shape) -> Seen {
        Seen { live, old, spread: live, shape, plenty: 0, rates: Rates::UNKNOWN, memory: Memory::PLENTY }
    }
}
