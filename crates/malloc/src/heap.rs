//! A heap: the lists of memory that one thread allocates from.
//!
//! ```text
//! Heap   free[c] ──▶ block ──▶ block ──▶ …     the list malloc pops from: blocks of one slab
//!        bins[c] ──▶ awake slabs (with free blocks), and the slab being carved into blocks
//!        spares      idle units (64 KiB), kept for the next slab
//!        woken   ──▶ slabs to which other threads have returned blocks
//! ```
//!
//! `malloc` pops `free[c]`, where `c` is the size class; `free` pushes on the list of the block's slab. An
//! empty `free[c]` is filled from the first source that has blocks: (1) an awake slab (its whole list), (2) a
//! slab of an ended thread's heap, (3) one more page of the class's newest slab, (4) a new unit. This order
//! uses touched memory first. Blocks in `free[c]` count as in use, so that their slab is not returned.
//!
//! A slab whose free blocks were taken is *asleep*; it wakes after a few frees
//! ([`Shape::wake`](crate::class::Shape)). If `free[c]` is empty then, the slab's free blocks go there at
//! once. Thus a program that allocates and frees in turn reuses the same few blocks. A free slab is returned.
//!
//! # Invariants
//! - Every block of `free[c]` belongs to one slab of class `c`.
//! - A slab is on its class's list exactly while it is awake. A slab with vacated pages ([`crate::vacated`])
//!   is awake.
//! - A slab is returned only if it has no block in use and none on its remote list, and is not *notified*
//!   ([`crate::remote`]).
//! - A slab asleep has a block in use: frees by the owner or by others would have woken it at a threshold,
//!   and both thresholds together are at most the capacity. Exception: a slab being carved (see `sweep`).

use crate::class::{CLASSES, COARSE, COARSE_GRANULE, FINE, GRANULE, SHAPES, class_of};
use crate::countdown::Countdown;
use crate::gate::Gate;
use crate::magazine::Magazine;
use crate::pass::{OWNERS_SLABS, Pass, VISITORS_SLABS};
use crate::remote::Woken;
use crate::slab::{AnyHeap, Block, Rest, Slab};
use crate::space::{Space, block_at};
use crate::state::MALLOC;
use crate::{arch, mode, registry, units};
use core::cell::Cell;
use core::mem::offset_of;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering::Acquire, Ordering::Relaxed};
use vellum_pages::{PAGE, Pages, UNIT};
use vellum_wire::Counter;

pub(crate) const HEAP_BYTES: usize = PAGE;
/// Idle units a heap keeps.
const SPARES: usize = 8;
/// Slabs of a class returned in a row that mean the end of a burst: its list is then returned too, as it
/// would pin a slab.
const BURST: u8 = 4;
/// Blocks of a class counted privately before they are added to the process's counters.
const COUNT_BATCH: u32 = 256;

#[derive(Debug)]
pub(crate) struct Bin {
    /// The list of slabs with free blocks.
    pub awake: Cell<*const Slab>,
    /// The slab with blocks not yet laid out.
    pub carving: Cell<*const Slab>,
    /// Slabs given back since the class's list was last filled.
    releases: Cell<u8>,
    /// Blocks handed to the class's list and not yet in the process's counters.
    counted: Cell<u32>,
}

/// A thread's heap. All zero is a valid heap that has no blocks.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Heap {
    /// The span, as in [`Space`]; zero bytes in the empty heap.
    pub base: Cell<usize>,
    pub bytes: Cell<usize>,
    pub side: Cell<*mut u8>,
    /// The class of each number of granules up to [`FINE_MAX`](crate::class::FINE_MAX) bytes. Here, beside
    /// the lists, as no address of a table need be loaded first. All 0 in the empty heap.
    pub fine: [Cell<u8>; FINE],
    pub free: [Cell<*mut Block>; CLASSES],
    /// The class of each size above, by the coarse granules that its last byte has before it.
    pub coarse: [Cell<u8>; COARSE],
    pub bins: [Bin; CLASSES],
    spares: [Cell<*mut u8>; SPARES],
    spare_count: Cell<usize>,
    pub(crate) units: Cell<usize>,
    pub(crate) magazine: Magazine,
    pub gate: Gate,
    /// [`NOBODY`], [`A_THREAD`], [`A_VISITOR`] or [`LOST`].
    pub tenant: AtomicI32,
    /// The processor that its last thread ran on, for the next thread there.
    pub home: Cell<i32>,
    pub seen_turns: Cell<u32>,
    /// The turns of the gate when the helper last returned the free memory.
    pub swept_turns: Cell<u32>,
    /// Ticks before the helper visits unfinished slabs again; `patience` has those that are left.
    pub pause: Cell<u32>,
    pub patience: Cell<u32>,
    pub next: AtomicPtr<Heap>,
    /// Which of its slabs give pages back next.
    pub pass: Pass<Slab>,
    pub woken: Woken<Slab>,
    pub(crate) countdown: Countdown,
}

