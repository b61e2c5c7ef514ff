//! Allocation and release of many blocks in one call, such as the four million nodes of a program's lists.
//!
//! Source: Douglas 2011, "User Mode Memory Page Management", section 4.2, after the proposal N1527 to the C
//! committee.
//!
//! - A batch of one size takes whole units (64 KiB) from the page layer, many under one lock. Addresses of
//!   blocks are computed without touching them. A batch of less than a slab comes from the heap's lists.
//! - A batch free finds runs of neighbouring blocks in the array. If a run is a whole slab, its unit is
//!   returned untouched. The blocks of a shorter run return to their slab together.
//! - Blocks of a batch are ordinary blocks: each can be freed alone, and a batch free takes any blocks.
//!
//! Departure: N1527 has descriptor structures. These functions take arrays of addresses and sizes. They
//! return a number `n`: the first `n` requests of the array succeeded, the later ones failed.

use crate::alloc::{free, malloc};
use crate::class::{SHAPES, SMALL_MAX, class_of};
use crate::heap::Heap;
use crate::serve::{Request, Way, serve};
use crate::slab::{Block, Slab};
use crate::small::{check_live, push_remote};
use crate::space::Space;
use crate::{mode, tls, units};
use core::ptr::null_mut;
use vellum_pages::UNIT;

/// Units fetched, or returned, under one lock of the page layer.
const UNITS_AT_ONCE: usize = 256;
/// Addresses compared before the result is tested, so that the compiler can use vectors.
const COMPARE_AT_ONCE: usize = 16;

/// Allocates `blocks.len()` blocks of `bytes` bytes each. Returns their number; the rest of `blocks` is null.
pub fn malloc_batch(bytes: usize, blocks: &mut [*mut u8]) -> usize {
    let mut done = 0;
    if bytes <= SMALL_MAX
        && blocks.len() >= usize::from(SHAPES[class_of(bytes.max(1))].capacity)
        && let Way::Slab(heap, class) = serve(&Request::plain(bytes))
    {
        done = whole_slabs(heap, class, blocks);
    }
    for (index, block) in blocks.iter_mut().enumerate().skip(done) {
        *block = malloc(bytes);
        if block.is_null() {
            blocks[index..].fill(null_mut());
            return index;
        }
    }
    blocks.len()
}

/// Allocates a block of each of `sizes`, in order, until one fails. Returns their number; the rest of
/// `blocks` is null. The slices are equally long, or the shorter counts.
pub fn malloc_sizes(sizes: &[usize], blocks: &mut [*mut u8]) -> usize {
    let mut done = 0;
    while let Some(&bytes) = sizes.get(done).filter(|_| done < blocks.len()) {
        let alike =
            sizes[done..].iter().take_while(|&&other| other == bytes).count().min(blocks.len() - done);
        let allocated = malloc_batch(bytes, &mut blocks[done..done + alike]);
        done += allocated;
        if allocated < alike {
            break;
        }
    }
    blocks[done..].fill(null_mut());
    done
}

/// Fills the front of `blocks` with whole slabs' worth of blocks.
fn whole_slabs(heap: &'static Heap, class: usize, blocks: &mut [*mut u8]) -> usize {
    let shape = &SHAPES[class];
    let capacity = usize::from(shape.capacity);
    let space = Space::get();
    let mut done = 0;
    let mut units = [null_mut(); UNITS_AT_ONCE];
    while blocks.len() - done >= capacity {
        let wanted = ((blocks.len() - done) / capacity).min(UNITS_AT_ONCE);
        let got = units::fetch(&mut units[..wanted]);
        if !heap.gate.enter() {
            // A signal handler interrupted this heap's slow path: the ordinary way copes with that.
            // SAFETY: the units were just handed out and are used by nobody.
            unsafe { units::give_back(&units[..got]) };
            return done;
        }
        for (&unit, blocks) in units[..got].iter().zip(blocks[done..].chunks_exact_mut(capacity)) {
            if let Some(slab) = space.slab_of(unit) {
                heap.add_full(slab, class);
            }
            for (index, block) in blocks.iter_mut().enumerate() {
                *block = unit.wrapping_add(index * shape.bytes as usize);
            }
        }
        heap.gate.leave();
        done += got * capacity;
        if got < wanted {
            break;
        }
    }
    done
}

/// Frees every block of `blocks`, except nulls. Fastest when neighbours in memory are neighbours here.
///
/// # Safety
/// Each block may be freed, and none occurs twice.
pub unsafe fn free_batch(blocks: &[*mut u8]) {
    if mode::special().is_some() {
        // SAFETY: the caller gives each block up, once.
        return blocks.iter().for_each(|&block| unsafe { free(block) });
    }
    let space = Space::get();
    let heap = tls::current();
    let mut units = Returned { units: [null_mut(); UNITS_AT_ONCE], count: 0 };
    let mut rest = blocks;
    while let Some((&first, others)) = rest.split_first() {
        let slab = space.slab_of(first).filter(|slab| slab.is_slab());
        let (Some(slab), false) = (slab, others.is_empty()) else {
            // SAFETY: the caller gives each block up, once.
            unsafe { free(first) };
            rest = others;
            continue;
        };
        let run = run_length(rest, slab);
        // SAFETY: the run's blocks lie side by side in the slab, and the caller gives them up.
        unsafe { free_run(heap, slab, &rest[..run], &mut units) };
        rest = &rest[run..];
    }
    units.flush();
}

