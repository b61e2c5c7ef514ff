//! The hooks that the heap calls, and the program's callbacks behind them: events of collections and threads,
//! due finalizers, and the filter for libraries' data.
//!
//! One hook feeds [`GC_gc_no`], the event callbacks and the callback for heap growth. Programs set their
//! callbacks in `events`, `finalize` and `roots`.
//!
//! Invariant: the hooks run with the heap's lock held, most with the world stopped, so they call nothing of
//! the heap. The exception is the hook for due finalizers, which runs after a collection.

use crate::variables::{
    self, GC_dont_gc, GC_finalize_on_demand, GC_finalizer_notifier, GC_gc_no, GC_no_dls, GC_on_heap_resize,
    Notifier, Resized, finds_leaks,
};
use crate::vel;
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};

/// `GC_on_collection_event_proc`. The numbers of events are the heap's.
pub type CollectionEvent = unsafe extern "C" fn(event: c_int);
/// `GC_on_thread_event_proc`.
pub type ThreadEvent = unsafe extern "C" fn(event: c_int, thread: *mut c_void);
/// `GC_stop_func`.
pub type Stop = unsafe extern "C" fn() -> c_int;
/// `GC_start_callback_proc`.
pub type StartCallback = unsafe extern "C" fn();

pub(crate) static ON_COLLECTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
pub(crate) static ON_THREAD: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
pub(crate) static ON_START: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
pub(crate) static STOP: AtomicPtr<c_void> = AtomicPtr::new(never as *mut c_void);

/// Asked unless a program sets another: programs call what was there before theirs.
extern "C" fn never() -> c_int {
    0
}
/// Not zero: only the program collects.
pub(crate) static NOT_BY_ITSELF: AtomicI32 = AtomicI32::new(0);
/// The largest size of the heap that was reported.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Events as the heap numbers them, and `GC_EventType`.
const END: c_int = 5;
const STOPPED: c_int = 10;
const DUE: c_int = 12;

/// Has the heap report and ask.
pub(crate) fn begin() {
    // SAFETY: functions that call nothing of the heap, and one that may be called after collections.
    unsafe {
        vel::vel_gc_on_event(Some(happens));
        vel::vel_gc_on_need(Some(is_welcome));
        vel::vel_gc_on_begin(Some(begins));
        vel::vel_gc_finalize_on_demand(1);
        vel::vel_gc_on_due(Some(are_due));
    }
    ask_of_images();
}

unsafe extern "C" fn happens(event: c_int, value: usize) {
    if event == DUE {
        // SAFETY: null or what was set.
        if let Some(procedure) = unsafe { variables::function::<Await>(&AWAIT) } {
            // SAFETY: the program's own function.
            unsafe { procedure(core::ptr::without_provenance_mut(value)) };
        }
        return;
    }
    if event >= STOPPED {
        // SAFETY: null or what was set.
        if let Some(callback) = unsafe { variables::function::<ThreadEvent>(&ON_THREAD) } {
            // SAFETY: the program's own function.
            unsafe { callback(event, core::ptr::without_provenance_mut(value)) };
        }
        return;
    }
    if event == END {
        GC_gc_no.fetch_add(1, Relaxed);
        // SAFETY: the variable holds a function of this type.
        let resized = unsafe { variables::function::<Resized>(&GC_on_heap_resize) };
        if LARGEST.fetch_max(value, AcqRel) < value
            && let Some(resized) = resized
        {
            // SAFETY: the program's own function.
            unsafe { resized(value) };
        }
    }
    // SAFETY: null or what was set.
    if let Some(callback) = unsafe { variables::function::<CollectionEvent>(&ON_COLLECTION) } {
        // SAFETY: the program's own function.
        unsafe { callback(event) };
    }
}

unsafe extern "C" fn begins() {
    // SAFETY: null or what was set; the program's own function.
    unsafe {
        if let Some(callback) = variables::function::<StartCallback>(&ON_START) {
            callback();
        }
    }
}

/// Whether the heap may collect by itself.
unsafe extern "C" fn is_welcome() -> c_int {
    c_int::from(GC_dont_gc.load(Relaxed) <= 0 && NOT_BY_ITSELF.load(Relaxed) == 0 && !is_stopped())
}

/// Whether the program's procedure says not to collect.
pub(crate) fn is_stopped() -> bool {
    // SAFETY: null or what was set; the program's own function.
    unsafe { variables::function::<Stop>(&STOP).is_some_and(|stop| stop() != 0) }
}

/// `GC_await_finalize_proc`: called with each object whose finalizer becomes due.
pub type Await = unsafe extern "C" fn(object: *mut c_void);

pub(crate) static AWAIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

unsafe extern "C" fn are_due() {
    if GC_finalize_on_demand.load(Relaxed) == 0 || finds_leaks() {
        // SAFETY: the program vouches for its finalizers.
        unsafe { vel::vel_gc_finalize_unless_within() };
        return;
    }
    // SAFETY: the variable holds a function of this type, the program's own.
    if let Some(notifier) = unsafe { variables::function::<Notifier>(&GC_finalizer_notifier) } {
        // SAFETY: as above.
        unsafe { notifier() };
    }
}

/// `GC_has_static_roots_func`: whether a part of a library's data is to be scanned.
pub type HasRoots = unsafe extern "C" fn(library: *const c_char, start: *mut c_void, bytes: usize) -> c_int;

pub(crate) static FILTER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Has the heap ask which libraries' data is scanned, and ask anew what it asked before.
pub(crate) fn ask_of_images() {
    // SAFETY: a function that calls nothing of the heap.
    unsafe { vel::vel_gc_on_image(Some(has_roots)) };
}

unsafe extern "C" fn has_roots(library: *const c_char, start: *const c_void, bytes: usize) -> c_int {
    if GC_no_dls.load(Relaxed) != 0 {
        return 0;
    }
    // SAFETY: null or what was set.
    let filter = unsafe { variables::function::<HasRoots>(&FILTER) };
    // SAFETY: the program's own function.
    filter.map_or(1, |filter| unsafe { filter(library, start.cast_mut(), bytes) })
}