pub(crate) const NOBODY: i32 = 0;
/// The tenant of a heap in use; only the thread's own pointer leads from the thread to the heap.
pub(crate) const A_THREAD: i32 = 1;
/// The tenant of a heap that nobody may use in this process.
pub(crate) const LOST: i32 = -1;
/// The tenant of an orphaned heap that somebody is rearranging.
pub(crate) const A_VISITOR: i32 = 2;

const _: () = assert!(size_of::<Heap>() <= HEAP_BYTES);

// SAFETY: the cells are touched by the tenant's thread alone, or by who holds the gate; the rest is atomic.
unsafe impl Sync for Heap {}

impl Heap {
    pub(crate) fn begin(&self, space: Space) {
        for (granules, class) in self.fine.iter().enumerate() {
            class.set(class_of(granules * GRANULE) as u8);
        }
        for (before, class) in self.coarse.iter().enumerate() {
            class.set(class_of((before + 1) * COARSE_GRANULE) as u8);
        }
        self.base.set(space.base);
        self.side.set(space.side);
        self.bytes.set(space.bytes);
    }

    pub(crate) fn space(&self) -> Space {
        Space { base: self.base.get(), bytes: self.bytes.get(), side: self.side.get() }
    }

    pub(crate) fn unit_of(&self, slab: &Slab) -> *mut u8 {
        self.space().unit_of(slab)
    }

    /// The heap as the owner of a slab.
    pub(crate) fn any(&self) -> *const AnyHeap {
        core::ptr::from_ref(self).cast()
    }

    /// A block of `class`. `None` if memory is out, or the thread is inside its heap's gate.
    #[inline]
    pub(crate) fn allocate(&'static self, class: usize) -> Option<*mut u8> {
        let list = &self.free[class];
        if list.get().is_null() {
            if !self.gate.enter() {
                return None;
            }
            list.set(self.refill(class));
            self.gate.leave();
        }
        pop(list)
    }

    /// A list of free blocks of `class`, off every other list; null when memory has run out. Inside the gate.
    #[inline(always)]
    pub(crate) fn refill(&'static self, class: usize) -> *mut Block {
        if !self.woken.is_empty() {
            self.drain();
        }
        if self.pass.is_due() {
            self.advance_pass(OWNERS_SLABS);
        }
        let bin = &self.bins[class];
        bin.releases.set(0);
        // SAFETY: slabs on a bin's list are live descriptions in the side table.
        if let Some(slab) = unsafe { bin.awake.get().as_ref() } {
            return self.take(bin, slab);
        }
        if let Some(slab) = registry::raid(class, bin.carving.get().is_null()) {
            self.welcome(bin, slab);
            if slab.awake.get() {
                return self.take(bin, slab);
            }
        }
        self.carve(bin, class)
    }

