//! Collects at the program's request, reports leaks and overwritten objects, and updates counters.

use crate::variables::{GC_dont_gc, finds_leaks};
use crate::{headers, hooks, leak_round, state, vel};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Allocated bytes at the end of the last requested collection.
pub(crate) static MARK: AtomicUsize = AtomicUsize::new(0);
/// Freed bytes at that time.
pub(crate) static FREED: AtomicUsize = AtomicUsize::new(0);
/// True if a collection at the end of the program is registered.
static AT_END: AtomicBool = AtomicBool::new(false);

/// True if collection is held off.
pub(crate) fn is_disabled() -> bool {
    GC_dont_gc.load(Relaxed) > 0
}

/// Collects, unless collection is held off or the program's procedure prevents it.
pub(crate) fn collect_if_welcome() {
    if !is_disabled() && !hooks::is_stopped() {
        collect();
    }
}

pub(crate) fn collect() {
    watch_leaks();
    // SAFETY: the function has no preconditions; it does nothing while collection is held off.
    if unsafe { vel::vel_gc_collect() } == 0 {
        // At once, because new objects may overwrite dead ones.
        headers::look_at_all();
    }
    leak_round::end();
    let stats = vel::stats();
    MARK.store(stats.allocated_bytes as usize, Relaxed);
    FREED.store(stats.freed_bytes as usize, Relaxed);
}

/// Watches new objects, if leak detection is on. The heap has started.
pub(crate) fn watch_leaks() {
    if finds_leaks() {
        state::watch_objects();
        if !AT_END.swap(true, Relaxed) {
            // SAFETY: the function exists as long as the library, which is never unloaded (`nodelete`).
            unsafe { libc::atexit(at_end) };
        }
    }
}

extern "C" fn at_end() {
    collect_if_welcome();
}

/// The requested heap size.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Lets the heap grow by `bytes` beyond its size, or beyond an earlier request.
pub(crate) fn expand(bytes: usize) {
    let now = vel::stats().heap_bytes as usize;
    let larger = |asked: usize| asked.max(now).saturating_add(bytes);
    let asked = ASKED.fetch_update(Relaxed, Relaxed, |asked| Some(larger(asked))).map_or(0, larger);
    // SAFETY: the function accepts any size.
    unsafe { vel::vel_gc_set_least(asked) };
}
