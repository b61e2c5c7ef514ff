//! What is done to heaps from outside: by the page layer's helper while their threads idle, and across `fork`.
//!
//! **Idle threads.** A heap whose gate was not passed between two ticks belongs to a thread that is asleep, or busy
//! elsewhere, or on its fast paths all the while. Once per such pause the helper closes the gate, gives back slabs of which other threads have freed
//! what was left, and spare units; slabs in which the thread still has a block it leaves alone, as that may be freed this moment. What stays is the lists
//! `malloc` pops from, at most one slab a class. A thread that is allocating is never disturbed. A heap without a thread gives those lists back too.
//!
//! **Fork.** The forking thread takes the few locks in one fixed order, helper's round, heap creation, gates, page
//! layer, so that in the child no slow path is half done. Fast paths may be: a thread that is stopped between two stores
//! leaves a block that is on no list, or a count one too high, never a block on two lists. So the child may
//! adopt the heaps of the threads it does not have. A gate that does not come free in time (its thread is itself
//! stopped in a signal handler), or cannot be closed for want of `membarrier`, costs the child that heap's
//! free memory, and nothing else.

use crate::heap::{Heap, NOBODY};
use crate::{registry, tls};
use core::sync::atomic::{AtomicBool, Ordering};
use vellum_pages::{Pages, Severity};
use vellum_sys::{Caps, Lock, barrier, caps};

/// The tenant of a heap that nobody may use in this process.
const LOST: i32 = -1;
/// Looks at an occupied gate before fork goes on without that heap.
const FORK_PATIENCE: u32 = 20_000;

/// The most ticks between two looks at the same unfinished slabs.
const PAUSE_MAX: u32 = 64;

/// The next round looks at everything.
static FORCED: AtomicBool = AtomicBool::new(false);

/// One round of the helper, or one fork, at a time.
static ROUND: Lock = Lock::new();

/// Prepares what must be prepared before the program runs: while there is one thread, it costs least.
pub fn start() {
    registry::make_key();
    crate::foreign::note_break();
    barrier::register();
}

/// Tells the process's counters what heaps have counted privately: the calling thread's.
pub fn flush_counts() {
    if let Some(heap) = registry::current()
        && heap.gate.enter()
    {
        heap.flush_counts();
        heap.gate.leave();
    }
}

/// Looks after the heaps of idle threads. Runs on the page layer's helper: no thread-locals, no waiting.
pub(crate) fn tick() {
    if !ROUND.try_lock() {
        return;
    }
    let forced = FORCED.swap(false, Ordering::Relaxed);
    let wanting = || registry::all().filter(|heap| wants_care(heap, forced));
    if wanting().next().is_some() && caps::has(Caps::MEMBARRIER) {
        wanting().for_each(|heap| heap.gate.close());
        if barrier::fence_every_thread() {
            registry::all().filter(|heap| heap.gate.is_closed()).for_each(care_for);
        }
        registry::all().for_each(|heap| heap.gate.open());
    }
    for heap in registry::all() {
        heap.seen_turns.set(heap.gate.turns());
        heap.patience.set(heap.patience.get().saturating_sub(1));
    }
    ROUND.unlock();
}

/// Gives back what is free in every heap that can be reached, then everything the page layer keeps. The bytes
/// released.
pub fn trim() -> usize {
    if let Some(heap) = registry::current()
        && heap.gate.enter()
    {
        heap.flush();
        heap.gate.leave();
    }
    // Twice: the first look learns who is idle.
    tick();
    FORCED.store(true, Ordering::Relaxed);
    tick();
    Pages::global().trim(Severity::Everything)
}

fn wants_care(heap: &'static Heap, forced: bool) -> bool {
    let turns = heap.gate.turns();
    let idle = turns == heap.seen_turns.get() && turns & 1 == 0;
    let is_due = || !heap.woken.is_empty() && (forced || heap.patience.get() == 0);
    idle && (heap.swept_turns.get() != turns || is_due())
}

fn care_for(heap: &'static Heap) {
    if heap.gate.is_inside() {
        return;
    }
    if !registry::with_orphan(heap, Heap::flush) {
        heap.drain_finished();
        heap.sweep();
        heap.flush_counts();
        heap.return_spares(0);
        heap.magazine.flush();
    }
    let turns = heap.gate.turns();
    // Slabs that are not finished, of a thread that does nothing about them: nobody tells when they are, so they are looked at now and then.
    let pause = match (heap.woken.is_empty(), heap.swept_turns.replace(turns) == turns) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => (heap.pause.get() * 2).clamp(1, PAUSE_MAX),
    };
    heap.pause.set(pause);
    heap.patience.set(pause);
}

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
    Pages::global().fork_prepare();
}

/// After `fork`, in the parent.
pub fn fork_parent() {
    Pages::global().fork_parent();
    registry::all().filter(|heap| !is_own(heap)).for_each(|heap| heap.gate.open());
    registry::creation().unlock();
    ROUND.unlock();
}

/// After `fork`, in the child, where only the calling thread exists.
pub fn fork_child() {
    Pages::global().fork_child();
    registry::forget_orphans();
    for heap in registry::all().filter(|heap| !is_own(heap)) {
        let quiet = heap.gate.is_closed() && !heap.gate.is_inside();
        let orphan = heap.tenant.load(Ordering::Relaxed) == NOBODY;
        heap.gate.reset_after_fork();
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
    core::ptr::eq(heap, tls::heap())
}
