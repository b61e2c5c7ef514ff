//! Blocks freed by threads other than their slab's owner, in lock-free stacks of one word each.
//!
//! Each slab has a [`RemoteList`], a stack of blocks: any thread pushes, and the owner takes the whole stack.
//! The list's word has the number of blocks, so that the owner need not count them, and leads to the newest
//! block. The *granule* is the position of that block in its unit (64 KiB). If the last field is 0, the list
//! is empty. Each heap has a [`Woken`] stack of slabs whose lists are long enough for a visit.
//!
//! ```text
//! word of a RemoteList   63      33  32    31 .. 16   15 .. 0
//!                       ┌──────────┬──────┬──────────┬─────────────┐
//!                       │    0     │notif.│  blocks  │ granule + 1 │   notif.: the bit *notified*
//!                       └──────────┴──────┴──────────┴─────────────┘
//! ```
//!
//! - The push that makes the list long enough sets *notified*, and the pushing thread alone then puts the
//!   slab on the heap's stack. [`RemoteList::take`] leaves the bit. [`RemoteList::drain`] clears it, for a
//!   slab that was just taken off the stack. A slab is therefore on a stack at most once, and is not returned
//!   while the bit is set.
//! - While the owner's gate is held, blocks behind the head may leave the list with their pages (`vacated`),
//!   but stay in the count of freed blocks. The blocks still linked are those that can be handed out at once.
//! - A push compares and swaps the whole word, and a take exchanges it. A block that returns to the head
//!   between a push's load and swap is the right head again. There is no ABA problem, which needs pops of
//!   single elements.
//!
//! Under `--cfg loom` the module uses `loom`'s atomics, with which tests explore the interleavings.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const HEAD: u64 = 0xffff;
const COUNT_SHIFT: u32 = 16;
const COUNT: u64 = 0xffff << COUNT_SHIFT;
const NOTIFIED: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The granule index of the newest block, if there is any.
    pub head: Option<u32>,
    pub blocks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The block is on the list.
    Quiet,
    /// The block is on the list, and the caller must put the slab on its owner's [`Woken`] stack.
    Notify,
    /// The block was the head of the list already: it is being freed twice.
    Twice,
}

/// A slab's stack of blocks freed by other threads than the owner.
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
            let notifies = count >= u64::from(wake) && word & NOTIFIED == 0;
            let notified = if notifies { NOTIFIED } else { word & NOTIFIED };
            let next = notified | count << COUNT_SHIFT | u64::from(first + 1);
            match self.0.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return if notifies { Pushed::Notify } else { Pushed::Quiet },
                Err(now) => word = now,
            }
        }
    }

    #[inline]
    pub(crate) fn take(&self) -> Taken {
        if self.blocks() == 0 {
            return Taken { head: None, blocks: 0 };
        }
        taken(self.0.fetch_and(NOTIFIED, Ordering::Acquire))
    }

    /// Takes every block of a slab that was just taken off the [`Woken`] stack.
    #[inline]
    pub(crate) fn drain(&self) -> Taken {
        taken(self.0.swap(0, Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn blocks(&self) -> u32 {
        blocks_of(self.0.load(Ordering::Relaxed))
    }

    /// The blocks of the list, which stay there.
    #[cfg(not(loom))]
    pub(crate) fn peek(&self) -> Taken {
        taken(self.0.load(Ordering::Acquire))
    }

    /// True if the slab is on its owner's stack, or about to be.
    #[inline]
    pub(crate) fn is_notified(&self) -> bool {
        self.0.load(Ordering::Acquire) & NOTIFIED != 0
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

/// A heap's stack of slabs to visit: many threads push, and the owner takes the whole stack.
#[derive(Debug)]
pub(crate) struct Woken<T>(AtomicPtr<T>);

impl<T: Wakeable> Woken<T> {
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
