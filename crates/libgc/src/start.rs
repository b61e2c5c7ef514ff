//! The heap's first moment: what was set before it, and what the environment says.

use crate::environment::{self, Wishes};
use crate::{collect, events, finalize, leaks, lock, records, roots, settings, threads, variables, vel};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::{
    AtomicI32, AtomicU8,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const NOT_YET: u8 = 0;
const STARTING: u8 = 1;
const STARTED: u8 = 2;
/// It has, and objects are looked after as they are made (`leaks`, `checked`).
const WATCHED: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(NOT_YET);

/// The thread that starts the heap.
static STARTER: AtomicI32 = AtomicI32::new(0);

fn this_thread() -> i32 {
    // SAFETY: plain call.
    unsafe { libc::gettid() }
}

/// Whether [`GC_init`] has been called, by the program or by what it called first.
pub(crate) fn is_started() -> bool {
    STATE.load(Acquire) >= STARTED
}

/// Whether the heap has started and nothing is to be done for objects but to make them.
#[inline(always)]
pub(crate) fn is_plain() -> bool {
    STATE.load(Acquire) == STARTED
}

/// Has objects looked after as they are made. The heap has started.
pub(crate) fn watch_objects() {
    let _ = STATE.compare_exchange(STARTED, WATCHED, AcqRel, Relaxed);
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
    if !is_started() {
        GC_init();
    }
}

/// Starts the heap.
#[cold]
#[unsafe(no_mangle)]
pub extern "C" fn GC_init() {
    if STATE.compare_exchange(NOT_YET, STARTING, AcqRel, Relaxed).is_err() {
        // Another thread's start must be over before anything is allocated; what this one calls while it starts goes on.
        while !is_started() && STARTER.load(Acquire) != this_thread() {
            // SAFETY: plain call.
            unsafe { libc::sched_yield() };
        }
        return;
    }
    STARTER.store(this_thread(), Release);
    let wishes = environment::read();
    let Wishes { maximum_bytes, initial_bytes, divisor, slice_us, .. } = wishes;
    if let Some(divisor) = divisor {
        variables::GC_set_free_space_divisor(divisor);
    }
    if wishes.finds_leaks {
        variables::GC_find_leak.store(1, Relaxed);
    }
    let config = vel::Config {
        config_bytes: size_of::<vel::Config>(),
        limit_bytes: maximum_bytes.unwrap_or_else(settings::max_heap_bytes),
        divisor: c_uint::try_from(variables::GC_get_free_space_divisor()).unwrap_or(c_uint::MAX).max(1),
        slice_us: slice_us.unwrap_or(if settings::GC_is_incremental_mode() != 0 { SLICE_US } else { 0 }),
        ..vel::Config::default()
    };
    // It may have been started by a library that uses Vellum's own interface; then its settings stand.
    // SAFETY: the structure says its own size.
    unsafe { vel::vel_gc_init(&raw const config) };
    if wishes.never_collects {
        variables::GC_dont_gc.fetch_add(1, Relaxed);
    }
    settings::told_of(wishes);
    lock::prepare();
    // The thread that starts the heap is known, and may change stacks.
    records::register();
    threads::heap_started();
    events::begin();
    finalize::begin();
    roots::begin();
    crate::kinds::begin_roots();
    STATE.store(STARTED, Release);
    leaks::look();
    if let Some(bytes) = initial_bytes {
        collect::GC_expand_hp(bytes);
    }
}

/// Microseconds of a slice where collections are asked to be incremental and no time is named.
const SLICE_US: c_uint = 1000;

/// Whether the heap has started.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_init_called() -> c_int {
    c_int::from(STATE.load(Relaxed) != NOT_YET)
}

/// Called at a program's end there; there is nothing to undo.
#[unsafe(no_mangle)]
pub extern "C" fn GC_deinit() {}
