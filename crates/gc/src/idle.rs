//! Slices while the program has nothing else to do.
//!
//! A program that waits for input, or for the next frame, can spend that time on the collection that is coming anyway. It asks for so
//! much time ([`idle`]), and gets the processor back sooner when another thread wants to go on: a slice gives way within
//! some ten microseconds.
//!
//! Source: Bates, section "Improving the Results": there the scheduler runs slices while no thread is ready; giving way to
//! threads that become ready is what kept them out of the distributions.

use crate::alloc::{note, with_heap};
use crate::budget::Budget;
use crate::cycle::{self, Progress};
use crate::finalize;
use crate::thread;
use vellum_sys::clock;

/// The part of the room that must have been allocated for a collection to be begun in idle time: an eighth.
const WORTH_PART: usize = 8;

/// Goes on with the collection in slices that is on, or begins one if enough was allocated, for `ns` nanoseconds at most, or
/// until another thread wants to go on. Whether there is more to do.
pub fn idle(ns: u64) -> bool {
    let Some(thread) = thread::attached() else { return false };
    let deadline = clock::now_ns().saturating_add(ns);
    let (more, ended) = with_heap(thread, |heap| {
        if !heap.started || heap.held != 0 || !heap.may_slice() {
            return (false, false);
        }
        if heap.cycle.is_none() && heap.used < heap.room / WORTH_PART {
            return (false, false);
        }
        loop {
            let left = deadline.saturating_sub(clock::now_ns());
            // The end is a stop that cannot be cut short: it is left to whoever has time for it.
            if left == 0 || left < heap.end_ns_expected() && heap.is_cycle_ready() {
                return (true, false);
            }
            let mut budget = Budget::new(left, true);
            if !budget.look() {
                return (true, false);
            }
            let progress = cycle::step(heap, thread, budget);
            note(heap, thread, progress);
            match progress {
                Progress::More => {}
                Progress::Done => return (false, true),
                Progress::Nothing => return (false, false),
            }
        }
    });
    if ended {
        finalize::run_after_collection();
    }
    more
}

/// Whether collections can be made in slices here: the kernel or the program tells what is written.
pub fn can_slice() -> bool {
    let Some(thread) = thread::attached() else { return false };
    with_heap(thread, |heap| heap.started && heap.may_slice())
}
