//! Counts the process's memory, slab by slab: bytes in use, free bytes, and bytes returned to the kernel.
//!
//! The fast paths count nothing. A count visits all slabs while threads run. A block that is allocated or
//! freed meanwhile may be counted in either state. Slabs count blocks on a heap's own list as in use, so
//! these lists are walked and their blocks subtracted. A walk ends at a block without a valid seal (`seal`),
//! as another thread may be changing the list. The page layer is locked while a list is walked, so that the
//! slab of these blocks stays mapped and accessible.

use crate::class::{CLASSES, SHAPES};
use crate::heap::Heap;
use crate::slab::{Block, Rest, Slab};
use crate::space::Space;
use crate::{registry, units};
use core::sync::atomic::Ordering::Relaxed;
use vellum_pages::{PAGE, Pages, UNIT};

/// Bytes of the process's memory, by their use. Blocks count whole, as in `malloc_usable_size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes of blocks in use.
    pub in_use: usize,
    /// Free bytes of slabs, and of memory that threads keep for their next requests. They have frames.
    pub free_in_slabs: usize,
    /// Bytes of pages inside slabs whose frames were returned.
    pub returned: usize,
}

/// The figures of the process; `handed_out` is what the page layer has in use.
pub fn figures(handed_out: usize) -> Figures {
    let space = Space::get();
    let (mut slabs, mut blocks, mut returned) = (0, 0, 0);
    Pages::global().for_each_unit(|unit| {
        let slab = space.slab_of(unit.ptr());
        if let Some(slab) = slab.filter(|slab| slab.is_slab()) {
            slabs += UNIT;
            blocks += in_use(slab) * slab.bytes.get() as usize;
            // Of pages that are locked into memory it is not known which went.
            let vacated = if slab.rest.has(Rest::LOCKED) { 0 } else { slab.vacated() };
            returned += vacated.count_ones() as usize * PAGE;
        }
    });
    let mut listed = 0;
    for_each_listed(|class, blocks| listed += blocks * SHAPES[class].bytes as usize);
    let idle: usize = registry::all().map(Heap::idle_bytes).sum();
    let others = handed_out.saturating_sub(slabs + idle);
    let in_use = others + blocks.saturating_sub(listed);
    let free_in_slabs = handed_out.saturating_sub(in_use + returned);
    Figures { in_use, free_in_slabs, returned }
}

/// Blocks of a slab that are in use, or on the list of its heap.
pub(crate) fn in_use(slab: &Slab) -> usize {
    let (carved, needed) = (u32::from(slab.carved.get()), slab.needed.load(Relaxed));
    let asleep = || carved.wrapping_add(needed).wrapping_sub(u32::from(slab.slept.get()));
    let live = if slab.awake.get() { needed } else { asleep() };
    live.min(carved).saturating_sub(slab.remote.blocks()) as usize
}

/// Calls `see` with the class and the number of blocks of each list of a heap.
pub fn for_each_listed(mut see: impl FnMut(usize, usize)) {
    let space = Space::get();
    registry::all().for_each(|heap| listed(heap, &space, &mut see));
}

/// Does the same for one heap. The page layer is locked for one list at a time.
fn listed(heap: &Heap, space: &Space, see: &mut impl FnMut(usize, usize)) {
    let length = |class: usize, first: *mut Block| {
        let mut block = first;
        let mut blocks = 0;
        while blocks < usize::from(SHAPES[class].capacity) && space.slab_of(block.cast()).is_some() {
            // SAFETY: the head is of a slab of the heap's, as its blocks there count as in use, and all links
            // of that list lead to blocks of the same slab. Its unit is mapped and readable until it is given
            // back, for which the page layer would have to move.
            let Some(next) = (unsafe { (*block).sealed_next() }) else { break };
            blocks += 1;
            block = next;
        }
        blocks
    };
    let firsts = |class: usize| {
        [heap.free[class].get(), heap.countdown.withheld[class].get()].map(|first| (class, first))
    };
    let is_counted = |first: *mut Block| !first.is_null() && !units::are_paged(first.cast());
    let lists = (1..CLASSES).flat_map(firsts).filter(|&(_, first)| is_counted(first));
    lists.for_each(|(class, first)| {
        see(class, Pages::global().while_still(|| length(class, first)));
    });
}
