//! Events of a collection, for a watcher within the process, and the question it asks before it begins.
//!
//! ```text
//! one go   Begin  StopBegin StopEnd  MarkBegin MarkEnd SweepBegin SweepEnd  GoOnBegin GoOnEnd  End
//! slices   Begin (StopBegin StopEnd GoOnBegin GoOnEnd)…  and the last one:
//!                 StopBegin StopEnd  MarkBegin MarkEnd SweepBegin SweepEnd  GoOnBegin GoOnEnd  End
//! dropped  Begin (StopBegin StopEnd GoOnBegin GoOnEnd)…  End
//! ```
//!
//! # Invariants
//! * The watcher is called with the heap's lock held; between `StopEnd` and `GoOnBegin` the world is stopped
//!   too. So it calls nothing of the collector, allocates nothing and takes no lock.
//! * The exception is the counters: the watcher gets them as they were at the event ([`stats_at_last`]).

use crate::hook::Hook;
use crate::mutator::{thread, tls};
use crate::statistics::Stats;
use core::cell::UnsafeCell;
use core::ffi::c_int;

/// The kinds of events: `VEL_GC_EVENT_*` of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Event {
    /// A collection begins.
    Begin = 0,
    /// Tracing begins …
    MarkBegin = 1,
    /// … and has ended.
    MarkEnd = 2,
    /// The sweep begins …
    SweepBegin = 3,
    /// … and has ended.
    SweepEnd = 4,
    /// The collection has ended.
    End = 5,
    /// Threads are about to be stopped …
    StopBegin = 6,
    /// … and are.
    StopEnd = 7,
    /// They are about to go on …
    GoOnBegin = 8,
    /// … and do.
    GoOnEnd = 9,
    /// One thread has stopped; the value is its number.
    Stopped = 10,
    /// One thread will go on; the value is its number.
    GoesOn = 11,
    /// An object's finalizer became due; the value is the object's address.
    Due = 12,
}

/// `vel_gc_event_fn` of the header: an event, and the heap's bytes, a thread's number or an object.
pub type EventFn = unsafe extern "C" fn(event: c_int, value: usize);
/// `vel_gc_need_fn` of the header: whether a collection that allocation wants may be made.
pub type NeedFn = unsafe extern "C" fn() -> c_int;

static WATCHER: Hook<EventFn> = Hook::none();
static NEED: Hook<NeedFn> = Hook::none();

/// Sets the function that is called at each event; returns the previous one.
pub fn on_event(hook: Option<EventFn>) -> Option<EventFn> {
    WATCHER.set(hook)
}

/// Sets the function that is asked before a collection that allocation wants; returns the previous one.
pub fn on_need(hook: Option<NeedFn>) -> Option<NeedFn> {
    NEED.set(hook)
}

/// Calls a hook of the program's, with the heap's lock held: a hook that asked for the heap would deadlock.
fn calling<R>(hook: impl FnOnce() -> R) -> R {
    match tls::current() {
        Some(thread) => thread.standing_here(hook),
        None => hook(),
    }
}

/// Whether a collection that allocation wants may be made.
pub(crate) fn is_welcome(stats: impl FnOnce() -> Stats) -> bool {
    NEED.get().is_none_or(|hook| {
        see(stats());
        // SAFETY: the program vouched when it set the hook that it may be called with the heap's lock held.
        calling(|| unsafe { hook() }) != 0
    })
}

/// Counters as they were at the last event of the heap's, and not of a thread or an object.
struct Seen(UnsafeCell<Stats>);
// SAFETY: written with the heap's lock held, and read by the thread that holds it.
unsafe impl Sync for Seen {}
static SEEN: Seen = Seen(UnsafeCell::new(Stats::new()));

/// The counters at the last event, for a callback that the collector runs: the heap's own are being changed
/// then. The caller is the thread that collects.
pub(crate) fn stats_at_last() -> Stats {
    // SAFETY: the caller collects, so that it holds the heap's lock; nothing is written while a callback
    // runs.
    unsafe { *SEEN.0.get() }
}

/// Tells the watcher, if there is one, of the heap, whose lock is held: its bytes and counters.
pub(crate) fn tell(event: Event, bytes: usize, stats: Stats) {
    see(stats);
    tell_value(event, bytes);
}

/// Stores the counters of the heap, whose lock is held.
fn see(stats: Stats) {
    // SAFETY: the heap's lock is held, so that no other thread reads or writes it.
    unsafe { *SEEN.0.get() = stats };
}

/// Tells the watcher, if there is one.
#[inline]
pub(crate) fn tell_value(event: Event, value: usize) {
    if let Some(hook) = WATCHER.get() {
        // SAFETY: the program vouched when it set the hook that it may be called with the heap's lock held.
        calling(|| unsafe { hook(event as c_int, value) });
    }
}

/// Tells the watcher of each thread but the caller.
pub(crate) fn tell_of_threads(event: Event) {
    if WATCHER.get().is_some() {
        for thread in thread::known().filter(|thread| !thread.is_current()) {
            tell_value(event, thread.number.get());
        }
    }
}
