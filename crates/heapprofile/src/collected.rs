//! Records samples of a garbage collector's objects, in the same profile as the samples of `malloc`'s blocks.
//!
//! The collector draws its samples by [`passing`] and [`is_due`], as `malloc` does for blocks. It stores the
//! result of [`record`] for each sampled object, and calls [`remove`] once the object has died. An object
//! therefore counts as in use until the collection that finds it dead.

use super::{PROFILE, enter_sample, inside, interval, rates};
use core::sync::atomic::Ordering::{Acquire, Release};
use vellum_wire::held::Amount;

/// A sampled object's record: the bytes and blocks that it stands for, and its stack and generation.
pub type Collected = [u64; 3];

/// Called when sampling begins, changes its rate, or ends (`false`).
pub type Listener = fn(is_on: bool);

/// Calls `listener` whenever sampling begins, changes its rate, or ends.
pub fn on_change(listener: Listener) {
    PROFILE.collector.store(listener as *mut (), Release);
}

pub(super) fn notify(is_on: bool) {
    let listener = PROFILE.collector.load(Acquire);
    if !listener.is_null() {
        // SAFETY: only `on_change` stores a pointer there, made of such a function.
        let listener = unsafe { core::mem::transmute::<*mut (), Listener>(listener) };
        listener(is_on);
    }
}

/// The number of objects of `bytes` bytes before the next sample.
pub fn passing(bytes: usize) -> u32 {
    rates::passing(&PROFILE.random, interval(), bytes)
}

/// True if a new object of `bytes` bytes is a sample, for sizes that are not counted by [`passing`].
pub fn is_due(bytes: usize) -> bool {
    super::is_due(bytes)
}

/// Records a sampled object with the calling thread's stack: `bytes` bytes were requested, and it takes
/// `whole`. `None` if the stack could not be entered.
pub fn record(bytes: usize, whole: usize) -> Option<Collected> {
    let mut entry = None;
    enter_sample(|state| {
        let Some(entered) = state.enter(bytes, whole) else { return };
        state.count(entered.stack, entered.generation, entered.amount, true);
        let from = u64::from(entered.stack) | u64::from(entered.generation) << 32;
        entry = Some([entered.amount.bytes, entered.amount.blocks, from]);
    });
    entry
}

/// Removes an object that has died. False, with nothing done, if the call must be repeated later.
pub fn remove(dead: Collected) -> bool {
    let [bytes, blocks, from] = dead;
    let mut is_done = false;
    inside(|state| {
        let amount = Amount { bytes, blocks, samples: 1 };
        state.count(from as u32, (from >> 32) as u32, amount, false);
        is_done = true;
    });
    is_done
}
