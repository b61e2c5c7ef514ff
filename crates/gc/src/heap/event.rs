//! Reports the steps of a heap's collections ([`event`](crate::world::event)) to the program's hook, with
//! the counters at that moment.

use crate::heap::Heap;
use crate::heap::statistics::Stats;
use crate::process::hooks::{NEED, WATCHER};
use crate::world::event::{Event, calling, tell_value};
use core::cell::UnsafeCell;

/// Counters as they were at the last event of the heap's, and not of a thread or an object.
pub(crate) struct Seen(UnsafeCell<Stats>);

// SAFETY: written with the heap's lock held, and read by the thread that holds it.
unsafe impl Sync for Seen {}

impl Seen {
    /// The counters at the last event, for a callback that the collector runs: the heap's own are being
    /// changed then. The caller is the thread that collects.
    pub(crate) fn stats(&self) -> Stats {
        // SAFETY: the caller collects and holds the heap's lock; counters are not written while a callback
        // runs.
        unsafe { *self.0.get() }
    }

    /// Stores the counters of the heap, whose lock is held.
    fn see(&self, stats: Stats) {
        // SAFETY: the heap's lock is held, so that no other thread reads or writes it.
        unsafe { *self.0.get() = stats };
    }
}

impl Heap {
    /// Reports an event of the heap's to the watcher, if there is one: its bytes and counters.
    pub(crate) fn tell(&self, event: Event) {
        self.shared.seen.see(self.stats_now());
        tell_value(event, self.space.bytes);
    }

    /// Returns whether an allocation may collect now.
    pub(crate) fn is_welcome(&self) -> bool {
        NEED.get().is_none_or(|hook| {
            self.shared.seen.see(self.stats_now());
            // SAFETY: the program vouched when it set the hook that it may be called with the heap's lock
            // held.
            calling(|| unsafe { hook() }) != 0
        })
    }

    /// Reports an event of each thread but the caller to the watcher.
    pub(crate) fn tell_of_threads(&self, event: Event) {
        if WATCHER.get().is_some() {
            for thread in self.shared.world.known().filter(|thread| !thread.is_current()) {
                tell_value(event, thread.number.get());
            }
        }
    }
}
