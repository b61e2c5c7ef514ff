//! Functions that collect, hold collection off, or set the heap's size.

use crate::collection::{self, collect, collect_if_welcome, is_disabled};
use crate::forms::{same, values};
use crate::state::{INCREMENTAL, MAX_HEAP};
use crate::variables::GC_dont_gc;
use crate::{hooks, start, state, vel};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::Ordering::Relaxed;

/// Microseconds of `GC_collect_a_little`.
const LITTLE_US: c_uint = 1000;
/// The severity at which the page layer returns all free memory.
const ALL: c_int = 3;

/// Collects now.
#[unsafe(no_mangle)]
pub extern "C" fn GC_gcollect() {
    start::ensure();
    collect_if_welcome();
}

/// Collects, and returns unused memory to the kernel at once.
#[unsafe(no_mangle)]
pub extern "C" fn GC_gcollect_and_unmap() {
    GC_gcollect();
    // SAFETY: trimming only returns free memory.
    unsafe { vel::vel_trim(ALL) };
}

/// Collects unless `stop` returns nonzero; returns whether it collected. `stop` is called once.
#[unsafe(no_mangle)]
pub extern "C" fn GC_try_to_collect(stop: Option<unsafe extern "C" fn() -> c_int>) -> c_int {
    start::ensure();
    // SAFETY: the program's `stop` has no arguments.
    let is_stopped = || stop.map_or_else(hooks::is_stopped, |stop| unsafe { stop() } != 0);
    if is_disabled() || is_stopped() {
        return 0;
    }
    collect();
    1
}

/// Collects for about a millisecond; returns 1 if there may be more to do.
#[unsafe(no_mangle)]
pub extern "C" fn GC_collect_a_little() -> c_int {
    start::ensure();
    if is_disabled() {
        return 0;
    }
    // SAFETY: the function has no preconditions.
    unsafe { vel::vel_gc_idle(LITTLE_US) }
}

/// Begins an incremental collection, if collections are incremental and collection is not held off.
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
    // This call waits for the heap's lock, so a collection that is running has ended.
    // SAFETY: the function has no preconditions.
    unsafe { vel::vel_gc_due() };
}

same! {
    /// [`GC_disable`], which already waits for a running collection.
    GC_finish_and_disable() = GC_disable;
}

/// Undoes one [`GC_disable`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_enable() {
    let _ = GC_dont_gc.fetch_update(Relaxed, Relaxed, |count| (count > 0).then(|| count - 1));
}

values! {
    /// Returns 1 if collection is held off.
    GC_is_disabled: c_int = c_int::from(is_disabled());
    /// The number of collections.
    GC_get_gc_no: usize = vel::stats().collections as usize;
}

/// Lets the heap grow by `bytes` beyond its size, or beyond an earlier request, before it collects. Memory is
/// mapped at its first use. Always returns 1: success.
#[unsafe(no_mangle)]
pub extern "C" fn GC_expand_hp(bytes: usize) -> c_int {
    start::ensure();
    collection::expand(bytes);
    1
}

/// Sets the heap's limit in bytes; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_max_heap_size(bytes: usize) {
    MAX_HEAP.store(bytes, Relaxed);
    if state::is_started() {
        // SAFETY: the function accepts any limit.
        unsafe { vel::vel_gc_set_limit(bytes) };
    }
}
