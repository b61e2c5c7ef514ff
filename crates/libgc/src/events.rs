//! What a program is told as collections go on, and what it is asked before one begins.
//!
//! One hook of the heap's feeds all of it: [`GC_gc_no`], the event callbacks, the heap's growth.
//!
//! Invariant: the hooks run with the heap's lock held, most with the world stopped: nothing here calls the heap.

use crate::variables::{self, GC_dont_gc, GC_gc_no, GC_on_heap_resize, Resized};
use crate::{start, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Relaxed, Release},
};

/// `GC_on_collection_event_proc`. The numbers of events are the heap's.
pub type CollectionEvent = unsafe extern "C" fn(event: c_int);
/// `GC_on_thread_event_proc`.
pub type ThreadEvent = unsafe extern "C" fn(event: c_int, thread: *mut c_void);
/// `GC_stop_func`.
pub type Stop = unsafe extern "C" fn() -> c_int;
/// `GC_start_callback_proc`.
pub type StartCallback = unsafe extern "C" fn();

static ON_COLLECTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ON_THREAD: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static ON_START: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static STOP: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Not zero: only the program collects.
static NOT_BY_ITSELF: AtomicI32 = AtomicI32::new(0);
/// The largest size of the heap that was told of.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Events as the heap numbers them, and `GC_EventType`.
const END: c_int = 5;
const STOPPED: c_int = 10;
const DUE: c_int = 12;

/// Has the heap tell and ask.
pub(crate) fn begin() {
    // SAFETY: functions that call nothing of the heap.
    unsafe {
        vel::vel_gc_on_event(Some(happens));
        vel::vel_gc_on_need(Some(is_welcome));
        vel::vel_gc_on_begin(Some(begins));
    }
}

unsafe extern "C" fn happens(event: c_int, value: usize) {
    if event == DUE {
        crate::finalize::is_due(core::ptr::without_provenance_mut(value));
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

macro_rules! callbacks {
    ($($(#[$doc:meta])* $type:ty, $cell:ident: $set:ident, $get:ident;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(callback: Option<$type>) {
            start::ensure();
            $cell.store(callback.map_or(null_mut(), |callback| callback as *mut c_void), Release);
        }
        /// What was set.
        #[unsafe(no_mangle)]
        pub extern "C" fn $get() -> Option<$type> {
            // SAFETY: null or what was set.
            unsafe { variables::function::<$type>(&$cell) }
        }
    )* };
}

callbacks! {
    /// Has `callback` called with what happens in collections: `GC_EventType`, with the world stopped for most.
    CollectionEvent, ON_COLLECTION: GC_set_on_collection_event, GC_get_on_collection_event;
    /// Has `callback` called with threads that are stopped and go on, the world being stopped.
    ThreadEvent, ON_THREAD: GC_set_on_thread_event, GC_get_on_thread_event;
    /// Has `callback` asked before each collection: anything but 0 puts it off. It is not asked again while one is made.
    Stop, STOP: GC_set_stop_func, GC_get_stop_func;
    /// Has `callback` called when a collection begins.
    StartCallback, ON_START: GC_set_start_callback, GC_get_start_callback;
}

/// Whether only the program collects.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_disable_automatic_collection(on: c_int) {
    NOT_BY_ITSELF.store(on, Relaxed);
}

/// What [`GC_set_disable_automatic_collection`] set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_disable_automatic_collection() -> c_int {
    NOT_BY_ITSELF.load(Relaxed)
}
