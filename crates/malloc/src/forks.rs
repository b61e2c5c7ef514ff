//! The handlers around `fork`. They lock every heap between two slow paths, so that the child can use it.
//!
//! - The forking thread takes the locks in one order: the helper's round, heap creation, gates, page layer.
//!   In the child no slow path is half done.
//! - A fast path may be half done. A thread stopped between two stores leaves a block on no list, or a count
//!   one too high, never a block on two lists. The child, without the parent's other threads, may thus adopt
//!   their heaps.
//! - A gate (a heap's lock) cannot be closed in time if its thread is stopped in a signal handler. Without
//!   `membarrier` no gate can be closed. The child then loses the free memory of these heaps only.
//! - If small blocks are paged (`vellum_pager`), the child reads them while other threads of the parent run.
//!   It may read lists in the middle of a change, and so adopts no heap of these threads. The forking
//!   thread's heap is consistent: other threads only push blocks to it, and these blocks' links stay until
//!   the blocks are taken.

use crate::heap::{A_THREAD, Heap, LOST, NOBODY};
use crate::state::MALLOC;
use crate::{harden, mode, registry, tls};
use core::sync::atomic::Ordering;
use vellum_pages::Pages;
use vellum_sys::thread::Patience;
use vellum_sys::{Caps, barrier, caps};

/// Before `fork`, in the parent: stops every heap between two slow paths.
pub fn fork_prepare() {
    MALLOC.helper.round.lock();
    MALLOC.heaps.nursery.raw().lock();
    let others = || registry::all().filter(|heap| !is_own(heap));
    if others().next().is_some() && caps::has(Caps::MEMBARRIER) {
        others().for_each(|heap| heap.gate.close());
        if barrier::fence_every_thread() {
            let mut patience = Patience::new();
            others().for_each(|heap| while heap.gate.is_inside() && patience.wait() {});
        } else {
            others().for_each(|heap| heap.gate.open());
        }
    }
    harden::fork_prepare();
    mode::sampler().inspect(|hooks| (hooks.fork_prepare)());
    Pages::global().fork_prepare();
}

/// After `fork`, in the parent.
pub fn fork_parent() {
    Pages::global().fork_parent();
    mode::sampler().inspect(|hooks| (hooks.fork_parent)());
    harden::fork_parent();
    registry::all().filter(|heap| !is_own(heap)).for_each(|heap| heap.gate.open());
    MALLOC.heaps.nursery.raw().unlock();
    MALLOC.helper.round.unlock();
}

/// After `fork`, in the child, where only the calling thread exists.
pub fn fork_child() {
    Pages::global().fork_child();
    mode::sampler().inspect(|hooks| (hooks.fork_child)());
    harden::fork_child();
    mode::fork_child();
    MALLOC.heaps.orphans.store(0, Ordering::Relaxed);
    let others = || registry::all().filter(|heap| !is_own(heap));
    let are_mixed = MALLOC.paging.has_units.load(Ordering::Relaxed)
        && others().any(|heap| heap.tenant.load(Ordering::Relaxed) == A_THREAD);
    for heap in others() {
        let quiet = heap.gate.is_closed() && !heap.gate.is_inside();
        let orphan = heap.tenant.load(Ordering::Relaxed) == NOBODY;
        heap.gate.reset_after_fork();
        if heap.tenant.load(Ordering::Relaxed) == LOST {
            continue;
        }
        if !are_mixed && (quiet || orphan) {
            registry::orphan(heap);
        } else {
            heap.tenant.store(LOST, Ordering::Relaxed);
        }
    }
    MALLOC.heaps.nursery.raw().reset_after_fork();
    MALLOC.helper.round.reset_after_fork();
}

fn is_own(heap: &Heap) -> bool {
    tls::current().is_some_and(|own| core::ptr::eq(heap, own))
}
