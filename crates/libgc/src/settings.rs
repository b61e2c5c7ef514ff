//! What can be set and asked, and the exported variables.
//!
//! Most of libgc's settings steer its own way of collecting. Those are kept and told when asked for, and change nothing:
//! see `docs/libgc.md`.

use crate::environment::Wishes;
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// The interface's version: 8.2.2.
const VERSION: c_uint = 8 << 16 | 2 << 8 | 2;

/// `GC_all_interior_pointers`: whether pointers into an object, and just past it, keep it.
#[unsafe(no_mangle)]
pub static GC_all_interior_pointers: AtomicI32 = AtomicI32::new(1);
/// `GC_gc_no`: not counted here; see `GC_get_gc_no`.
static MAX_HEAP: AtomicUsize = AtomicUsize::new(0);
static INCREMENTAL: AtomicI32 = AtomicI32::new(0);

/// `GC_oom_func`: what to return when there is no memory.
pub type OomFunction = unsafe extern "C" fn(bytes: usize) -> *mut c_void;

static OOM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

pub(crate) fn max_heap_bytes() -> usize {
    MAX_HEAP.load(Relaxed)
}

pub(crate) fn set_max_heap(bytes: usize) {
    MAX_HEAP.store(bytes, Relaxed);
}

/// What the environment said and the program can ask for.
pub(crate) fn told_of(wishes: Wishes) {
    if wishes.prints {
        GC_print_stats.store(1, Relaxed);
        // SAFETY: a function that lives as long as the library, which is never unloaded with a heap in use.
        unsafe { libc::atexit(figures_at_end) };
    }
}

extern "C" fn figures_at_end() {
    crate::collect::GC_dump();
}

/// What the program's procedure says when there is no memory for `bytes` bytes.
#[cold]
pub(crate) fn out_of_memory(bytes: usize) -> *mut c_void {
    // SAFETY: the program's own function.
    unsafe { GC_get_oom_fn()(bytes) }
}

extern "C" fn null(_bytes: usize) -> *mut c_void {
    null_mut()
}

/// Has `function` called when there is no memory; what it returns is returned.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_oom_fn(function: Option<OomFunction>) {
    OOM.store(function.map_or(null_mut(), |function| function as *mut c_void), Relaxed);
}

/// What [`GC_set_oom_fn`] set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_oom_fn() -> OomFunction {
    // SAFETY: null or what was set, and an option of a function has null for none.
    let set = unsafe { core::mem::transmute::<*mut c_void, Option<OomFunction>>(OOM.load(Relaxed)) };
    set.unwrap_or(null)
}

/// Ends the process for want of memory.
#[unsafe(no_mangle)]
pub extern "C" fn GC_abort_on_oom() {
    crate::say::line(&[b"libgc: out of memory"]);
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}

/// The interface's version.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_version() -> c_uint {
    VERSION
}

/// Whether pointers into an object, and just past it, keep it. Those into it always do; to be called before the heap starts.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_all_interior_pointers(on: c_int) {
    GC_all_interior_pointers.store(on, Relaxed);
}

/// What [`GC_set_all_interior_pointers`] set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_all_interior_pointers() -> c_int {
    GC_all_interior_pointers.load(Relaxed)
}

/// Has collections made in slices, if called before the heap starts.
#[unsafe(no_mangle)]
pub extern "C" fn GC_enable_incremental() {
    if crate::start::is_started() {
        crate::say::warn(
            c"libgc: GC_enable_incremental: too late, the heap has started; collections are made at one go\n",
            0,
        );
    } else {
        INCREMENTAL.store(1, Relaxed);
    }
    crate::start::ensure();
}

/// Whether collections are made in slices.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_incremental_mode() -> c_int {
    INCREMENTAL.load(Relaxed)
}

/// 0: nothing is protected from system calls.
#[unsafe(no_mangle)]
pub extern "C" fn GC_incremental_protection_needs() -> c_int {
    0
}

/// Settings that are kept and change nothing.
macro_rules! kept {
    ($($type:ty, $cell:ident: $atomic:ident = $default:expr, $set:ident, $get:ident;)*) => { $(
        static $cell: $atomic = $atomic::new($default);
        /// Kept, and changes nothing.
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(value: $type) {
            $cell.store(value as _, Relaxed);
        }
        /// What was set.
        #[unsafe(no_mangle)]
        pub extern "C" fn $get() -> $type {
            $cell.load(Relaxed) as $type
        }
    )* };
}

kept! {
    c_int, DONT_EXPAND: AtomicI32 = 0, GC_set_dont_expand, GC_get_dont_expand;
    c_int, DONT_PRECOLLECT: AtomicI32 = 0, GC_set_dont_precollect, GC_get_dont_precollect;
    c_int, FULL_FREQUENCY: AtomicI32 = 19, GC_set_full_freq, GC_get_full_freq;
    usize, DIVISOR: AtomicUsize = 3, GC_set_free_space_divisor, GC_get_free_space_divisor;
    usize, MAX_RETRIES: AtomicUsize = 0, GC_set_max_retries, GC_get_max_retries;
    c_ulong, TIME_LIMIT: AtomicUsize = 50, GC_set_time_limit, GC_get_time_limit;
    usize, NON_GC_BYTES: AtomicUsize = 0, GC_set_non_gc_bytes, GC_get_non_gc_bytes;
    c_int, RATE: AtomicI32 = 10, GC_set_rate, GC_get_rate;
    c_int, ATTEMPTS: AtomicI32 = 1, GC_set_max_prior_attempts, GC_get_max_prior_attempts;
    c_int, HANDLE_FORK: AtomicI32 = 1, GC_set_handle_fork, GC_get_handle_fork;
    c_int, UNMAP: AtomicI32 = 1, GC_set_force_unmap_on_gcollect, GC_get_force_unmap_on_gcollect;
    usize, MIN_BYTES: AtomicUsize = 0, GC_set_min_bytes_allocd, GC_get_min_bytes_allocd;
}

/// `GC_print_stats`: figures are printed at the end.
#[unsafe(no_mangle)]
pub static GC_print_stats: AtomicI32 = AtomicI32::new(0);

/// 0: one thread marks.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_parallel() -> c_int {
    0
}

/// The collector chooses how many threads mark.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_markers_count(_count: c_uint) {}
