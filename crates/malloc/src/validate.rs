//! Checks of the invariants of a heap, for tests.

use crate::class::{CLASSES, SHAPES};
use crate::heap::Heap;
use crate::slab::{Block, Slab};
use crate::space::{Space, block_at};
use crate::tls;

/// Checks every invariant of the calling thread's heap; names a broken one. Slow: walks every list.
///
/// # Errors
/// The broken invariant, as a sentence.
pub fn validate() -> Result<(), &'static str> {
    let Some(heap) = tls::current() else {
        return Ok(());
    };
    if !heap.gate.enter() {
        return Err("the heap's thread is inside its gate");
    }
    let result = (0..CLASSES).try_for_each(|class| validate_class(heap, class));
    heap.gate.leave();
    result
}

fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

fn validate_class(heap: &Heap, class: usize) -> Result<(), &'static str> {
    let bin = &heap.bins[class];
    let space = Space::get();
    let list = heap.free[class].get();
    if !list.is_null() {
        ensure(class != 0, "class 0 has a list")?;
        let slab = space.slab_of(list.cast()).ok_or("a list's block lies outside the span")?;
        let blocks = walk(&space, slab, class, list)?;
        ensure(blocks <= slab.live(), "a list is longer than its slab's live blocks")?;
    }
    let mut previous = core::ptr::null();
    let mut next = bin.awake.get();
    // SAFETY: slabs on a bin's list are live descriptions.
    while let Some(slab) = unsafe { next.as_ref() } {
        ensure(slab.is_of(heap), "a slab on the list belongs to another heap")?;
        ensure(usize::from(slab.class.get()) == class, "a slab is on the list of another class")?;
        ensure(slab.awake.get(), "a slab on the list is asleep")?;
        ensure(core::ptr::eq(slab.previous.get(), previous), "the list's backward link is wrong")?;
        let listed =
            walk(&space, slab, class, slab.free.get())? + walk(&space, slab, class, slab.kept.get())?;
        ensure(slab.vacated() != 0 || slab.kept.get().is_null(), "blocks are kept and no page is vacated")?;
        let free = listed + slab.unlisted();
        ensure(free > 0, "an awake slab has no free block")?;
        // Blocks that others freed count as live until they are credited, though they may be off their list.
        let remote = slab.remote.peek();
        let first =
            remote.head.map_or(core::ptr::null_mut(), |granule| block_at(space.unit_of(slab), granule));
        let credited = free + walk(&space, slab, class, first)? - remote.blocks;
        ensure(credited + slab.live() == u32::from(slab.carved.get()), "free and live blocks do not add up")?;
        ensure(slab.carved.get() <= SHAPES[class].capacity, "more blocks are carved than fit")?;
        previous = next;
        next = slab.next.get();
    }
    // SAFETY: the slab being carved is a live description.
    if let Some(slab) = unsafe { bin.carving.get().as_ref() } {
        ensure(slab.is_of(heap), "the slab being carved belongs to another heap")?;
        ensure(slab.carved.get() < SHAPES[class].capacity, "the slab being carved is full")?;
    }
    Ok(())
}

/// The length of a list of free blocks of `slab`.
fn walk(space: &Space, slab: &Slab, class: usize, list: *mut Block) -> Result<u32, &'static str> {
    let bytes = SHAPES[class].bytes as usize;
    let unit = space.unit_of(slab) as usize;
    let mut blocks = 0;
    let mut next = list;
    while !next.is_null() && !slab.is_vacated(next.cast()) {
        let offset = (next as usize).wrapping_sub(unit);
        ensure(offset.is_multiple_of(bytes), "a free block does not start where blocks do")?;
        ensure(offset / bytes < usize::from(slab.carved.get()), "a free block lies outside what is carved")?;
        blocks += 1;
        ensure(blocks <= u32::from(slab.carved.get()), "a free list is longer than its slab, or a ring")?;
        // SAFETY: the block lies in the slab and is free.
        next = unsafe {
            ensure((*next).is_sealed(), "a free block's link is overwritten")?;
            (*next).next()
        };
    }
    Ok(blocks)
}
