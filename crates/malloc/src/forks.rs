//! The handlers around `fork`: every heap is stopped between two slow paths.
//!
//! The forking thread takes the few locks in one fixed order, helper's round, heap creation, gates, page
//! layer, so that in the child no slow path is half done. Fast paths may be: a thread that is stopped between
//! two stores leaves a block that is on no list, or a count one too high, never a block on two lists. So the
//! child may adopt the heaps of the threads it does not have. A gate that does not come free in time (its
//! thread is itself stopped in a signal handler), or cannot be closed for want of `membarrier`, costs the
//! child that heap's free memory, and nothing else.
//!
//! Where small blocks are paged, the child reads them while other threads of the parent go on
//! (`vellum_pager`): lists of free blocks that these threads change are of no one moment. So the child leaves
//! their heaps. Its own is whole: other threads only push blocks to it, whose links stay until this thread
//! takes them.

use crate::heap::{A_THREAD, Heap, LOST, NOBODY};
use crate::state::MALLOC;
use crate::{harden, mode, registry, tls, units};
use core::sync::atomic::Ordering;
use vellum_pages::Pages;
use vellum_sys::thread::Patience;
use vellum_sys::{Caps, barrier, caps};

/// Before `fork`, in the parent: stops every heap between two slow paths.
pub fn fork_prepare() {
    MALLOC.helper.round.lock();
    registry::creation().lock();
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
    if let Some(hooks) = mode::sampler() {
        (hooks.fork_prepare)();
    }
    Pages::global().fork_prepare();
}

/// After `fork`, in the parent.
pub fn fork_parent() {
    Pages::global().fork_parent();
    if let Some(hooks) = mode::sampler() {
        (hooks.fork_parent)();
    }
    harden::fork_parent();
    registry::all().filter(|heap| !is_own(heap)).for_each(|heap| heap.gate.open());
    registry::creation().unlock();
    MALLOC.helper.round.unlock();
}

/// After `fork`, in the child, where only the calling thread exists.
pub fn fork_child() {
    Pages::global().fork_child();
    if let Some(hooks) = mode::sampler() {
        (hooks.fork_child)();
    }
    harden::fork_child();
    mode::fork_child();
    registry::forget_orphans();
    let others = || registry::all().filter(|heap| !is_own(heap));
    let are_mixed =
        units::were_paged() && others().any(|heap| heap.tenant.load(Ordering::Relaxed) == A_THREAD);
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
    registry::creation().reset_after_fork();
    MALLOC.helper.round.reset_after_fork();
}

fn is_own(heap: &Heap) -> bool {
    tls::current().is_some_and(|own| core::ptr::eq(heap, own))
}
