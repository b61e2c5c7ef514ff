//! A slab: 64 KiB of blocks of one class, and the 128 bytes that describe it.
//!
//! The description lives in the page layer's side table, found from any block address by arithmetic; the unit itself
//! holds nothing but blocks. So a slab of 4096-byte blocks has sixteen of them, page-aligned, and giving a unit back
//! touches none of its pages.
//!
//! ```text
//! unit     ┌─────┬─────┬─────┬─ ─ ─┬─────┬ ─ ─ ─ ─ ─ ─ ─ ┐
//!          │  0  │  1  │  2  │     │ n-1 │ not yet carved  n = carved
//!          └─────┴─────┴─────┴─ ─ ─┴─────┴ ─ ─ ─ ─ ─ ─ ─ ┘
//! ```
//!
//! A slab is **awake** when it waits on its class's list with free blocks, **asleep** when all its free blocks have
//! been handed to the heap (and few have come back). One counter serves both: `needed` counts down with every free by
//! the owner, and zero means *completely free* for an awake slab and *worth waking* for one asleep. So the fast path
//! of `free` tests one thing.
//!
//! Who touches what: the first cache line belongs to the owning heap's thread, apart from `owner`, `bytes` and
//! `remote_wake`, which everybody reads and which only change while no block is out; the second is shared.

use crate::class::{SHAPES, Shape};
use crate::heap::Heap;
use crate::remote::{RemoteList, Wakeable};
use core::cell::Cell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use vellum_pages::{PAGE, UNIT, UNIT_SIDE};

/// A free block: its first word leads to the next.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Block {
    /// The next free block of the same list.
    pub next: Cell<*mut Block>,
}

/// The description of one unit. All zero means: not a slab.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Slab {
    /// Blocks the owner has freed since the last time the list was taken.
    pub free: Cell<*mut Block>,
    /// The heap the slab belongs to; null when the unit is not a slab.
    pub owner: AtomicPtr<Heap>,
    /// Frees until something happens. Only the owner's thread writes it, or who holds the owner's gate.
    pub needed: AtomicU32,
    /// Bytes of a block.
    pub bytes: Cell<u32>,
    /// Blocks laid out so far.
    pub carved: Cell<u16>,
    /// The value `needed` had when the slab went to sleep.
    pub slept: Cell<u16>,
    /// `Shape::remote_wake`, here so that a freeing thread needs no table.
    pub remote_wake: Cell<u16>,
    /// The size class.
    pub class: Cell<u8>,
    /// Whether the slab is on its class's list.
    pub awake: Cell<bool>,
    /// Neighbours on the class's list.
    pub next: Cell<*const Slab>,
    /// See `next`.
    pub previous: Cell<*const Slab>,
    _owners_line_ends: [u64; 2],
    /// Blocks freed by other threads.
    pub remote: RemoteList,
    /// The next slab on the owner's stack of woken slabs.
    pub told_next: AtomicPtr<Slab>,
    _shared_line_ends: [u64; 6],
}

const _: () = assert!(size_of::<Slab>() == UNIT_SIDE);
const _: () = assert!(core::mem::offset_of!(Slab, remote) == 64);
const _: () = assert!(size_of::<[AtomicU32; UNIT / PAGE]>() == 64);

impl Wakeable for Slab {
    fn successor(&self) -> &AtomicPtr<Slab> {
        &self.told_next
    }
}

impl Slab {
    /// The shape of the slab's class.
    #[inline]
    pub(crate) fn shape(&self) -> &'static Shape {
        &SHAPES[usize::from(self.class.get())]
    }

    /// Makes an idle unit a slab of `class` owned by `owner`, with no block carved.
    pub(crate) fn begin(&self, owner: &Heap, class: usize) {
        let shape = &SHAPES[class];
        debug_assert!(
            self.lengths().iter().all(|length| length.load(Relaxed) == 0),
            "a large block was here"
        );
        self.free.set(null_mut());
        self.needed.store(0, Relaxed);
        self.bytes.set(shape.bytes);
        self.carved.set(0);
        self.slept.set(0);
        self.remote_wake.set(shape.remote_wake);
        self.class.set(class as u8);
        self.awake.set(false);
        self.owner.store(core::ptr::from_ref(owner).cast_mut(), Release);
    }

    /// For a unit that is no slab: a word for each of its pages, zero at first, which the slab's second line gives up
    /// its place for.
    #[inline]
    pub(crate) fn lengths(&self) -> &[AtomicU32; UNIT / PAGE] {
        // SAFETY: the second line is 64 bytes of atomics and padding that nobody uses while the unit is no slab.
        unsafe { &*(&raw const self.remote).cast() }
    }

    /// Makes the slab an idle unit again. No block of it is in use, on a remote list or in a heap's list.
    pub(crate) fn end(&self) {
        self.owner.store(null_mut(), Release);
        self.told_next.store(null_mut(), Relaxed);
        self.free.set(null_mut());
        self.needed.store(0, Relaxed);
        self.carved.set(0);
        self.awake.set(false);
    }

    /// Blocks that are in use, in a heap's list, or freed by others and not yet credited.
    #[inline]
    pub(crate) fn live(&self) -> u32 {
        // Acquire: pairs with the store in `free`, so that the helper, where it finds nothing of the thread's left, finds the list complete.
        let needed = self.needed.load(Acquire);
        if self.awake.get() {
            needed
        } else {
            u32::from(self.carved.get()) + needed - u32::from(self.slept.get())
        }
    }

    /// Whether others have freed all that is live, so that the owner's thread has no block left here to free or to allocate, and is done with those it has
    /// freed. With none of others', what is live is that thread's own affair: it may be on its way to settle.
    pub(crate) fn is_finished(&self) -> bool {
        let remote = self.remote.blocks();
        remote > 0 && remote == self.live()
    }

    /// Marks the slab asleep, its free blocks having been taken.
    #[inline]
    pub(crate) fn sleep(&self) {
        let needed = self.shape().wake.min(self.carved.get());
        self.slept.set(needed);
        self.awake.set(false);
        self.needed.store(u32::from(needed), Relaxed);
    }
}
