//! Collections, and figures of the heap.

use crate::{start, vel};
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Collections held off by [`GC_disable`].
static DISABLED: AtomicUsize = AtomicUsize::new(0);
/// Allocated bytes when the last collection asked for had ended.
static MARK: AtomicUsize = AtomicUsize::new(0);

/// Microseconds of a call that collects a little.
const LITTLE_US: c_uint = 1000;
/// The severity by which the page layer gives back all it can.
const ALL: c_int = 3;

/// Collects now.
#[unsafe(no_mangle)]
pub extern "C" fn GC_gcollect() {
    start::ensure();
    // SAFETY: may be called whenever; it does nothing where collection is held off.
    unsafe { vel::vel_gc_collect() };
    MARK.store(vel::stats().allocated_bytes as usize, Relaxed);
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
    if GC_is_disabled() != 0 || stop.is_some_and(|stop| unsafe { stop() } != 0) {
        return 0;
    }
    GC_gcollect();
    1
}

/// Collects for about a millisecond; whether there may be more to do.
#[unsafe(no_mangle)]
pub extern "C" fn GC_collect_a_little() -> c_int {
    start::ensure();
    // SAFETY: may be called whenever.
    unsafe { vel::vel_gc_idle(LITTLE_US) }
}

/// Holds collection off; calls nest.
#[unsafe(no_mangle)]
pub extern "C" fn GC_disable() {
    DISABLED.fetch_add(1, Relaxed);
    // SAFETY: may be called whenever.
    unsafe { vel::vel_gc_hold() };
}

/// Undoes one [`GC_disable`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_enable() {
    if DISABLED.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1)).is_ok() {
        // SAFETY: one hold is undone that was made.
        unsafe { vel::vel_gc_let() };
    }
}

/// Whether collection is held off.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_disabled() -> c_int {
    c_int::from(DISABLED.load(Relaxed) != 0)
}

/// Asks the heap to be `bytes` larger; it grows by itself, without collecting while it is small. 1: nothing failed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_expand_hp(_bytes: usize) -> c_int {
    start::ensure();
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

/// Bytes of blocks and large objects.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_heap_size() -> usize {
    vel::stats().heap_bytes as usize
}

/// Bytes of the heap in which nothing was alive at the last collection, less what was allocated since.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_free_bytes() -> usize {
    let stats = vel::stats();
    stats.heap_bytes.saturating_sub(stats.live_bytes) as usize
}

/// 0: what is given back is no part of the heap any more.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_unmapped_bytes() -> usize {
    0
}

/// Bytes allocated since the last collection that the program asked for.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_bytes_since_gc() -> usize {
    (vel::stats().allocated_bytes as usize).saturating_sub(MARK.load(Relaxed))
}

/// Bytes allocated since the start.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_total_bytes() -> usize {
    vel::stats().allocated_bytes as usize
}

/// Bytes in use: the heap, less what is free.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_memory_use() -> usize {
    vel::stats().live_bytes as usize
}

/// Bytes that were got from the system: the heap and what describes it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_obtained_from_os_bytes() -> usize {
    let stats = vel::stats();
    (stats.heap_bytes + stats.metadata_bytes) as usize
}

/// The five figures at one moment; those whose place is null are left out.
///
/// # Safety
/// Each place is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_get_heap_usage_safe(
    heap: *mut usize,
    free: *mut usize,
    unmapped: *mut usize,
    since: *mut usize,
    total: *mut usize,
) {
    let figures = [
        (heap, GC_get_heap_size()),
        (free, GC_get_free_bytes()),
        (unmapped, GC_get_unmapped_bytes()),
        (since, GC_get_bytes_since_gc()),
        (total, GC_get_total_bytes()),
    ];
    for (place, figure) in figures.into_iter().filter(|(place, _)| !place.is_null()) {
        // SAFETY: the caller vouches for it.
        unsafe { place.write(figure) };
    }
}

/// Milliseconds for which collections have stopped the program.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_full_gc_total_time() -> core::ffi::c_ulong {
    (vel::stats().pause_ns_total / 1_000_000) as core::ffi::c_ulong
}

/// Times are always taken.
#[unsafe(no_mangle)]
pub extern "C" fn GC_start_performance_measurement() {}

/// Prints the heap's figures to standard error.
#[unsafe(no_mangle)]
pub extern "C" fn GC_dump() {
    // SAFETY: a C string of no bytes.
    unsafe { GC_dump_named(core::ptr::null()) };
}

/// The same, with a name.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_dump_named(name: *const c_char) {
    let stats = vel::stats();
    crate::say::line(&[b"libgc (Vellum): ", crate::say::bytes(name)]);
    let figures: [(&[u8], u64, &[u8]); 5] = [
        (b"  collections  ", stats.collections, b""),
        (b"  heap         ", stats.heap_bytes, b" bytes"),
        (b"  alive        ", stats.live_bytes, b" bytes"),
        (b"  metadata     ", stats.metadata_bytes, b" bytes"),
        (b"  paused       ", stats.pause_ns_total / 1000, b" microseconds"),
    ];
    for (text, figure, unit) in figures {
        let mut digits = [0; 20];
        crate::say::line(&[text, decimal(figure, &mut digits), unit]);
    }
}

/// `number` in digits.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

/// Calls `visit(object, bytes, data)` for every object that was found alive, with the world stopped.
#[unsafe(no_mangle)]
pub extern "C" fn GC_enumerate_reachable_objects_inner(
    visit: unsafe extern "C" fn(*mut c_void, usize, *mut c_void),
    data: *mut c_void,
) {
    // SAFETY: the program's own function and data.
    unsafe { vel::vel_gc_walk(visit, data) };
}

/// `GC_start_callback_proc`.
pub type StartCallback = unsafe extern "C" fn();

/// Has `callback` called when a collection begins.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_start_callback(callback: Option<StartCallback>) {
    start::ensure();
    // SAFETY: the program vouches for its function.
    unsafe { vel::vel_gc_on_begin(callback) };
}

/// What [`GC_set_start_callback`] set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_start_callback() -> Option<StartCallback> {
    start::ensure();
    // SAFETY: what was there is put back at once.
    unsafe {
        let now = vel::vel_gc_on_begin(None);
        vel::vel_gc_on_begin(now);
        now
    }
}
