//! The lock of the profile: it is held for moments, and a thread tries to take it for a bounded time.
//!
//! The lock is taken inside the gate (the allocator's lock) of the thread's heap. A signal handler that
//! interrupts the holder finds that its thread is inside the gate, and so does not try to take the lock.

use super::{PROFILE, State};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vellum_malloc::sampling::Inside;
use vellum_sys::lock::Held;
use vellum_sys::thread;

/// Attempts that yield the processor in between; later attempts sleep, as the holder may need a processor.
const YIELDS: u32 = 200;
const SLEEPS: u32 = 500;
const SLEEP_NS: u64 = 100_000;

/// The state, if its lock comes free in time.
pub(super) fn try_state() -> Option<Held<'static, State>> {
    if PROFILE.forks.is_abandoned() {
        return None;
    }
    for attempt in 0..YIELDS + SLEEPS {
        if let Some(state) = PROFILE.state.try_lock() {
            return Some(state);
        }
        if attempt < YIELDS { thread::yield_now() } else { thread::wait(&AtomicU32::new(0), 0, SLEEP_NS) }
    }
    None
}

/// The state, to enter a sample. A sample that cannot be entered counts as lost.
pub(super) fn state_for_sample() -> Option<Held<'static, State>> {
    let state = try_state();
    match &state {
        Some(state) if state.part.generation().is_some() => {
            state.part.head().lost.fetch_add(PROFILE.missed.swap(0, Relaxed), Relaxed);
        }
        Some(_) => {}
        None => _ = PROFILE.missed.fetch_add(1, Relaxed),
    }
    state
}

/// Runs `act` on the state, inside the gate of the thread's heap, so that the helper and forks find no holder
/// stopped halfway. Does nothing if the lock does not come free.
pub(super) fn inside(act: impl FnOnce(&mut State)) {
    let Some(_inside) = Inside::of_current() else { return };
    if let Some(mut state) = try_state() {
        act(&mut state);
    }
}

/// Runs `act` on the state to enter a sample. A thread whose first block is a large one gets its heap for it.
pub(super) fn enter_sample(act: impl FnOnce(&mut State)) {
    let Some(_inside) = Inside::of_attached() else {
        PROFILE.missed.fetch_add(1, Relaxed);
        return;
    };
    if let Some(mut state) = state_for_sample() {
        act(&mut state);
    }
}