    /// Gives away a slab of `class` that has free blocks, or (where `uncarved` allows it) room for more, for
    /// a heap without a thread. Inside the gate.
    pub(crate) fn surrender(&'static self, class: usize, uncarved: bool) -> Option<&'static Slab> {
        self.drain();
        self.give_back(class);
        let bin = &self.bins[class];
        let carving = bin.carving.get();
        let mut chosen = bin.awake.get();
        if chosen.is_null() {
            chosen = carving;
        }
        if core::ptr::eq(chosen, carving) && !uncarved {
            return None;
        }
        // SAFETY: slabs on a bin's list, and the one being carved, are live descriptions.
        let slab = unsafe { chosen.as_ref() }?;
        if slab.awake.get() {
            self.unlink(bin, slab);
        }
        if core::ptr::eq(carving, slab) {
            bin.carving.set(null());
        }
        self.units.set(self.units.get() - 1);
        Some(slab)
    }

    /// Takes in a slab that another heap has given away.
    fn welcome(&self, bin: &Bin, slab: &Slab) {
        slab.owner.store(self.any().cast_mut(), Relaxed);
        self.units.set(self.units.get() + 1);
        if slab.carved.get() < slab.shape().capacity {
            bin.carving.set(slab);
        }
        if slab.awake.get() {
            self.wake(bin, slab, slab.live());
        }
    }

    /// Takes an awake slab's whole list and puts the slab to sleep.
    pub(crate) fn take(&self, bin: &Bin, slab: &Slab) -> *mut Block {
        if slab.vacated() != 0 {
            return self.take_sparse(bin, slab);
        }
        self.unlink(bin, slab);
        self.count(bin, slab.shape().bytes, u32::from(slab.carved.get()).wrapping_sub(slab.live()));
        slab.sleep();
        slab.free.replace(null_mut())
    }

    /// Lays out another page of blocks.
    pub(crate) fn carve(&'static self, bin: &Bin, class: usize) -> *mut Block {
        let shape = &SHAPES[class];
        let space = self.space();
        // SAFETY: the slab being carved is a live description in the side table.
        let slab = match unsafe { bin.carving.get().as_ref() } {
            Some(slab) => slab,
            None => {
                let unit = self.unit();
                let Some(slab) = space.slab_of(unit) else {
                    return null_mut();
                };
                slab.begin(self.any(), class);
                bin.carving.set(slab);
                slab
            }
        };
        let carved = slab.carved.get();
        let blocks = shape.carve.min(shape.capacity - carved);
        let bytes = shape.bytes as usize;
        let first = space.unit_of(slab).wrapping_add(usize::from(carved) * bytes);
        let mut last = first;
        for _ in 1..blocks {
            let next = last.wrapping_add(bytes);
            // SAFETY: blocks `carved..carved + blocks` lie within the unit, and nobody uses them yet.
            unsafe { (*last.cast::<Block>()).link(next.cast()) };
            last = next;
        }
        // SAFETY: the last of these blocks, which nobody uses yet.
        unsafe { (*last.cast::<Block>()).link(null_mut()) };
        slab.set_carved(carved + blocks);
        slab.rest.clear(Rest::MET | Rest::BARE);
        if carved == 0 {
            slab.sleep();
        }
        if carved + blocks == shape.capacity {
            bin.carving.set(null());
        }
        self.count(bin, shape.bytes, u32::from(blocks));
        first.cast()
    }

    /// Places a slab whose `needed` has reached zero: on the class's list, on the awake list, or back as a
    /// unit. Inside the gate.
    pub(crate) fn place(&'static self, slab: &'static Slab) {
        if !slab.is_of(self) {
            // The helper was in, saw that nothing was live, and has given the slab back.
            return;
        }
        if slab.needed.load(Relaxed) != 0 {
            // A signal handler came between, and its own allocation has settled the slab, or taken it.
            return;
        }
        let class = usize::from(slab.class.get());
        let (bin, list) = (&self.bins[class], &self.free[class]);
        let is_whole = slab.awake.get() || slab.vacated() == 0;
        let is_wanted = list.get().is_null() && bin.releases.get() < BURST && is_whole;
        // Tested twice, as a register for the result would cost all programs more.
        if is_wanted && !(mode::is_special() && self.waits(class)) {
            let fetched = if slab.awake.get() {
                self.take(bin, slab)
            } else {
                self.count(bin, slab.bytes.get(), u32::from(slab.slept.get()));
                slab.sleep();
                slab.free.replace(null_mut())
            };
            list.set(fetched);
            if mode::is_special() {
                self.shorten(class);
            }
        } else if slab.awake.get() {
            self.release(bin, slab);
            if bin.releases.get() == BURST {
                self.give_back(class);
            }
        } else {
            let live = slab.live();
            self.wake(bin, slab, live);
        }
    }

    #[cold]
    #[inline(never)]
    fn waits(&self, class: usize) -> bool {
        mode::sampler().is_some() && self.countdown.waits(class, MALLOC.epoch.load(Acquire))
    }

    /// Cuts the list of `class`, just fetched, before the next sample.
    #[cold]
    #[inline(never)]
    fn shorten(&self, class: usize) {
        let list = &self.free[class];
        list.set(self.countdown.part(class, list.get()));
    }

    /// Does the least for [`Heap::place`] where the gate cannot be entered: the slab waits for one more free.
    pub(crate) fn place_later(slab: &Slab) {
        if !slab.awake.get() {
            slab.slept.set(slab.slept.get() + 1);
            slab.needed.store(1, Relaxed);
        }
    }

    pub(crate) fn units(&self) -> usize {
        self.units.get()
    }

    /// Bytes of the page layer's idle units and of large blocks freed a moment ago.
    pub(crate) fn idle_bytes(&self) -> usize {
        let spares = self.spares[..self.spare_count.get().min(SPARES)].iter();
        spares.filter(|spare| !units::are_paged(spare.get())).count() * UNIT + self.magazine.bytes()
    }

    /// Credits blocks of other threads, for the heap's thread or an orphan's tenant. Inside the gate.
    pub(crate) fn drain(&'static self) {
        self.drain_where(|_| true, |_| {});
    }

    /// The same for the helper: only slabs that the heap's thread cannot be freeing to. The others stay on
    /// the stack, and return pages.
    pub(crate) fn drain_finished(&'static self) {
        let mut left = if Pages::global().decays() { VISITORS_SLABS } else { 0 };
        self.drain_where(Slab::is_finished, |slab| {
            if left > 0 && self.vacate(slab, false) {
                left -= 1;
            }
        });
    }

    fn drain_where(&'static self, is_ready: impl Fn(&Slab) -> bool, mut unready: impl FnMut(&Slab)) {
        let mut next = self.woken.take().cast_const();
        // SAFETY: slabs on the stack are live descriptions: a notified slab is drained before its end.
        while let Some(slab) = unsafe { next.as_ref() } {
            next = slab.next_woken.load(Relaxed);
            if !slab.is_of(self) {
                // The slab changed hands while a pusher was about to notify its old owner.
                // SAFETY: heaps are never unmapped.
                unsafe { (*slab.owner.load(Relaxed).cast::<Heap>()).woken.push(slab) };
                continue;
            }
            if !is_ready(slab) {
                unready(slab);
                self.woken.push(slab);
                continue;
            }
            let taken = slab.remote.drain();
            self.credit(slab, taken.head, taken.blocks);
        }
    }

    /// Takes in what others have returned to an awake slab, if that leaves nothing live. Inside the gate.
    pub(crate) fn reclaim(&'static self, slab: &'static Slab) {
        if slab.is_finished() && !slab.remote.is_notified() {
            let taken = slab.remote.take();
            self.credit(slab, taken.head, taken.blocks);
        }
    }

    /// Adds `blocks` blocks, linked from granule `head` on, to the slab's list.
    pub(crate) fn credit(&'static self, slab: &'static Slab, head: Option<u32>, blocks: u32) {
        let live = slab.live().wrapping_sub(blocks);
        if let Some(head) = head {
            let first = block_at(self.space().unit_of(slab), head);
            if !slab.free.get().is_null() {
                let mut last = first;
                // SAFETY: the list's blocks are free, belong to the slab, and end in null.
                unsafe {
                    let mut next = (*last).next();
                    while !next.is_null() {
                        last = next;
                        next = (*last).next();
                    }
                    (*last).link(slab.free.get());
                }
            }
            slab.free.set(first);
        }
        if slab.awake.get() || blocks > 0 {
            self.place_at(slab, live);
        }
    }

    /// Places a slab with `live` blocks in use whose list has grown.
    pub(crate) fn place_at(&'static self, slab: &'static Slab, live: u32) {
        let bin = &self.bins[usize::from(slab.class.get())];
        if slab.awake.get() {
            slab.needed.store(live, Relaxed);
        } else {
            self.wake(bin, slab, live);
        }
        if live == 0 {
            self.release(bin, slab);
        }
    }

    /// Adds the private counts to the process's counters. Inside the gate.
    pub(crate) fn flush_counts(&self) {
        for (bin, shape) in self.bins.iter().zip(SHAPES) {
            self.flush_count(bin, shape.bytes);
        }
    }

    pub(crate) fn wake(&self, bin: &Bin, slab: &Slab, live: u32) {
        slab.awake.set(true);
        slab.needed.store(live, Relaxed);
        slab.rest.clear(Rest::MET);
        self.pass.woke();
        let head = bin.awake.get();
        slab.previous.set(null());
        slab.next.set(head);
        // SAFETY: slabs on a bin's list are live descriptions.
        if let Some(head) = unsafe { head.as_ref() } {
            head.previous.set(slab);
        }
        bin.awake.set(slab);
    }

    pub(crate) fn unlink(&self, bin: &Bin, slab: &Slab) {
        self.pass.left(slab, slab.next.get());
        let (previous, next) = (slab.previous.get(), slab.next.get());
        // SAFETY: slabs on a bin's list are live descriptions.
        match unsafe { previous.as_ref() } {
            Some(previous) => previous.next.set(next),
            None => bin.awake.set(next),
        }
        // SAFETY: null, or a neighbour on the same list: a live description.
        if let Some(next) = unsafe { next.as_ref() } {
            next.previous.set(previous);
        }
    }

    /// Returns an awake slab with nothing live, unless its pusher still uses it.
    pub(crate) fn release(&self, bin: &Bin, slab: &Slab) {
        if slab.remote.is_notified() {
            return;
        }
        self.unlink(bin, slab);
        if core::ptr::eq(bin.carving.get(), slab) {
            bin.carving.set(null());
        }
        slab.end();
        bin.releases.set(bin.releases.get().saturating_add(1));
        self.units.set(self.units.get() - 1);
        if self.spare_count.get() == SPARES {
            self.return_spares(SPARES / 2);
        }
        let count = self.spare_count.get();
        self.spares[count].set(self.space().unit_of(slab));
        self.spare_count.set(count + 1);
    }

    /// An idle unit, or null. Units are fetched one by one: one is found among the cached wherever it lies,
    /// several would have to lie side by side.
    fn unit(&self) -> *mut u8 {
        let mut unit = [null_mut()];
        match self.spare_count.get().checked_sub(1) {
            Some(last) => {
                self.spare_count.set(last);
                unit[0] = self.spares[last].get();
            }
            None if units::fetch(&mut unit) == 0 => return null_mut(),
            None => {}
        }
        self.units.set(self.units.get() + 1);
        unit[0]
    }

    /// Returns idle units to the page layer until `keep` are left. Inside the gate.
    pub(crate) fn return_spares(&self, keep: usize) {
        let mut units = [null_mut(); SPARES];
        let count = self.spare_count.get();
        if count <= keep {
            return;
        }
        for (unit, spare) in units.iter_mut().zip(&self.spares[keep..count]) {
            *unit = spare.get();
        }
        self.spare_count.set(keep);
        // SAFETY: the units came from `units::fetch`, and no slab lives in them.
        unsafe { units::give_back(&units[..count - keep]) };
    }

    pub(crate) fn count(&self, bin: &Bin, bytes: u32, blocks: u32) {
        self.countdown.fetched.set(blocks);
        let counted = bin.counted.get().wrapping_add(blocks);
        bin.counted.set(counted);
        if counted >= COUNT_BATCH {
            self.flush_count(bin, bytes);
        }
    }

    fn flush_count(&self, bin: &Bin, bytes: u32) {
        let blocks = bin.counted.replace(0);
        if blocks > 0 {
            let slot = Pages::global().slot();
            slot.add(Counter::SmallBlocks, u64::from(blocks));
            slot.count_size(bytes as usize, u64::from(blocks));
        }
    }
}

impl Slab {
    #[inline(always)]
    pub(crate) fn is_of(&self, heap: &Heap) -> bool {
        core::ptr::eq(self.owner.load(Relaxed), heap.any())
    }

    /// The same as [`Slab::is_of`], in an instruction less.
    #[inline(always)]
    pub(crate) fn is_owned_by(&self, heap: &Heap) -> bool {
        // SAFETY: `owner` is an aligned pointer at that offset, and written at one go.
        unsafe { arch::holds::<Slab, Heap, { offset_of!(Slab, owner) }>(self, heap) }
    }
}

#[inline]
pub(crate) fn pop(list: &Cell<*mut Block>) -> Option<*mut u8> {
    // SAFETY: a block on the list is free memory of at least two words.
    let free = unsafe { list.get().as_ref() }?;
    list.set(free.next());
    free.unseal();
    Some(core::ptr::from_ref(free).cast_mut().cast())
}
