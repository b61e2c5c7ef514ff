//! The handlers around `fork`: every heap is stopped between two slow paths.
//!
//! The forking thread takes the few locks in one fixed order, helper's round, heap creation, gates, page
//! layer, so that in the child no slow path is half done. Fast paths may be: a thread that is stopped between
//! two stores leaves a block that is on no list, or a count one too high, never a block on two lists. So the
//! child may adopt the heaps of the threads it does not have. A gate that does not come free in time (its
//! thread is itself stopped in a signal handler), or cannot be closed for want of `membarrier`, costs the
//! child that heap's free memory, and nothing else.

use crate::background::ROUND;
use crate::heap::{Heap, LOST, NOBODY};
use crate::{harden, mode, registry};
use core::sync::atomic::Ordering;
use vellum_pages::Pages;
use vellum_sys::{Caps, barrier, caps};

/// Looks at an occupied gate before fork goes on without that heap.
const FORK_PATIENCE: u32 = 20_000;

/// Before `fork`, in the parent: stops every heap between two slow paths.
pub fn fork_prepare() {
    ROUND.lock();
    registry::creation().lock();
    let others = || registry::all().filter(|heap| !is_own(heap));
    if others().next().is_some() && caps::has(Caps::MEMBARRIER) {
        others().for_each(|heap| heap.gate.close());
        if barrier::fence_every_thread() {
            let mut patience = FORK_PATIENCE;
            for heap in others() {
                while heap.gate.is_inside() && patience > 0 {
                    patience -= 1;
                    // SAFETY: plain call.
                    unsafe { libc::sched_yield() };
                }
            }
        } else {
            others().for_each(|heap| heap.gate.open());
        }
    }
    harden::fork_prepare();
    if let Some(hooks) = mode::profiled() {
        (hooks.fork_prepare)();
    }
    Pages::global().fork_prepare();
}

/// After `fork`, in the parent.
pub fn fork_parent() {
    Pages::global().fork_parent();
    if let Some(hooks) = mode::profiled() {
        (hooks.fork_parent)();
    }
    harden::fork_parent();
    registry::all().filter(|heap| !is_own(heap)).for_each(|heap| heap.gate.open());
    registry::creation().unlock();
    ROUND.unlock();
}

/// After `fork`, in the child, where only the calling thread exists.
pub fn fork_child() {
    Pages::global().fork_child();
    if let Some(hooks) = mode::profiled() {
        (hooks.fork_child)();
    }
    harden::fork_child();
    registry::forget_orphans();
    for heap in registry::all().filter(|heap| !is_own(heap)) {
        let quiet = heap.gate.is_closed() && !heap.gate.is_inside();
        let orphan = heap.tenant.load(Ordering::Relaxed) == NOBODY;
        heap.gate.reset_after_fork();
        if heap.tenant.load(Ordering::Relaxed) == LOST {
            continue;
        }
        if quiet || orphan {
            registry::orphan(heap);
        } else {
            heap.tenant.store(LOST, Ordering::Relaxed);
        }
    }
    registry::creation().reset_after_fork();
    ROUND.reset_after_fork();
}

fn is_own(heap: &Heap) -> bool {
    registry::current().is_some_and(|own| core::ptr::eq(heap, own))
}
