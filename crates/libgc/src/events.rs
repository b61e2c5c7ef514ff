//! The setters of the callbacks for events of a collection, and of the one that may prevent a collection.
//! `hooks` calls the callbacks.

use crate::hooks::{
    CollectionEvent, NOT_BY_ITSELF, ON_COLLECTION, ON_START, ON_THREAD, STOP, StartCallback, Stop,
    ThreadEvent,
};
use crate::{start, variables};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Relaxed, Release};

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
    /// Has `callback` called with what happens in collections: `GC_EventType`, with the world stopped for
    /// most.
    CollectionEvent, ON_COLLECTION: GC_set_on_collection_event, GC_get_on_collection_event;
    /// Has `callback` called with threads that are stopped and go on, the world being stopped.
    ThreadEvent, ON_THREAD: GC_set_on_thread_event, GC_get_on_thread_event;
    /// Has `callback` asked before each collection: anything but 0 puts it off. It is not asked again while
    /// one is made.
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
