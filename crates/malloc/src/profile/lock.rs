//! The lock of the profile: held for moments, tried for a while, never waited for without end.
//!
//! It is taken inside the thread's gate, so a signal handler that interrupts the holder does not come here:
//! it finds the gate closed.

use super::{STATE, State, forks};
use crate::threads;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use vellum_sys::lock::Held;
use vellum_sys::thread;

/// How often the lock is tried: first giving way, then with sleeps, as its holder may want a processor.
const PATIENCE: u32 = 200;
const SLEEPS: u32 = 500;
const SLEEP_NS: u64 = 100_000;

/// Samples that could not be entered, and are not counted as lost yet.
static MISSED: AtomicU64 = AtomicU64::new(0);

/// The lock, unless it does not come free.
pub(super) fn try_state() -> Option<Held<'static, State>> {
    if forks::is_abandoned() {
        return None;
    }
    for attempt in 0..PATIENCE + SLEEPS {
        if let Some(state) = STATE.try_lock() {
            return Some(state);
        }
        if attempt < PATIENCE { thread::give_way() } else { thread::wait(&AtomicU32::new(0), 0, SLEEP_NS) }
    }
    None
}

/// The state, to enter a sample; one that cannot be entered is counted as lost.
pub(super) fn state_for_sample() -> Option<Held<'static, State>> {
    let state = try_state();
    match &state {
        Some(state) if state.part.generation().is_some() => {
            state.part.head().lost.fetch_add(MISSED.swap(0, Relaxed), Relaxed);
        }
        Some(_) => {}
        None => _ = MISSED.fetch_add(1, Relaxed),
    }
    state
}

/// Does something with the state, inside the gate, so that the helper and forks find no holder stopped
/// halfway; nothing if the lock is not to be had.
pub(super) fn inside(act: impl FnOnce(&mut State)) {
    let Some(heap) = threads::current().filter(|heap| heap.gate.enter()) else { return };
    if let Some(mut state) = try_state() {
        act(&mut state);
    }
    heap.gate.leave();
}

/// The same to enter a sample: a thread whose first block is a large one gets its heap for it.
pub(super) fn enter_sample(act: impl FnOnce(&mut State)) {
    let Some(heap) = threads::attached().filter(|heap| heap.gate.enter()) else {
        MISSED.fetch_add(1, Relaxed);
        return;
    };
    if let Some(mut state) = state_for_sample() {
        act(&mut state);
    }
    heap.gate.leave();
}
