//! What a collection tells whoever watches it from within the process, and what it asks before it begins.
//!
//! ```text
//! one go   Begin  StopBegin StopEnd  MarkBegin MarkEnd SweepBegin SweepEnd  GoOnBegin GoOnEnd  End
//! slices   Begin (StopBegin StopEnd GoOnBegin GoOnEnd)…  StopBegin StopEnd  MarkBegin MarkEnd SweepBegin …  End
//! dropped  Begin (StopBegin StopEnd GoOnBegin GoOnEnd)…  End
//! ```
//!
//! # Invariants
//! * The watcher is called with the heap's lock held, between `StopEnd` and `GoOnBegin` with the world stopped: it calls nothing of the
//!   collector, allocates nothing and takes no lock.
//! * But for the counters, of which it is told what they were at the event: [`stats_at_last`].

use crate::heap::Heap;
use crate::procedure::Hook;
use crate::stats::Stats;
use crate::thread;
use crate::tls;
use core::cell::UnsafeCell;
use core::ffi::c_int;

/// What happens: `VEL_GC_EVENT_*` of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Event {
    /// A collection begins.
    Begin = 0,
    /// What is alive is looked for …
    MarkBegin = 1,
    /// … and was found.
    MarkEnd = 2,
    /// What is dead is let go of …
    SweepBegin = 3,
    /// … and was let go of.
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

/// Sets what is told of events; returns what was.
pub fn on_event(hook: Option<EventFn>) -> Option<EventFn> {
    WATCHER.set(hook)
}

/// Sets what is asked before a collection that allocation wants; returns what was.
pub fn on_need(hook: Option<NeedFn>) -> Option<NeedFn> {
    NEED.set(hook)
}

/// Calls a hook of the program's, with the heap's lock held: what asks for the heap meanwhile would wait for itself.
fn calling<R>(hook: impl FnOnce() -> R) -> R {
    match tls::current() {
        Some(thread) => thread.standing_here(hook),
        None => hook(),
    }
}

/// Whether a collection that allocation wants may be made.
pub(crate) fn is_welcome(heap: &Heap) -> bool {
    NEED.get().is_none_or(|hook| {
        see(heap);
        // SAFETY: who set it vouches that it may be called so.
        calling(|| unsafe { hook() }) != 0
    })
}

/// Counters as they were at the last event of the heap's, and not of a thread or an object.
struct Seen(UnsafeCell<Stats>);
// SAFETY: written with the heap's lock held, and read by the thread that holds it.
unsafe impl Sync for Seen {}
static SEEN: Seen = Seen(UnsafeCell::new(Stats::new()));

/// The counters at the last event, for a procedure that the collector calls: the heap's own are being changed. The caller is the thread that collects.
pub(crate) fn stats_at_last() -> Stats {
    // SAFETY: as `Seen` says; nothing is written while a procedure runs.
    unsafe { *SEEN.0.get() }
}

/// Tells the watcher, if there is one, of the heap, whose lock is held.
pub(crate) fn tell(event: Event, heap: &Heap) {
    see(heap);
    tell_value(event, heap.bytes);
}

/// Takes in the counters of the heap, whose lock is held.
fn see(heap: &Heap) {
    // SAFETY: by this function's condition nobody else writes or reads it.
    unsafe { *SEEN.0.get() = heap.stats_now() };
}

/// Tells the watcher, if there is one.
#[inline]
pub(crate) fn tell_value(event: Event, value: usize) {
    if let Some(hook) = WATCHER.get() {
        // SAFETY: as above.
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
