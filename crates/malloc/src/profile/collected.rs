//! Samples of a garbage collector's objects, in the same profile.
//!
//! The collector draws which objects are samples, by [`passing`] and [`is_due`], as the blocks of this crate
//! are drawn. It keeps what [`record`] returns for each, and says here when the object has died. What an
//! object of the profile holds is so what the last collection found alive, and what was allocated since.

use super::{INTERVAL, RANDOM, enter_sample, inside, rates};
use core::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use vellum_wire::held::Amount;

/// What a sampled object is known by: bytes and blocks that it stands for, and its stack and generation.
pub type Collected = [u64; 3];

/// Called with whether objects are sampled from now on.
pub type Told = fn(is_on: bool);

static TOLD: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Has `told` called when sampling begins, goes on at another rate, or ends.
pub fn tell_collector(told: Told) {
    TOLD.store(told as *mut (), Release);
}

pub(super) fn tell(is_on: bool) {
    let told = TOLD.load(Acquire);
    if !told.is_null() {
        // SAFETY: `tell_collector` stored such a function.
        let told = unsafe { core::mem::transmute::<*mut (), Told>(told) };
        told(is_on);
    }
}

/// How many objects of `bytes` bytes pass before one is a sample.
pub fn passing(bytes: usize) -> u32 {
    rates::passing(&RANDOM, INTERVAL.load(Relaxed), bytes)
}

/// Whether a new object of `bytes` bytes, beyond those that are counted by [`passing`], is a sample.
pub fn is_due(bytes: usize) -> bool {
    super::is_due(bytes)
}

/// Records a sampled object of which `bytes` bytes were asked for, and which takes `whole`, with the calling
/// thread's stack. `None` if it could not be.
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

/// Notes that an object has died. False, with nothing done, if that must be said again later.
pub fn forget(dead: Collected) -> bool {
    let [bytes, blocks, from] = dead;
    let mut is_done = false;
    inside(|state| {
        let amount = Amount { bytes, blocks, samples: 1 };
        state.count(from as u32, (from >> 32) as u32, amount, false);
        is_done = true;
    });
    is_done
}
