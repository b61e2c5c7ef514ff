//! Slices while the program has nothing else to do.
//!
//! A program that waits for input, or for the next frame, can spend that time on the collection that is coming anyway. It asks for so
//! much time ([`idle`]), and gets the processor back sooner when another thread wants to go on: a slice gives way within
//! some ten microseconds. While another thread runs the time is not idle: a slice would stop it.
//!
//! Source: Bates, section "Improving the Results": there the scheduler runs slices while no thread is ready; giving way to
//! threads that become ready is what kept them out of the distributions.

use crate::alloc::{note, with_heap};
use crate::budget::Budget;
use crate::cycle::{self, Progress};
use crate::finalize;
use crate::heap::Heap;
use crate::thread;
use vellum_sys::clock;

/// The part of the room that must have been allocated for a collection to be begun in idle time: an eighth.
const WORTH_PART: usize = 8;

/// Goes on with the collection in slices that is on, or begins one if enough was allocated, for `ns` nanoseconds at most, or
/// until another thread wants to go on; not at all while one is running. Whether there may be more to do.
pub fn idle(ns: u64) -> bool {
    let deadline = clock::now_ns().saturating_add(ns);
    if thread::others_run() {
        return true;
    }
    slices(false, |heap| {
        if heap.cycle.is_none() && heap.used < heap.room / WORTH_PART {
            return Next::Nothing;
        }
        let left = deadline.saturating_sub(clock::now_ns());
        // The end is a stop that cannot be cut short: it is left to whoever has time for it.
        if left == 0 || left < heap.end_ns && heap.is_cycle_ready() {
            return Next::Later;
        }
        let mut budget = Budget::new(left, true);
        if budget.look() { Next::Slice(budget) } else { Next::Later }
    })
}

/// The same without a deadline, for the collector's own thread: everybody has waited for `waited_ns` nanoseconds. What cannot be cut short is
/// done if that is longer than it takes: who has waited so long should wait as long again. No collection is begun before one part of `worth_part` of the room is used.
pub(crate) fn unasked(waited_ns: u64, worth_part: usize) -> bool {
    if thread::others_run() {
        return true;
    }
    slices(false, |heap| {
        if heap.cycle.is_none() && heap.used < heap.room / worth_part {
            return Next::Nothing;
        }
        if waited_ns < heap.end_ns && heap.is_cycle_ready() {
            return Next::Later;
        }
        let mut budget = Budget::new(u64::MAX, true);
        if budget.look() { Next::Slice(budget) } else { Next::Later }
    })
}

/// One slice in which at most `objects` objects are looked through, of the collection that is on or of a new one, which is a whole one. Whether
/// there is more to do.
pub fn step(objects: u32) -> bool {
    let mut made = false;
    slices(true, |_| match core::mem::replace(&mut made, true) {
        false => Next::Slice(Budget::of_objects(objects)),
        true => Next::Later,
    })
}

/// What to do after a slice, or before the first.
enum Next {
    Slice(Budget),
    /// Stop; there is more to do.
    Later,
    /// Stop; there is nothing to do.
    Nothing,
}

/// Makes slices as `next` says, until the collection ends; one that begins is whole if `whole` says so.
fn slices(whole: bool, mut next: impl FnMut(&Heap) -> Next) -> bool {
    let Some(thread) = thread::attached() else { return false };
    let (more, ended) = with_heap(thread, |heap| {
        if !heap.started || heap.held != 0 || !heap.may_slice() {
            return (false, false);
        }
        heap.is_idle = true;
        let result = loop {
            let budget = match next(heap) {
                Next::Slice(budget) => budget,
                Next::Later => break (true, false),
                Next::Nothing => break (false, false),
            };
            let progress = thread.standing_here(|| cycle::step(heap, thread, budget, whole));
            note(thread, progress);
            match progress {
                Progress::More => {}
                Progress::Done => break (false, true),
                Progress::Nothing => break (false, false),
            }
        };
        heap.is_idle = false;
        result
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
