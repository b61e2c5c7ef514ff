//! A collection at the program's request, with the work around it: leaks, overwritten objects, figures.

use crate::variables::{GC_dont_gc, finds_leaks};
use crate::{headers, hooks, leak_round, state, vel};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Allocated bytes when the last collection asked for had ended.
pub(crate) static MARK: AtomicUsize = AtomicUsize::new(0);
/// Freed bytes by then.
pub(crate) static FREED: AtomicUsize = AtomicUsize::new(0);
/// A look is due at the end.
static AT_END: AtomicBool = AtomicBool::new(false);

/// Whether collection is held off.
pub(crate) fn is_disabled() -> bool {
    GC_dont_gc.load(Relaxed) > 0
}

/// Collects, unless that is held off or the program's procedure says not to.
pub(crate) fn collect_if_welcome() {
    if !is_disabled() && !hooks::is_stopped() {
        collect();
    }
}

pub(crate) fn collect() {
    watch_leaks();
    // SAFETY: may be called whenever; it does nothing where collection is held off.
    if unsafe { vel::vel_gc_collect() } == 0 {
        // Now, as what has died may be written over by what came after it.
        headers::look_at_all();
    }
    leak_round::end();
    let stats = vel::stats();
    MARK.store(stats.allocated_bytes as usize, Relaxed);
    FREED.store(stats.freed_bytes as usize, Relaxed);
}

/// Has objects that are made from now on looked after, if leaks are wanted. The heap has started.
pub(crate) fn watch_leaks() {
    if finds_leaks() {
        state::watch_objects();
        if !AT_END.swap(true, Relaxed) {
            // SAFETY: a function that lives as long as the library, which is never unloaded with a heap in
            // use.
            unsafe { libc::atexit(at_end) };
        }
    }
}

extern "C" fn at_end() {
    collect_if_welcome();
}

/// The size that the heap was asked to have.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Has the heap be `bytes` larger than it is, or was asked to be.
pub(crate) fn expand(bytes: usize) {
    let now = vel::stats().heap_bytes as usize;
    let larger = |asked: usize| asked.max(now).saturating_add(bytes);
    let asked = ASKED.fetch_update(Relaxed, Relaxed, |asked| Some(larger(asked))).map_or(0, larger);
    // SAFETY: any size is served.
    unsafe { vel::vel_gc_set_least(asked) };
}
