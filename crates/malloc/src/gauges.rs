//! Publishes the process's memory figures on the board (a shared file): now and then, and at exit.

use crate::figures::figures;
use crate::registry;
use crate::state::MALLOC;
use core::sync::atomic::Ordering::{Relaxed, Release};
use vellum_pages::Pages;
use vellum_sys::clock;
use vellum_wire::Counter;

/// A number that changes with what threads do on their slow paths, and with what goes back.
fn events(live: u64) -> u64 {
    let turns = registry::all().map(|heap| u64::from(heap.gate.turns()));
    turns.fold(live.wrapping_add(MALLOC.returned.load(Relaxed) as u64), u64::wrapping_add)
}

/// Makes the helper count and publish now and then.
#[inline(never)]
pub fn publish_at_ticks() {
    MALLOC.helper.after_round.store(publish_if_due as *mut (), Release);
}

/// Counts and publishes, if it is time to. Under the lock of the helper's round.
fn publish_if_due() {
    let began = clock::now_ns();
    let events = events(Pages::global().slot().get(Counter::NowLive));
    if MALLOC.publishing.lock().is_due(began, events) {
        publish();
        MALLOC.publishing.lock().counted(began, clock::now_ns(), events);
    }
}

/// Counts the figures, and stores them in the process's counters.
pub fn publish() {
    Pages::global().book_inside();
    let slot = Pages::global().slot();
    let figures = figures(slot.get(Counter::NowLive) as usize);
    slot.set(Counter::NowInUse, figures.in_use as u64);
    slot.set(Counter::NowFreeInSlabs, figures.free_in_slabs as u64);
    slot.set(Counter::NowReturned, figures.returned as u64);
}
