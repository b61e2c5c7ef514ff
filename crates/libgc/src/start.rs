//! Starts the heap, with the settings that the program made earlier and those of the environment.

use crate::environment::{self, Wishes};
use crate::forms::{nothing, values};
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
    // SAFETY: gettid has no preconditions. glibc has a function for it only since 2.30.
    (unsafe { libc::syscall(libc::SYS_gettid) }) as i32
}

/// Starts the heap if necessary, then makes an object.
#[cold]
#[inline(never)]
pub(crate) fn then<R>(make: impl FnOnce() -> R) -> R {
    ensure();
    make()
}

/// Starts the heap if necessary.
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
        // Other threads wait for the end of the start before they allocate. Calls that the starting thread
        // makes during the start continue.
        while !state::is_started() && STARTER.load(Acquire) != this_thread() {
            // SAFETY: sched_yield has no preconditions.
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
    // A library that uses Vellum's own interface may have started the heap; then its settings stand.
    // SAFETY: `config` is a local whose first field has its size.
    unsafe { vel::vel_gc_init(&raw const config) };
    if wishes.never_collects {
        variables::GC_dont_gc.fetch_add(1, Relaxed);
    }
    apply(wishes);
    forks::prepare();
    // The starting thread is registered, and may change stacks.
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

/// Applies the environment's settings that the program can query.
fn apply(wishes: Wishes) {
    if wishes.slice_us.is_some() {
        INCREMENTAL.store(1, Relaxed);
    }
    if wishes.prints {
        GC_print_stats.store(1, Relaxed);
    }
    // SAFETY: the function exists as long as the library, which is never unloaded (`nodelete`).
    unsafe { libc::atexit(figures_at_end) };
}

extern "C" fn figures_at_end() {
    if GC_print_stats.load(Relaxed) != 0 {
        dump::GC_dump();
    }
}

/// The maximum number of marking threads: see `struct vel_gc_config`.
const MARKERS_MAX: c_uint = 16;

/// Microseconds of a slice, if collections are incremental and no time is set.
const SLICE_US: c_uint = 1000;

values! {
    /// Returns 1 if the heap's start has begun.
    GC_is_init_called: c_int = c_int::from(state::has_begun());
}

nothing! {
    /// Has no effect: libgc programs call it at their end.
    GC_deinit();
}
