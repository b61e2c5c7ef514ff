//! Returns free memory of heaps: in the background by the page layer's helper thread, and for `malloc_trim`.
//!
//! A heap is *idle* if its thread did not enter the heap's gate (a lock, [`crate::gate`]) between two ticks
//! of the helper. The thread of an idle heap sleeps, does other work, or takes fast paths only. The helper
//! usually closes the gate once while a heap is idle. It then returns spare units (64 KiB each), and slabs
//! whose last blocks other threads have freed. It does not return slabs in which the thread has a block, as
//! the thread may free the block at this moment. Nor does it change the lists that `malloc` pops from, unless
//! the heap has no thread.
//!
//! Of slabs that stay, the helper returns the pages on which no block is in use ([`crate::scavenge`]). The
//! helper visits a few slabs while a gate is closed, opens the gate for a moment, and continues.

use crate::heap::{Heap, LOST};
use crate::pass::VISITORS_SLABS;
use crate::state::MALLOC;
use crate::{mode, registry, tls};
use core::sync::atomic::Ordering;
use vellum_pages::{Pages, Severity};
use vellum_sys::thread::Patience;
use vellum_sys::{Caps, barrier, caps, clock};

/// The most ticks between two looks at the same unfinished slabs.
const PAUSE_MAX: u32 = 64;
/// The time for passes in one tick.
const PASSES_MS: u64 = 20;

/// Decay times between two withdrawals of unrequested huge pages: each visits every sparse slab.
const WITHDRAWALS_APART: u32 = 2;

/// Adds the private counts of the calling thread's heap to the process's counters.
pub fn flush_counts() {
    if let Some(heap) = tls::current()
        && heap.gate.enter()
    {
        heap.flush_counts();
        heap.gate.leave();
    }
}

/// Does one round of background work, on the page layer's helper: no thread-locals, no waiting.
pub(crate) fn tick() {
    if !MALLOC.helper.round.try_lock() {
        return;
    }
    mode::serve_request();
    let is_short = Pages::global().was_short();
    let is_due =
        MALLOC.helper.ticks.fetch_add(1, Ordering::Relaxed).is_multiple_of(Pages::global().ticks_of_decay());
    if is_due && Pages::global().decays() {
        registry::all().for_each(Heap::request_pass);
    }
    if is_short {
        registry::all().for_each(|heap| heap.pass.request(true));
    }
    rounds(registry::all, false, clock::now_ms() + PASSES_MS);
    note_turns();
    if MALLOC.helper.resting.load(Ordering::Relaxed) > 0 {
        MALLOC.helper.resting.fetch_sub(1, Ordering::Relaxed);
    } else {
        withdraw_huge();
    }
    Pages::global().note_sparse(registry::all().any(|heap| heap.pass.is_sparse()));
    let hook = MALLOC.helper.after_round.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: the pointer was stored by `publish_at_ticks` from a `fn()`.
        let hook: fn() = unsafe { core::mem::transmute(hook) };
        hook();
    }
    MALLOC.helper.round.unlock();
}

/// Returns the free memory of every heap within reach, then the page layer's. The bytes released.
pub fn trim() -> usize {
    let before = MALLOC.returned.load(Ordering::Relaxed);
    trim_heaps();
    let released = Pages::global().trim(Severity::Everything);
    if withdraw_huge() {
        trim_heaps();
    }
    released + (MALLOC.returned.load(Ordering::Relaxed) - before)
}

fn trim_heaps() {
    let own = tls::current();
    if let Some(heap) = own
        && heap.gate.enter()
    {
        heap.flush();
        heap.finish_pass();
        heap.gate.leave();
    }
    // Bounded, as a handler of `fork` may call this while the fork holds the lock.
    let mut patience = Patience::new();
    if MALLOC.helper.round.try_lock_for(&mut patience) {
        note_turns();
        let others = || registry::all().filter(|heap| !own.is_some_and(|own| core::ptr::eq(*heap, own)));
        others().for_each(|heap| heap.pass.request(true));
        // Not the caller's: a signal handler of this thread would wait at its gate for ever.
        rounds(others, true, u64::MAX);
        note_turns();
        MALLOC.helper.round.unlock();
    }
}

/// Withdraws huge pages that no longer pay. Pages that were returned before are then returned once more.
fn withdraw_huge() -> bool {
    let has = Pages::global().withdraw_huge();
    if has {
        MALLOC.helper.resting.store(WITHDRAWALS_APART * Pages::global().ticks_of_decay(), Ordering::Relaxed);
        registry::all().for_each(|heap| heap.pass.request_again());
    }
    has
}

/// Cleans the idle ones of `heaps` once, and then continues their passes until these or the time are over.
fn rounds<I: Iterator<Item = &'static Heap>>(heaps: impl Fn() -> I, forced: bool, until_ms: u64) {
    if !caps::has(Caps::MEMBARRIER) {
        return;
    }
    let mut is_first = true;
    loop {
        let wants = |heap: &&'static Heap| match is_first {
            true => needs_care(heap, forced),
            false => heap.pass.is_due() && is_idle(heap),
        };
        if !heaps().any(|heap| wants(&heap)) {
            return;
        }
        heaps().filter(wants).for_each(|heap| heap.gate.close());
        if !barrier::fence_every_thread() {
            return heaps().for_each(|heap| heap.gate.open());
        }
        for heap in heaps().filter(|heap| heap.gate.is_closed() && !heap.gate.is_inside()) {
            if is_first {
                care_for(heap);
            }
            if heap.pass.is_due() {
                heap.advance_pass(VISITORS_SLABS);
            }
        }
        heaps().for_each(|heap| heap.gate.open());
        is_first = false;
        if clock::now_ms() >= until_ms {
            return;
        }
    }
}

/// Records the turns of every gate: a heap whose gate has the same turns later is idle.
fn note_turns() {
    for heap in registry::all() {
        heap.seen_turns.set(heap.gate.turns());
        heap.patience.set(heap.patience.get().saturating_sub(1));
    }
}

fn is_idle(heap: &Heap) -> bool {
    let turns = heap.gate.turns();
    turns == heap.seen_turns.get() && turns & 1 == 0 && heap.tenant.load(Ordering::Relaxed) != LOST
}

fn needs_care(heap: &'static Heap, forced: bool) -> bool {
    let is_swept = heap.swept_turns.get() == heap.gate.turns();
    let is_due = || !heap.woken.is_empty() && (forced || heap.patience.get() == 0);
    is_idle(heap) && (!is_swept || heap.pass.is_due() || is_due())
}

/// Credits blocks that other threads have freed, and returns free slabs. Once a tick, not before each part of
/// a pass, as this walks all slabs.
fn care_for(heap: &'static Heap) {
    if !registry::with_orphan(heap, Heap::flush) {
        heap.drain_finished();
        heap.sweep();
        heap.flush_counts();
        heap.return_spares(0);
        heap.magazine.flush();
    }
    let turns = heap.gate.turns();
    // Slabs that are not finished, of an idle thread: no event follows when they are, so they are visited now
    // and then.
    let pause = match (heap.woken.is_empty(), heap.swept_turns.replace(turns) == turns) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => (heap.pause.get() * 2).clamp(1, PAUSE_MAX),
    };
    heap.pause.set(pause);
    heap.patience.set(pause);
}
