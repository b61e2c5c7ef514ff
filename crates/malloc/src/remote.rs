//! Blocks freed by threads that do not own their slab: two lock-free words.
//!
//! Each slab has a [`RemoteList`], a stack of blocks on which any thread pushes and which the owner takes
//! whole; its word also counts the blocks, so that the owner learns how many came back without walking them.
//! Each heap has a [`Woken`] stack of slabs whose lists have grown long enough to be worth a visit.
//!
//! ```text
//! word of a RemoteList   63      33  32    31 .. 16   15 .. 0
//!                       ┌──────────┬──────┬──────────┬─────────────┐
//!                       │    0     │ told │  blocks  │ granule + 1 │   0 in the last field: no block
//!                       └──────────┴──────┴──────────┴─────────────┘
//! ```
//!
//! *told* is set by the push that makes the list long enough; that pusher, and only it, then puts the slab on
//! the heap's stack. [`RemoteList::take`] keeps the bit, [`RemoteList::drain`] clears it and is only called
//! for a slab just taken off the stack. So a slab is on a stack at most once, and a slab with the bit set is
//! still going to be looked at by its pusher: it must not be given back before it has been drained.
//!
//! Blocks behind the head may leave the list without the count learning of it, while the owner's gate is held
//! (`vacated`): the count says how many were freed, the list how many of those can be handed out as they are.
//!
//! Pushing compares and swaps the whole word, taking exchanges it: a block that comes back to the head
//! between a pusher's read and its swap is the right head again, so the usual ABA trouble (of popping one
//! element) cannot arise.
//!
//! The module is written over `loom`'s atomics under `--cfg loom`, where its tests explore the interleavings.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const HEAD: u64 = 0xffff;
const COUNT_SHIFT: u32 = 16;
const COUNT: u64 = 0xffff << COUNT_SHIFT;
const TOLD: u64 = 1 << 32;

/// What the owner found on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The granule index of the newest block, if there is any.
    pub head: Option<u32>,
    /// How many blocks.
    pub blocks: u32,
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The block is on the list.
    Quiet,
    /// The block is on the list, and the caller must put the slab on its owner's [`Woken`] stack.
    Tell,
    /// The block was the head of the list already: it is being freed twice.
    Twice,
}

/// A slab's stack of blocks freed by others.
#[derive(Debug)]
pub(crate) struct RemoteList(AtomicU64);

impl RemoteList {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> RemoteList {
        RemoteList(AtomicU64::new(0))
    }

    /// An empty list.
    #[cfg(loom)]
    pub fn new() -> RemoteList {
        RemoteList(AtomicU64::new(0))
    }

    /// Pushes a chain of `blocks` blocks that starts at granule `first`. `link` must make the chain's last
    /// block point to the given granule (`None`: to nothing); it may be called several times. `wake` is the
    /// length from which the owner is woken.
    #[inline]
    pub(crate) fn push(
        &self,
        first: u32,
        blocks: u32,
        wake: u32,
        mut link: impl FnMut(Option<u32>),
    ) -> Pushed {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let head = head_of(word);
            if head == Some(first) {
                return Pushed::Twice;
            }
            link(head);
            let count = u64::from(blocks_of(word) + blocks);
            let tell = count >= u64::from(wake) && word & TOLD == 0;
            let told = if tell { TOLD } else { word & TOLD };
            let next = told | count << COUNT_SHIFT | u64::from(first + 1);
            match self.0.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return if tell { Pushed::Tell } else { Pushed::Quiet },
                Err(now) => word = now,
            }
        }
    }

    /// Takes every block, for the owner.
    #[inline]
    pub(crate) fn take(&self) -> Taken {
        if self.blocks() == 0 {
            return Taken { head: None, blocks: 0 };
        }
        taken(self.0.fetch_and(TOLD, Ordering::Acquire))
    }

    /// Takes every block of a slab that was just taken off the [`Woken`] stack.
    #[inline]
    pub(crate) fn drain(&self) -> Taken {
        taken(self.0.swap(0, Ordering::Acquire))
    }

    /// Blocks on the list now.
    #[inline]
    pub(crate) fn blocks(&self) -> u32 {
        blocks_of(self.0.load(Ordering::Relaxed))
    }

    /// The list, which stays as it is.
    #[cfg(not(loom))]
    pub(crate) fn peek(&self) -> Taken {
        taken(self.0.load(Ordering::Acquire))
    }

    /// Whether the slab is on, or on its way to, its owner's stack.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.0.load(Ordering::Acquire) & TOLD != 0
    }
}

impl Default for RemoteList {
    fn default() -> Self {
        RemoteList::new()
    }
}

const fn head_of(word: u64) -> Option<u32> {
    match word & HEAD {
        0 => None,
        head => Some(head as u32 - 1),
    }
}

const fn blocks_of(word: u64) -> u32 {
    ((word & COUNT) >> COUNT_SHIFT) as u32
}

const fn taken(word: u64) -> Taken {
    Taken { head: head_of(word), blocks: blocks_of(word) }
}

/// Something that can be put on a [`Woken`] stack.
pub(crate) trait Wakeable: Sized {
    /// The word that holds its successor.
    fn successor(&self) -> &AtomicPtr<Self>;
}

/// A heap's stack of slabs to visit: many push, the owner takes all.
#[derive(Debug)]
pub(crate) struct Woken<T>(AtomicPtr<T>);

impl<T: Wakeable> Woken<T> {
    /// An empty stack.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Woken<T> {
        Woken(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// An empty stack.
    #[cfg(loom)]
    pub fn new() -> Woken<T> {
        Woken(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Pushes `item`, which is on no stack.
    pub(crate) fn push(&self, item: &T) {
        let new = core::ptr::from_ref(item).cast_mut();
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            item.successor().store(head, Ordering::Relaxed);
            match self.0.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Whether nothing is on the stack.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Takes the whole stack: its newest item, which leads to the others.
    pub(crate) fn take(&self) -> *mut T {
        self.0.swap(core::ptr::null_mut(), Ordering::Acquire)
    }
}

impl<T: Wakeable> Default for Woken<T> {
    fn default() -> Self {
        Woken::new()
    }
}
