//! The world: the program's threads, and how the collector stops all of them.
//!
//! | file | contents |
//! | --- | --- |
//! | `thread` | a thread's record |
//! | `stack` | where a thread's roots are: its stack and its static thread-local data |
//! | `stop` | stopping the world |
//! | `event` | events for a watcher within the process |
//! | `budget` | the time limit of a slice, and the threads for which a slice ends early |
//! | `idle_signal` | the wake-up of the thread that collects in idle time |
//!
//! # Invariants
//! * A thread that is inside the collector is not stopped; it stops itself when it leaves.
//! * All fields of `World` are atomic, and are read without the heap's lock.

pub(crate) mod budget;
pub(crate) mod event;
pub(crate) mod idle_signal;
pub(crate) mod stack;
pub(crate) mod stop;
pub(crate) mod thread;

use crate::world::budget::Waiters;
use crate::world::idle_signal::IdleSignal;
use crate::world::thread::Thread;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

/// The threads of a collector, and the words by which they are stopped.
pub(crate) struct World {
    /// The first record; each leads to the next.
    threads: AtomicPtr<Thread>,
    /// The number of records.
    records: AtomicUsize,
    /// Changes when the world goes on.
    epoch: AtomicU32,
    /// Changes when a thread has stopped.
    arrived: AtomicU32,
    /// A stop is under way: a signal that comes late finds this false.
    wanted: AtomicBool,
    /// True if threads stop at safepoints only.
    safepoints: AtomicBool,
    /// The threads that wait for a slice to end.
    pub waiters: Waiters,
    /// The thread that collects in idle time.
    pub idle: IdleSignal,
}
