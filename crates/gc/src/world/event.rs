//! Events of a collection, reported to the *watcher*: a hook that the program sets (`vel_gc_on_event`).
//! `Stop` is the stop of the program's threads, `GoOn` their restart.
//!
//! ```text
//! unsliced Begin  StopBegin StopEnd  MarkBegin MarkEnd SweepBegin SweepEnd  GoOnBegin GoOnEnd  End
//! slices   Begin (StopBegin StopEnd GoOnBegin GoOnEnd)…  in each slice; and in the last:
//!                 StopBegin StopEnd  MarkBegin MarkEnd SweepBegin SweepEnd  GoOnBegin GoOnEnd  End
//! dropped  Begin (StopBegin StopEnd GoOnBegin GoOnEnd)…  End         (slices that were given up)
//! ```
//!
//! # Invariants
//! * The watcher is called with the heap's lock held. Between `StopEnd` and `GoOnBegin` all threads are
//!   stopped as well. The watcher must not call the collector, allocate, or take a lock.
//! * The watcher may read the counters: it gets them as they were at the event (`heap::event`).

use crate::process::hooks::WATCHER;
use crate::world::thread::current;
use core::ffi::c_int;

/// The kinds of events: `VEL_GC_EVENT_*` of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Event {
    /// A collection begins.
    Begin = 0,
    /// Tracing begins.
    MarkBegin = 1,
    /// Tracing has ended.
    MarkEnd = 2,
    /// The sweep begins.
    SweepBegin = 3,
    /// The sweep has ended.
    SweepEnd = 4,
    /// The collection has ended.
    End = 5,
    /// All threads are about to be stopped.
    StopBegin = 6,
    /// All threads are stopped.
    StopEnd = 7,
    /// All threads are about to go on.
    GoOnBegin = 8,
    /// All threads go on.
    GoOnEnd = 9,
    /// A thread has stopped; the value is its number.
    Stopped = 10,
    /// A thread will go on; the value is its number.
    GoesOn = 11,
    /// An object's finalizer became due; the value is the object's address.
    Due = 12,
}

/// Calls a hook of the program's, with the heap's lock held: a hook that takes the heap's lock would
/// deadlock.
pub(crate) fn calling<R>(hook: impl FnOnce() -> R) -> R {
    match current() {
        Some(thread) => thread.standing_here(hook),
        None => hook(),
    }
}

/// Calls the watcher, if there is one.
#[inline]
pub(crate) fn tell_value(event: Event, value: usize) {
    if let Some(hook) = WATCHER.get() {
        // SAFETY: the program vouched when it set the hook that it may be called with the heap's lock held.
        calling(|| unsafe { hook(event as c_int, value) });
    }
}
