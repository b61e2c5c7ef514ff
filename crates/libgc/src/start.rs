//! Starting the heap, with the settings that the program made before and those of the environment.

use crate::environment::{self, Wishes};
use crate::state::{self, INCREMENTAL, MARKERS, MAX_HEAP};
use crate::variables::GC_print_stats;
use crate::{collection, dump, forks, hooks, records, stacks, variables, vel, visitor};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::{
    AtomicI32,
    Ordering::{Acquire, Relaxed, Release},
};

/// The thread that starts the heap.
static STARTER: AtomicI32 = AtomicI32::new(0);

fn this_thread() -> i32 {
    // SAFETY: plain call. glibc has a function for it since 2.30 only.
    (unsafe { libc::syscall(libc::SYS_gettid) }) as i32
}

/// Starts the heap unless it has started, and makes an object.
#[cold]
#[inline(never)]
pub(crate) fn then<R>(make: impl FnOnce() -> R) -> R {
    ensure();
    make()
}

/// Starts the heap unless it has started.
#[inline(always)]
pub(crate) fn ensure() {
    if !state::is_started() {
        GC_init();
    }
}

/// Starts the heap.
#[cold]
#[unsafe(no_mangle)]
pub extern "C" fn GC_init() {
    if !state::begin() {
        // Another thread's start must be over before anything is allocated; what this one calls while it
        // starts goes on.
        while !state::is_started() && STARTER.load(Acquire) != this_thread() {
            // SAFETY: plain call.
            unsafe { libc::sched_yield() };
        }
        return;
    }
    STARTER.store(this_thread(), Release);
    let wishes = environment::read();
    let Wishes { maximum_bytes, initial_bytes, divisor, slice_us, markers, .. } = wishes;
    if let Some(divisor) = divisor {
        variables::GC_set_free_space_divisor(divisor);
    }
    if wishes.finds_leaks {
        variables::GC_find_leak.store(1, Relaxed);
    }
    let config = vel::Config {
        config_bytes: size_of::<vel::Config>(),
        limit_bytes: maximum_bytes.unwrap_or_else(|| MAX_HEAP.load(Relaxed)),
        divisor: c_uint::try_from(variables::GC_get_free_space_divisor()).unwrap_or(c_uint::MAX).max(1),
        markers: markers.unwrap_or_else(|| MARKERS.load(Relaxed)).min(MARKERS_MAX),
        slice_us: slice_us.unwrap_or(if INCREMENTAL.load(Relaxed) != 0 { SLICE_US } else { 0 }),
        sticky_marks: c_int::from(!wishes.only_whole),
        ..vel::Config::default()
    };
    // It may have been started by a library that uses Vellum's own interface; then its settings stand.
    // SAFETY: the structure says its own size.
    unsafe { vel::vel_gc_init(&raw const config) };
    if wishes.never_collects {
        variables::GC_dont_gc.fetch_add(1, Relaxed);
    }
    apply(wishes);
    forks::prepare();
    // The thread that starts the heap is known, and may change stacks.
    records::register();
    stacks::heap_started();
    hooks::begin();
    visitor::begin();
    state::started();
    collection::watch_leaks();
    if let Some(bytes) = initial_bytes {
        collection::expand(bytes);
    }
}

/// Applies what the environment asks for and the program can ask about.
fn apply(wishes: Wishes) {
    if wishes.slice_us.is_some() {
        INCREMENTAL.store(1, Relaxed);
    }
    if wishes.prints {
        GC_print_stats.store(1, Relaxed);
    }
    // SAFETY: a function that lives as long as the library, which is never unloaded with a heap in use.
    unsafe { libc::atexit(figures_at_end) };
}

extern "C" fn figures_at_end() {
    if GC_print_stats.load(Relaxed) != 0 {
        dump::GC_dump();
    }
}

/// The most threads that mark: see `struct vel_gc_config`.
const MARKERS_MAX: c_uint = 16;

/// Microseconds of a slice where collections are asked to be incremental and no time is named.
const SLICE_US: c_uint = 1000;

/// Whether the heap has started.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_init_called() -> c_int {
    c_int::from(state::has_begun())
}

/// Called at a program's end there; there is nothing to undo.
#[unsafe(no_mangle)]
pub extern "C" fn GC_deinit() {}
