//! The hooks that the heap calls, and the program's callbacks that they call: for events of collections and
//! threads, due finalizers, and the filter for libraries' data.
//!
//! A single hook feeds [`GC_gc_no`], the event callbacks and the callback for heap growth. Programs set
//! their callbacks in `events`, `finalize` and `roots`.
//!
//! Invariant: the hooks run with the heap's lock held, most with the world stopped, so they must not call
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

/// `GC_on_collection_event_proc`. Events have the heap's numbers.
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

/// The default `GC_stop_func`: programs call the previous procedure before theirs.
extern "C" fn never() -> c_int {
    0
}
/// If not zero, only the program collects.
pub(crate) static NOT_BY_ITSELF: AtomicI32 = AtomicI32::new(0);
/// The largest heap size that was reported.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Events, numbered as by the heap and by `GC_EventType`.
const END: c_int = 5;
const STOPPED: c_int = 10;
const DUE: c_int = 12;

/// Sets the heap's hooks.
pub(crate) fn begin() {
    // SAFETY: the hooks call nothing of the heap, except `are_due`, which runs after collections.
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
        // SAFETY: `GC_set_await_finalize_proc` alone stores here, null or an `Await`.
        if let Some(procedure) = unsafe { variables::function::<Await>(&AWAIT) } {
            // SAFETY: an `Await` accepts an object, which `value` is for this event.
            unsafe { procedure(core::ptr::without_provenance_mut(value)) };
        }
        return;
    }
    if event >= STOPPED {
        // SAFETY: `GC_set_on_thread_event` alone stores here, null or a `ThreadEvent`.
        if let Some(callback) = unsafe { variables::function::<ThreadEvent>(&ON_THREAD) } {
            // SAFETY: a `ThreadEvent` accepts an event and a thread's handle.
            unsafe { callback(event, core::ptr::without_provenance_mut(value)) };
        }
        return;
    }
    if event == END {
        GC_gc_no.fetch_add(1, Relaxed);
        // SAFETY: gc.h gives the variable this type.
        let resized = unsafe { variables::function::<Resized>(&GC_on_heap_resize) };
        if LARGEST.fetch_max(value, AcqRel) < value
            && let Some(resized) = resized
        {
            // SAFETY: a `Resized` accepts any size.
            unsafe { resized(value) };
        }
    }
    // SAFETY: `GC_set_on_collection_event` alone stores here, null or a `CollectionEvent`.
    if let Some(callback) = unsafe { variables::function::<CollectionEvent>(&ON_COLLECTION) } {
        // SAFETY: a `CollectionEvent` accepts any event.
        unsafe { callback(event) };
    }
}

unsafe extern "C" fn begins() {
    // SAFETY: `GC_set_start_callback` alone stores here, null or a `StartCallback`, which has no arguments.
    unsafe {
        if let Some(callback) = variables::function::<StartCallback>(&ON_START) {
            callback();
        }
    }
}

/// Returns 1 if the heap may start a collection.
unsafe extern "C" fn is_welcome() -> c_int {
    c_int::from(GC_dont_gc.load(Relaxed) <= 0 && NOT_BY_ITSELF.load(Relaxed) == 0 && !is_stopped())
}

/// True if the program's procedure prevents collections.
pub(crate) fn is_stopped() -> bool {
    // SAFETY: `GC_set_stop_func` alone stores here, null or a `Stop`, which has no arguments.
    unsafe { variables::function::<Stop>(&STOP).is_some_and(|stop| stop() != 0) }
}

/// `GC_await_finalize_proc`: called with each object whose finalizer becomes due.
pub type Await = unsafe extern "C" fn(object: *mut c_void);

pub(crate) static AWAIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

unsafe extern "C" fn are_due() {
    if GC_finalize_on_demand.load(Relaxed) == 0 || finds_leaks() {
        // SAFETY: the program registered a callable finalizer (`GC_register_finalizer`).
        unsafe { vel::vel_gc_finalize_unless_within() };
        return;
    }
    // SAFETY: gc.h gives the variable this type.
    if let Some(notifier) = unsafe { variables::function::<Notifier>(&GC_finalizer_notifier) } {
        // SAFETY: a `Notifier` has no arguments.
        unsafe { notifier() };
    }
}

/// `GC_has_static_roots_func`: returns whether a part of a library's data is to be scanned.
pub type HasRoots = unsafe extern "C" fn(library: *const c_char, start: *mut c_void, bytes: usize) -> c_int;

pub(crate) static FILTER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Sets the filter for libraries' data, which the heap applies again to loaded libraries.
pub(crate) fn ask_of_images() {
    // SAFETY: `has_roots` calls nothing of the heap.
    unsafe { vel::vel_gc_on_image(Some(has_roots)) };
}

unsafe extern "C" fn has_roots(library: *const c_char, start: *const c_void, bytes: usize) -> c_int {
    if GC_no_dls.load(Relaxed) != 0 {
        return 0;
    }
    // SAFETY: `GC_register_has_static_roots_callback` alone stores here, null or a `HasRoots`.
    let filter = unsafe { variables::function::<HasRoots>(&FILTER) };
    // SAFETY: a `HasRoots` accepts a library's name and a range of its data.
    filter.map_or(1, |filter| unsafe { filter(library, start.cast_mut(), bytes) })
}
