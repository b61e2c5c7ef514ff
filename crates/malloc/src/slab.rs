//! A slab: 64 KiB of blocks of one class, and the 128 bytes that describe it.
//!
//! The description lies in the page layer's side table, at an address computed from any block's address. The
//! 64 KiB (the unit) hold only blocks. A slab of 4096-byte blocks therefore has sixteen blocks, each
//! page-aligned. Returning a unit touches none of its pages.
//!
//! ```text
//! unit     ┌─────┬─────┬─────┬─ ─ ─┬─────┬ ─ ─ ─ ─ ─ ─ ─ ┐
//!          │  0  │  1  │  2  │     │ n-1 │ not yet carved  n = carved, the blocks laid out so far
//!          └─────┴─────┴─────┴─ ─ ─┴─────┴ ─ ─ ─ ─ ─ ─ ─ ┘
//! ```
//!
//! A slab is **awake** while it is on its class's list with free blocks. It falls **asleep** when the heap
//! takes its free blocks, and wakes when enough blocks have come back. The counter `needed` falls with every
//! free by the owner. At zero, an awake slab is *completely free*, and a slab asleep must *wake*. `free` thus
//! tests only one counter.
//!
//! | fields | read by | written by |
//! | --- | --- | --- |
//! | `owner`, `bytes`, `inverse`, `unclean`, `remote_wake` | every thread | the owner, while no block is in use |
//! | `limit`, `whole_limit`, `vacated` | every thread | the owner, or the holder of its gate |
//! | the rest of the first cache line; `kept`, `walked` | the owner | the owner |
//! | the rest of the second cache line | every thread | every thread |

use crate::class::{SHAPES, Shape};
use crate::remote::{RemoteList, Wakeable};
pub(crate) use crate::seal::Block;
use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr, AtomicU16, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use vellum_pages::{PAGE, UNIT, UNIT_SIDE};

/// A heap, of which this file uses only the address.
#[derive(Debug)]
pub(crate) enum AnyHeap {}

/// The description of one unit. All zero means: not a slab.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Slab {
    /// Blocks the owner has freed since the last time the list was taken.
    pub free: Cell<*mut Block>,
    /// The heap the slab belongs to; null when the unit is not a slab.
    pub owner: AtomicPtr<AnyHeap>,
    /// Frees until something happens. Only the owner's thread writes it, or who holds the owner's gate.
    pub needed: AtomicU32,
    pub bytes: Cell<u32>,
    /// Blocks laid out so far.
    pub carved: Cell<u16>,
    /// The value `needed` had when the slab went to sleep.
    pub slept: Cell<u16>,
    /// `Shape::remote_wake`, here so that a freeing thread needs no table.
    pub remote_wake: Cell<u8>,
    /// The state that passes left: see [`crate::scavenge`].
    pub(crate) rest: Rest,
    pub class: Cell<u8>,
    /// True if the slab is on its class's list.
    pub awake: Cell<bool>,
    /// Neighbours on the class's list.
    pub next: Cell<*const Slab>,
    pub previous: Cell<*const Slab>,
    /// `Shape::inverse`.
    pub inverse: Cell<u32>,
    /// `Shape::limit` of `carved`; 0 while pages are vacated, so that each free is checked again.
    pub limit: AtomicU32,
    /// True if blocks were handed out that were on no list before: they may hold old seals.
    pub unclean: Cell<bool>,
    /// True if the blocks have tails: see `harden`.
    pub hardened: Cell<bool>,
    /// The pages that have gone back to the kernel, a bit each: see `vacated`.
    pub vacated: AtomicU16,
    /// `Shape::limit` of `carved`.
    pub whole_limit: AtomicU32,
    /// Blocks freed by other threads.
    pub remote: RemoteList,
    /// The next slab on the owner's stack of woken slabs.
    pub next_woken: AtomicPtr<Slab>,
    /// Free blocks besides those of `free`, while pages are vacated. The owner's, as the first line.
    pub kept: Cell<*mut Block>,
    /// The number of free blocks when their lists were last walked to find pages that can go; 0 once blocks
    /// have been taken. The owner's, too.
    pub(crate) walked: Cell<u32>,
    _shared_line_ends: [u32; 9],
}

/// The state of a slab between two passes; one byte, as the slab's line is full.
#[derive(Debug)]
pub(crate) struct Rest(Cell<u8>);

impl Rest {
    /// A pass has met it since it woke.
    pub(crate) const MET: u8 = 1;
    /// The pages behind the blocks that were laid out have been returned since the last of these was.
    pub(crate) const BARE: u8 = 2;
    /// Some vacated pages have frames still, as they are locked into memory.
    pub(crate) const LOCKED: u8 = 4;

    pub(crate) fn has(&self, mark: u8) -> bool {
        self.0.get() & mark != 0
    }

    /// Sets a mark; true if it was set before.
    pub(crate) fn set(&self, mark: u8) -> bool {
        self.0.replace(self.0.get() | mark) & mark != 0
    }

