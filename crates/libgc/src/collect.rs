//! Collections, and holding them off.

use crate::variables::GC_dont_gc;
use crate::{checked, events, leaks, start, vel};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Allocated bytes when the last collection asked for had ended.
pub(crate) static MARK: AtomicUsize = AtomicUsize::new(0);
/// Freed bytes by then.
pub(crate) static FREED: AtomicUsize = AtomicUsize::new(0);

/// Microseconds of a call that collects a little.
const LITTLE_US: c_uint = 1000;
/// The severity by which the page layer gives back all it can.
const ALL: c_int = 3;

/// Collects now.
#[unsafe(no_mangle)]
pub extern "C" fn GC_gcollect() {
    start::ensure();
    if GC_is_disabled() == 0 && !events::is_stopped() {
        collect();
    }
}

fn collect() {
    leaks::look();
    // SAFETY: may be called whenever; it does nothing where collection is held off.
    if unsafe { vel::vel_gc_collect() } == 0 {
        // Now, as what has died may be written over by what came after it.
        checked::look_at_all();
    }
    let stats = vel::stats();
    MARK.store(stats.allocated_bytes as usize, Relaxed);
    FREED.store(stats.freed_bytes as usize, Relaxed);
}

/// Collects, and gives memory that is not needed back to the system at once.
#[unsafe(no_mangle)]
pub extern "C" fn GC_gcollect_and_unmap() {
    GC_gcollect();
    // SAFETY: gives back only what is free.
    unsafe { vel::vel_trim(ALL) };
}

/// Collects unless `stop` says at once that it should not; whether it did. It is not asked again.
#[unsafe(no_mangle)]
pub extern "C" fn GC_try_to_collect(stop: Option<unsafe extern "C" fn() -> c_int>) -> c_int {
    start::ensure();
    // SAFETY: the program's own function.
    let is_stopped = || stop.map_or_else(events::is_stopped, |stop| unsafe { stop() } != 0);
    if GC_is_disabled() != 0 || is_stopped() {
        return 0;
    }
    collect();
    1
}

/// Collects for about a millisecond; whether there may be more to do.
#[unsafe(no_mangle)]
pub extern "C" fn GC_collect_a_little() -> c_int {
    start::ensure();
    if GC_is_disabled() != 0 {
        return 0;
    }
    // SAFETY: may be called whenever.
    unsafe { vel::vel_gc_idle(LITTLE_US) }
}

/// Begins a collection in slices, where they are made so, unless the program says not to collect.
#[unsafe(no_mangle)]
pub extern "C" fn GC_start_incremental_collection() {
    if crate::settings::GC_is_incremental_mode() != 0 {
        GC_collect_a_little();
    }
}

/// Holds collection off; calls nest.
#[unsafe(no_mangle)]
pub extern "C" fn GC_disable() {
    GC_dont_gc.fetch_add(1, Relaxed);
    // By then the one that may have begun has ended.
    // SAFETY: may be called whenever.
    unsafe { vel::vel_gc_due() };
}

/// Undoes one [`GC_disable`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_enable() {
    let _ = GC_dont_gc.fetch_update(Relaxed, Relaxed, |count| (count > 0).then(|| count - 1));
}

/// Whether collection is held off.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_disabled() -> c_int {
    c_int::from(GC_dont_gc.load(Relaxed) > 0)
}

/// The size that the heap was asked to have.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Asks the heap to be `bytes` larger than it is, or was asked to be: it does not collect before. Its memory comes as it is used. 1: nothing failed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_expand_hp(bytes: usize) -> c_int {
    start::ensure();
    let now = vel::stats().heap_bytes as usize;
    let larger = |asked: usize| asked.max(now).saturating_add(bytes);
    let asked = ASKED.fetch_update(Relaxed, Relaxed, |asked| Some(larger(asked))).map_or(0, larger);
    // SAFETY: any size is served.
    unsafe { vel::vel_gc_set_least(asked) };
    1
}

/// Sets the heap's limit in bytes; 0: none.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_max_heap_size(bytes: usize) {
    crate::settings::set_max_heap(bytes);
    if start::is_started() {
        // SAFETY: any limit is served.
        unsafe { vel::vel_gc_set_limit(bytes) };
    }
}

/// Collections so far.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_gc_no() -> usize {
    vel::stats().collections as usize
}
