//! Stopping the world, by signal or at safepoints.
//!
//! The collector holds the heap's lock. It signals every known thread that is running; the handler stores the
//! thread's stack pointer and waits for the epoch (a counter of restarts) to change. The thread's registers
//! are in the signal frame, at higher addresses, so the scan of the stack covers them. A thread that is
//! inside the collector stops itself when it leaves. Threads that are marked as blocked are not signalled.
//!
//! With safepoints, the user's choice, there is no signal: the collector sets a flag. The thread stops
//! when it next leaves the collector or comes to [`safepoint`](crate::safepoint). The stop may come one
//! safepoint late: the thread reads the flag without a barrier.
//!
//! One signal stops a thread; a futex lets it go on. The handler does not call the C library.

use crate::process::local;
use crate::process::signal::signal;
use crate::world::World;
use crate::world::thread::{BLOCKED, INSIDE, RUNNING, STOPPED, Thread, current};
use core::sync::atomic::Ordering;
use vellum_sys::thread as futex;

/// How long the collector waits between two tests of a thread that has not stopped yet.
const WAIT_NS: u64 = 1_000_000;
/// How long a stopped thread sleeps between two tests of the epoch.
const WAIT_MAX_NS: u64 = 3_600_000_000_000;
/// Tests before the collector sleeps.
const SPINS: u32 = 200;

/// The handler.
pub(crate) extern "C" fn on_signal(_signal: libc::c_int) {
    let Some(thread) = current() else { return };
    match thread.state.load(Ordering::Relaxed) {
        RUNNING => thread.stop_here(),
        // It stops on leaving only if that is still wanted: the thread may have been blocked when it was
        // sent.
        INSIDE => thread.stop_asked.store(true, Ordering::Relaxed),
        _ => {}
    }
}

impl Thread {
    /// Stops the calling thread until the world goes on, if it is to stop.
    #[inline(never)]
    pub(crate) fn stop_here(&self) {
        let world = self.world();
        self.stop_asked.store(false, Ordering::Relaxed);
        local::spilled(|low| {
            let low = self.stops_at(low);
            loop {
                let epoch = world.epoch.load(Ordering::SeqCst);
                // Together with the collector's store and load in `world`: either the stop is seen here, or
                // the collector sees this thread running.
                if !world.wanted.load(Ordering::SeqCst) && !self.suspended.load(Ordering::SeqCst) {
                    break;
                }
                self.stack_low.store(low, Ordering::Relaxed);
                self.state.store(STOPPED, Ordering::SeqCst);
                futex::wake(&world.arrived);
                while world.epoch.load(Ordering::Acquire) == epoch {
                    futex::wait(&world.epoch, epoch, WAIT_MAX_NS);
                }
                // The next collection may have begun already, and have taken this thread for stopped.
                self.state.store(RUNNING, Ordering::SeqCst);
            }
            self.aside.take();
        });
    }
}

impl World {
    /// Makes threads stop at safepoints only. Called before any thread is known.
    pub(crate) fn at_safepoints(&self) {
        self.safepoints.store(true, Ordering::Relaxed);
    }

    /// Stops every known thread but the caller, who holds the heap's lock.
    pub(crate) fn stop(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        // SAFETY: `getpid` has no arguments and cannot fail.
        let process = unsafe { libc::getpid() } as u32;
        let signal = signal();
        let is_still = |thread: &Thread| matches!(thread.state.load(Ordering::SeqCst), BLOCKED | STOPPED);
        for thread in self.known().filter(|thread| !thread.is_current()) {
            if !is_still(thread) && self.safepoints.load(Ordering::Relaxed) {
                thread.stop_asked.store(true, Ordering::SeqCst);
            } else if !is_still(thread) {
                let tid = thread.tid.load(Ordering::Relaxed);
                // SAFETY: sends a signal whose handler is installed.
                unsafe { libc::syscall(libc::SYS_tgkill, process, tid, signal) };
            }
        }
        for thread in self.known().filter(|thread| !thread.is_current()) {
            let mut looks = 0;
            loop {
                let arrived = self.arrived.load(Ordering::Acquire);
                if is_still(thread) || thread.tid.load(Ordering::Acquire) == 0 {
                    break;
                }
                looks += 1;
                if looks > SPINS {
                    futex::wait(&self.arrived, arrived, WAIT_NS);
                } else {
                    core::hint::spin_loop();
                }
            }
        }
    }

    /// Lets the world go on.
    pub(crate) fn go_on(&self) {
        self.wanted.store(false, Ordering::SeqCst);
        futex::wake(&self.epoch);
    }

    /// Makes stopped threads test whether they are still to stand still. The caller holds the heap's lock.
    pub(crate) fn look_again(&self) {
        futex::wake(&self.epoch);
    }

    /// Drops a stop that was under way in the parent, in a forked child.
    pub(crate) fn forget_stop(&self) {
        self.wanted.store(false, Ordering::Relaxed);
    }
}
