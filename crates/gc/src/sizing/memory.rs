//! The memory available to the heap, for the policy `knee`.

/// See the head of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Bytes of the heap that may be resident; `usize::MAX` if that need not be known: memory is plenty.
    pub target: usize,
    /// Whether these were given to the heap's job to be used, by a control group's limit or a governor.
    pub is_given: bool,
    /// Bytes that may be paged out beyond these; 0 where there is nowhere to page to, so that too large a
    /// heap would be killed.
    pub paged: usize,
    /// The cost of having a page back, in nanoseconds.
    pub refault_ns: u64,
}

impl Memory {
    /// There is enough.
    pub(crate) const PLENTY: Memory = Memory { target: usize::MAX, is_given: false, paged: 0, refault_ns: 0 };
}
