//! Functions that collect, hold collection off, or set the heap's size.

use crate::collection::{self, collect, collect_if_welcome, is_disabled};
use crate::state::{INCREMENTAL, MAX_HEAP};
use crate::variables::GC_dont_gc;
use crate::{hooks, start, state, vel};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::Ordering::Relaxed;

/// Microseconds of a call that collects a little.
const LITTLE_US: c_uint = 1000;
/// The severity by which the page layer gives back all it can.
const ALL: c_int = 3;

/// Collects now.
#[unsafe(no_mangle)]
pub extern "C" fn GC_gcollect() {
    start::ensure();
    collect_if_welcome();
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
    let is_stopped = || stop.map_or_else(hooks::is_stopped, |stop| unsafe { stop() } != 0);
    if is_disabled() || is_stopped() {
        return 0;
    }
    collect();
    1
}

/// Collects for about a millisecond; whether there may be more to do.
#[unsafe(no_mangle)]
pub extern "C" fn GC_collect_a_little() -> c_int {
    start::ensure();
    if is_disabled() {
        return 0;
    }
    // SAFETY: may be called whenever.
    unsafe { vel::vel_gc_idle(LITTLE_US) }
}

/// Begins a collection in slices, where they are made so, unless the program says not to collect.
#[unsafe(no_mangle)]
pub extern "C" fn GC_start_incremental_collection() {
    if INCREMENTAL.load(Relaxed) != 0 {
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

/// The same: [`GC_disable`] lets a collection end that is on.
#[unsafe(no_mangle)]
pub extern "C" fn GC_finish_and_disable() {
    GC_disable();
}

/// Undoes one [`GC_disable`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_enable() {
    let _ = GC_dont_gc.fetch_update(Relaxed, Relaxed, |count| (count > 0).then(|| count - 1));
}

/// Whether collection is held off.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_disabled() -> c_int {
    c_int::from(is_disabled())
}

/// Asks the heap to be `bytes` larger than it is, or was asked to be: it does not collect before. Its memory
/// comes as it is used. 1: nothing failed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_expand_hp(bytes: usize) -> c_int {
    start::ensure();
    collection::expand(bytes);
    1
}

/// Sets the heap's limit in bytes; 0: none.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_max_heap_size(bytes: usize) {
    MAX_HEAP.store(bytes, Relaxed);
    if state::is_started() {
        // SAFETY: any limit is served.
        unsafe { vel::vel_gc_set_limit(bytes) };
    }
}

/// Collections so far.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_gc_no() -> usize {
    vel::stats().collections as usize
}