    /// Clears marks; true if one of them was set.
    pub(crate) fn clear(&self, marks: u8) -> bool {
        self.0.replace(self.0.get() & !marks) & marks != 0
    }
}

const _: () = assert!(size_of::<Slab>() == UNIT_SIDE);
const _: () = assert!(offset_of!(Slab, remote) == 64);
const _: () = assert!(size_of::<[AtomicU32; UNIT / PAGE]>() == 64);

impl Wakeable for Slab {
    fn successor(&self) -> &AtomicPtr<Slab> {
        &self.next_woken
    }
}

impl Slab {
    #[inline]
    pub(crate) fn shape(&self) -> &'static Shape {
        &SHAPES[usize::from(self.class.get())]
    }

    /// Makes an idle unit a slab of `class` owned by `owner`, with no block carved.
    pub(crate) fn begin(&self, owner: *const AnyHeap, class: usize) {
        let shape = &SHAPES[class];
        debug_assert!(
            self.lengths().iter().all(|length| length.load(Relaxed) == 0),
            "a large block was here"
        );
        self.free.set(null_mut());
        self.needed.store(0, Relaxed);
        self.bytes.set(shape.bytes);
        self.inverse.set(shape.inverse);
        self.unclean.set(false);
        self.hardened.set(crate::mode::is_hardened());
        self.class.set(class as u8);
        self.set_carved(0);
        self.slept.set(0);
        self.rest.clear(u8::MAX);
        self.remote_wake.set(shape.remote_wake);
        self.awake.set(false);
        self.owner.store(owner.cast_mut(), Release);
    }

    #[inline(always)]
    pub(crate) fn is_slab(&self) -> bool {
        !self.owner.load(Relaxed).is_null()
    }

    /// For a unit that is no slab: a word for each page, zero at first, in place of a slab's second line.
    #[inline]
    pub(crate) fn lengths(&self) -> &[AtomicU32; UNIT / PAGE] {
        // SAFETY: the second line is 64 bytes of atomics and padding, unused while the unit is no slab.
        unsafe { &*(&raw const self.remote).cast() }
    }

    /// Makes the slab an idle unit again. No block of it is in use, on a remote list or in a heap's list.
    pub(crate) fn end(&self) {
        self.owner.store(null_mut(), Release);
        self.next_woken.store(null_mut(), Relaxed);
        self.free.set(null_mut());
        self.kept.set(null_mut());
        self.walked.set(0);
        self.needed.store(0, Relaxed);
        self.vacated.store(0, Relaxed);
        self.set_carved(0);
        self.awake.set(false);
    }

    pub(crate) fn set_carved(&self, blocks: u16) {
        self.carved.set(blocks);
        let limit = self.shape().limit(blocks);
        self.whole_limit.store(limit, Relaxed);
        self.limit.store(if self.vacated.load(Relaxed) == 0 { limit } else { 0 }, Relaxed);
    }

    /// True if a block that has been laid out starts at `address`, which lies in the slab's unit.
    #[inline]
    pub(crate) fn is_start(&self, address: *const u8) -> bool {
        self.product(address) < self.whole_limit.load(Relaxed)
    }

    /// The same as [`Slab::is_start`], in an instruction less, and false where pages are vacated. Safety: the
    /// slab belongs to the calling thread's heap.
    #[inline(always)]
    pub(crate) unsafe fn is_own_start(&self, address: *const u8) -> bool {
        // SAFETY: an aligned word, read at one go. Only the owner's thread writes it, or who holds its gate:
        // while blocks are out, that writes 0 alone.
        self.product(address) < unsafe { self.limit.as_ptr().read() }
    }

    #[inline(always)]
    fn product(&self, address: *const u8) -> u32 {
        let offset = (address as usize % UNIT) as u32;
        offset.wrapping_mul(self.inverse.get())
    }

    /// Blocks that are in use, in a heap's list, or freed by others and not yet credited.
    #[inline]
    pub(crate) fn live(&self) -> u32 {
        // Acquire: pairs with the count in `free`, so that the helper, where it finds nothing of the thread's
        // left, finds the list complete.
        let needed = self.needed.load(Acquire);
        if self.awake.get() {
            needed
        } else {
            u32::from(self.carved.get()) + needed - u32::from(self.slept.get())
        }
    }

    /// True if other threads have freed all live blocks: the owner's thread has no block left here to free or
    /// to allocate. Without blocks of others this is false, as the owner's thread may be about to place the
    /// slab.
    pub(crate) fn is_finished(&self) -> bool {
        let remote = self.remote.blocks();
        remote > 0 && remote == self.live()
    }

    /// Marks the slab asleep, its free blocks having been taken.
    #[inline]
    pub(crate) fn sleep(&self) {
        let needed = self.shape().wake.min(self.carved.get());
        self.slept.set(needed);
        self.walked.set(0);
        self.awake.set(false);
        self.needed.store(u32::from(needed), Relaxed);
    }
}
