//! The list of all heaps of the process. For the heap of a thread, see [`crate::threads`].
//!
//! A heap outlives its thread: when the thread ends, its heap, with the blocks in use, becomes an orphan. The
//! next thread that needs a heap adopts it whole. Heaps are never unmapped.

use crate::heap::{A_THREAD, A_VISITOR, HEAP_BYTES, Heap, NOBODY};
use crate::slab::Slab;
use crate::space::Space;
use crate::state::{MALLOC, Nursery};
use core::ptr::null_mut;
use core::sync::atomic::Ordering;
use vellum_pages::{Pages, UNIT};

/// An orphan, for the calling thread: preferably of a thread that ran on the same processor.
pub(crate) fn adopt() -> Option<&'static Heap> {
    if MALLOC.heaps.orphans.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let is_free = |heap: &Heap| heap.tenant.load(Ordering::Relaxed) == NOBODY;
    let take = |heap: &Heap| {
        heap.tenant.compare_exchange(NOBODY, A_THREAD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    };
    // Where threads follow one another, the heap of the predecessor holds the blocks this one will free.
    let home = processor();
    let heap = all()
        .find(|heap| is_free(heap) && heap.home.get() == home && take(heap))
        .or_else(|| all().find(|heap| is_free(heap) && take(heap)))?;
    MALLOC.heaps.orphans.fetch_sub(1, Ordering::Relaxed);
    Some(heap)
}

pub(crate) fn processor() -> i32 {
    // SAFETY: `sched_getcpu` has no preconditions; it returns -1 on an error.
    unsafe { libc::sched_getcpu() }
}

/// A heap that no thread has, and that is not in the list of heaps.
pub(crate) fn create_apart() -> Option<&'static Heap> {
    let mut nursery = MALLOC.heaps.nursery.lock();
    if nursery.left == 0 {
        let mut unit = [null_mut()];
        if Pages::global().alloc_units(&mut unit) == 0 {
            return None;
        }
        *nursery = Nursery { unit: unit[0], left: UNIT };
    }
    // SAFETY: `left` is a multiple of HEAP_BYTES, above 0 and at most UNIT, so that the heap lies in the
    // unit, in a part that nobody has yet.
    let memory = unsafe { nursery.unit.add(UNIT - nursery.left) };
    nursery.left -= HEAP_BYTES;
    drop(nursery);
    // SAFETY: the memory is this function's alone, and HEAP_BYTES long; a zeroed heap is a valid one.
    let heap: &'static Heap = unsafe {
        memory.write_bytes(0, HEAP_BYTES);
        &*memory.cast::<Heap>()
    };
    heap.begin(Space::get());
    Some(heap)
}

/// A new heap, for the calling thread.
pub(crate) fn create() -> Option<&'static Heap> {
    let heap = create_apart()?;
    heap.tenant.store(A_THREAD, Ordering::Relaxed);
    let link = |head: *mut ()| {
        heap.next.store(head.cast(), Ordering::Relaxed);
        Some(core::ptr::from_ref(heap).cast_mut().cast())
    };
    let _ = MALLOC.heaps.newest.fetch_update(Ordering::Release, Ordering::Relaxed, link);
    Some(heap)
}

pub(crate) fn all() -> impl Iterator<Item = &'static Heap> {
    let mut next = MALLOC.heaps.newest.load(Ordering::Acquire).cast::<Heap>();
    core::iter::from_fn(move || {
        // SAFETY: heaps are never unmapped.
        let heap = unsafe { next.as_ref() }?;
        next = heap.next.load(Ordering::Relaxed);
        Some(heap)
    })
}

/// Makes `heap`, which no thread uses any more, one to adopt.
pub(crate) fn orphan(heap: &Heap) {
    heap.tenant.store(NOBODY, Ordering::Release);
    MALLOC.heaps.orphans.fetch_add(1, Ordering::Relaxed);
}

/// Runs `care` on `heap` as its tenant, if it is an orphan; the helper does, and who raids it.
pub(crate) fn with_orphan(heap: &'static Heap, care: impl FnOnce(&'static Heap)) -> bool {
    if heap.tenant.compare_exchange(NOBODY, A_VISITOR, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return false;
    }
    care(heap);
    heap.tenant.store(NOBODY, Ordering::Release);
    true
}

/// Orphans searched for a slab before new memory is touched.
const RAIDED_MAX: usize = 4;

/// A slab of `class` with free blocks, or with room for them if `uncarved`, out of an orphan. Its memory is
/// touched already, and where threads follow one another it has the blocks that the next thread frees.
pub(crate) fn raid(class: usize, uncarved: bool) -> Option<&'static Slab> {
    if MALLOC.heaps.orphans.load(Ordering::Relaxed) == 0 {
        return None;
    }
    all().filter(|heap| heap.tenant.load(Ordering::Relaxed) == NOBODY).take(RAIDED_MAX).find_map(|heap| {
        let mut slab = None;
        with_orphan(heap, |heap| {
            if heap.gate.try_enter() {
                slab = heap.surrender(class, uncarved);
                heap.gate.leave();
            }
        });
        slab
    })
}
