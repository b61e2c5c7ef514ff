//! Background work on the heaps of idle threads, by the page layer's helper; and starting and trimming.
//!
//! A heap whose gate was not passed between two ticks belongs to a thread that is asleep, or busy
//! elsewhere, or on its fast paths all the while. Once per such pause the helper closes the gate, gives back
//! slabs of which other threads have freed what was left, and spare units; slabs in which the thread still
//! has a block it leaves alone, as that may be freed this moment. What stays is the lists `malloc` pops from,
//! at most one slab a class. A thread that is allocating is never disturbed. A heap without a thread gives
//! those lists back too.
//!
//! Slabs that cannot go as a whole give back the pages on which nothing is in use: see [`crate::scavenge`]. A
//! round holds a gate for some slabs only, and then opens it for a moment.

use crate::heap::{Heap, LOST};
use crate::pass::{VISITORS_SLABS, returned};
use crate::state::MALLOC;
use crate::{mode, registry, tls};
use core::sync::atomic::Ordering;
use vellum_pages::{Pages, Severity};
use vellum_sys::thread::Patience;
use vellum_sys::{Caps, barrier, caps, clock};

/// The most ticks between two looks at the same unfinished slabs.
const PAUSE_MAX: u32 = 64;
/// How long the helper goes on with passes in one tick.
const PASSES_MS: u64 = 20;

/// The decay times between two withdrawals of huge pages that nobody asked for: each has every sparse slab
/// visited.
const WITHDRAWALS_APART: u32 = 2;

/// Has `hook` called after each of the helper's rounds.
pub(crate) fn after_rounds(hook: fn()) {
    MALLOC.helper.after_round.store(hook as *mut (), Ordering::Release);
}

/// Tells the process's counters what heaps have counted privately: the calling thread's.
pub fn flush_counts() {
    if let Some(heap) = tls::current()
        && heap.gate.enter()
    {
        heap.flush_counts();
        heap.gate.leave();
    }
}

/// Looks after the heaps of idle threads. Runs on the page layer's helper: no thread-locals, no waiting.
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
        // SAFETY: the pointer was stored by `after_rounds` from a `fn()`.
        let hook: fn() = unsafe { core::mem::transmute(hook) };
        hook();
    }
    MALLOC.helper.round.unlock();
}

/// Gives back what is free in every heap that can be reached, then everything the page layer keeps. The bytes
/// released.
pub fn trim() -> usize {
    let before = returned();
    trim_heaps();
    let released = Pages::global().trim(Severity::Everything);
    if withdraw_huge() {
        trim_heaps();
    }
    released + (returned() - before)
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
    // Bounded, as a handler of `fork` may ask while the fork holds the lock.
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

/// Withdraws huge pages if they are no longer worth it, and then has all given back once more that went
/// before.
fn withdraw_huge() -> bool {
    let has = Pages::global().withdraw_huge();
    if has {
        MALLOC.helper.resting.store(WITHDRAWALS_APART * Pages::global().ticks_of_decay(), Ordering::Relaxed);
        registry::all().for_each(|heap| heap.pass.request_again());
    }
    has
}

/// Looks after those of `heaps` that are idle and want it: once, and then goes on with their passes until
/// these are over or the time is.
fn rounds<I: Iterator<Item = &'static Heap>>(heaps: impl Fn() -> I, forced: bool, until_ms: u64) {
    if !caps::has(Caps::MEMBARRIER) {
        return;
    }
    let mut is_first = true;
    loop {
        let wants = |heap: &&'static Heap| match is_first {
            true => wants_care(heap, forced),
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

/// Notes who has passed a gate since the last time: the others are idle.
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

fn wants_care(heap: &'static Heap, forced: bool) -> bool {
    let is_swept = heap.swept_turns.get() == heap.gate.turns();
    let is_due = || !heap.woken.is_empty() && (forced || heap.patience.get() == 0);
    is_idle(heap) && (!is_swept || heap.pass.is_due() || is_due())
}

/// Takes in what others have freed, and gives back what is free as a whole. It walks all slabs, so it is done
/// once a tick and not before each part of a pass.
fn care_for(heap: &'static Heap) {
    if !registry::with_orphan(heap, Heap::flush) {
        heap.drain_finished();
        heap.sweep();
        heap.flush_counts();
        heap.return_spares(0);
        heap.magazine.flush();
    }
    let turns = heap.gate.turns();
    // Slabs that are not finished, of a thread that does nothing about them: nobody tells when they are, so
    // they are looked at now and then.
    let pause = match (heap.woken.is_empty(), heap.swept_turns.replace(turns) == turns) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => (heap.pause.get() * 2).clamp(1, PAUSE_MAX),
    };
    heap.pause.set(pause);
    heap.patience.set(pause);
}