/// The number of blocks at the front of `blocks` (which is not empty) that follow one another in `slab`.
fn run_length(blocks: &[*mut u8], slab: &Slab) -> usize {
    let bytes = slab.bytes.get() as usize;
    let first = blocks[0] as usize;
    let room = (UNIT - first % UNIT) / bytes;
    let blocks = &blocks[..blocks.len().min(room)];
    let mut run = 0;
    for chunk in blocks.chunks(COMPARE_AT_ONCE) {
        let start = first + run * bytes;
        let alike = chunk
            .iter()
            .enumerate()
            .fold(true, |alike, (index, &block)| alike & (block as usize == start + index * bytes));
        if !alike {
            return run
                + chunk
                    .iter()
                    .enumerate()
                    .take_while(|&(index, &block)| block as usize == start + index * bytes)
                    .count();
        }
        run += chunk.len();
    }
    run
}

/// Safety: `run` holds blocks in use of `slab`, side by side, that the caller gives up.
unsafe fn free_run(heap: Option<&'static Heap>, slab: &'static Slab, run: &[*mut u8], units: &mut Returned) {
    let own = heap.filter(|heap| slab.is_of(heap));
    if let Some(heap) = own
        && run.len() == usize::from(slab.shape().capacity)
        && heap.gate.enter()
    {
        let dropped = heap.drop_full(slab);
        heap.gate.leave();
        if dropped {
            return units.push(run[0]);
        }
    }
    if run.len() == 1 {
        // SAFETY: the caller gives the block up.
        return unsafe { free(run[0]) };
    }
    for &block in run {
        // SAFETY: the slab's unit holds the block.
        unsafe { check_live("vel_free_batch", slab, block) };
    }
    for pair in run.windows(2) {
        // SAFETY: the block is free memory now.
        unsafe { (*pair[0].cast::<Block>()).link(pair[1].cast()) };
    }
    let (first, last) = (run[0], run[run.len() - 1]);
    if let Some(heap) = own
        && heap.gate.enter()
    {
        heap.credit_chain(slab, first.cast(), last.cast(), run.len() as u32);
        heap.gate.leave();
        return;
    }
    // SAFETY: the blocks lead from first to last, and the caller gives them up. A list that already begins
    // with the first cannot be, as that block is in use.
    unsafe { push_remote(slab, first, last, run.len() as u32) };
}

struct Returned {
    units: [*mut u8; UNITS_AT_ONCE],
    count: usize,
}

impl Returned {
    fn push(&mut self, unit: *mut u8) {
        self.units[self.count] = unit;
        self.count += 1;
        if self.count == UNITS_AT_ONCE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.count > 0 {
            // SAFETY: the units were slabs that have ended, handed out by `units::fetch`.
            unsafe { units::give_back(&self.units[..self.count]) };
            self.count = 0;
        }
    }
}

/// Resizes each block to the size beside it, in order, until one fails (that one and the rest stay as they
/// were). Returns how many were resized.
///
/// # Safety
/// The conditions of [`crate::realloc`], for each block.
pub unsafe fn realloc_batch(blocks: &mut [*mut u8], sizes: &[usize]) -> usize {
    for (index, (block, &bytes)) in blocks.iter_mut().zip(sizes).enumerate() {
        // SAFETY: the block is null or in use, by this function's condition, and replaced by the result.
        let new = unsafe { crate::realloc(*block, bytes) };
        if new.is_null() && bytes > 0 {
            return index;
        }
        *block = new;
    }
    blocks.len().min(sizes.len())
}

impl Heap {
    /// Makes an idle unit a slab all of whose blocks are in use. Inside the gate.
    pub(crate) fn add_full(&'static self, slab: &Slab, class: usize) {
        slab.begin(self.any(), class);
        let shape = slab.shape();
        slab.set_carved(shape.capacity);
        slab.unclean.set(true);
        slab.sleep();
        self.units.set(self.units.get() + 1);
        self.count(&self.bins[class], shape.bytes, u32::from(shape.capacity));
    }

    /// Ends a slab whose every block the caller gives up at once; the unit is the caller's then. False if a
    /// block of it is free already. Inside the gate.
    pub(crate) fn drop_full(&self, slab: &Slab) -> bool {
        let whole = slab.shape().capacity;
        let is_full = slab.free.get().is_null() && slab.live() == u32::from(whole) && !slab.awake.get();
        // Blocks of the list that `malloc` pops from count as live.
        let class = usize::from(slab.class.get());
        let is_listed = [self.free[class].get(), self.countdown.withheld[class].get()]
            .into_iter()
            .any(|listed| self.space().slab_of(listed.cast()).is_some_and(|of| core::ptr::eq(of, slab)));
        if !is_full || is_listed || slab.remote.blocks() > 0 || slab.remote.is_notified() {
            return false;
        }
        slab.end();
        self.units.set(self.units.get() - 1);
        true
    }

    /// Takes a chain of blocks of `slab` that the heap's own thread frees. Inside the gate.
    pub(crate) fn credit_chain(
        &'static self,
        slab: &'static Slab,
        first: *mut Block,
        last: *mut Block,
        blocks: u32,
    ) {
        let live = slab.live().wrapping_sub(blocks);
        // SAFETY: the last block is free memory now.
        unsafe { (*last).link(slab.free.get()) };
        slab.free.set(first);
        self.place_at(slab, live);
    }
}
