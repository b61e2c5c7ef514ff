//! Sets the program's callbacks: for events of a collection, for its start, and one that can prevent it.
//! `hooks` calls the callbacks.

use crate::forms::{callbacks, values};
use crate::hooks::{
    CollectionEvent, NOT_BY_ITSELF, ON_COLLECTION, ON_START, ON_THREAD, STOP, StartCallback, Stop,
    ThreadEvent,
};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

callbacks! {
    /// Sets the callback for events of a collection (`GC_EventType`); for most, the world is stopped.
    CollectionEvent, ON_COLLECTION: GC_set_on_collection_event, GC_get_on_collection_event;
    /// Sets the callback for threads that are stopped or resumed, with the world stopped.
    ThreadEvent, ON_THREAD: GC_set_on_thread_event, GC_get_on_thread_event;
    /// Sets the callback that is called before each collection and prevents it by a nonzero result. No calls
    /// are made during a collection.
    Stop, STOP: GC_set_stop_func, GC_get_stop_func;
    /// Sets the callback for the begin of a collection.
    StartCallback, ON_START: GC_set_start_callback, GC_get_start_callback;
}

/// If `on`, only the program collects.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_disable_automatic_collection(on: c_int) {
    NOT_BY_ITSELF.store(on, Relaxed);
}

values! {
    /// The value of [`GC_set_disable_automatic_collection`].
    GC_get_disable_automatic_collection: c_int = NOT_BY_ITSELF.load(Relaxed);
}
