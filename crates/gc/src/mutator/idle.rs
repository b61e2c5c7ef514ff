//! Slices while the program has nothing else to do.
//!
//! A program that waits for input, or for the next frame, can spend that time on the collection that is
//! coming anyway. It offers an amount of time ([`idle`]). It gets the processor back sooner when another
//! thread wants to go on: a slice yields within some ten microseconds. While another thread runs the time is
//! not idle: a slice would stop that thread.
//!
//! Source: Bates, section "Improving the Results": there the scheduler runs slices while no thread is ready.
//! Yielding to threads that become ready kept slices out of the distributions.

use crate::death::run;
use crate::heap::Heap;
use crate::mutator::access::with_heap;
use crate::mutator::budget::Budget;
use crate::mutator::collect::note;
use crate::mutator::{attach, thread};
use crate::plan::mark_sweep::cycle::Progress;
use crate::plan::mark_sweep::incremental;
use vellum_sys::clock;

/// A collection begins in idle time only if one part in this many of the allocation budget was used.
const WORTH_PART: usize = 8;

/// Goes on with the collection in slices that is on, or begins one if enough was allocated. It runs for `ns`
/// nanoseconds at most, or until another thread wants to go on; not at all while one is running. Returns
/// whether there may be more to do.
pub fn idle(ns: u64) -> bool {
    let deadline = clock::now_ns().saturating_add(ns);
    if thread::others_run() {
        return true;
    }
    slices(false, |heap| {
        if heap.incremental.cycle.is_none() && heap.sizing.used < heap.sizing.room / WORTH_PART {
            return Next::Nothing;
        }
        let left = deadline.saturating_sub(clock::now_ns());
        // The end is a stop that cannot be cut short: it is left to a caller that has time for it.
        if left == 0 || left < heap.incremental.end_ns && heap.is_cycle_ready() {
            return Next::Later;
        }
        let mut budget = Budget::new(left, true);
        if budget.look() { Next::Slice(budget) } else { Next::Later }
    })
}

/// The same without a deadline, for the collector's own thread: all threads have waited for `waited_ns`
/// nanoseconds. The end, which cannot be cut short, is made only if they have waited longer than it takes:
/// they should wait as long again. A collection begins only if one part in `worth_part` of the budget was
/// used.
pub(crate) fn unasked(waited_ns: u64, worth_part: usize) -> bool {
    if thread::others_run() {
        return true;
    }
    slices(false, |heap| {
        if heap.incremental.cycle.is_none() && heap.sizing.used < heap.sizing.room / worth_part {
            return Next::Nothing;
        }
        if waited_ns < heap.incremental.end_ns && heap.is_cycle_ready() {
            return Next::Later;
        }
        let mut budget = Budget::new(u64::MAX, true);
        if budget.look() { Next::Slice(budget) } else { Next::Later }
    })
}

/// One slice that scans at most `objects` objects, of the collection that is on or of a new one, which is a
/// whole one. Returns whether there is more to do.
pub fn step(objects: u32) -> bool {
    let mut made = false;
    slices(true, |_| match core::mem::replace(&mut made, true) {
        false => Next::Slice(Budget::of_objects(objects)),
        true => Next::Later,
    })
}

/// The next step after a slice, or before the first.
enum Next {
    Slice(Budget),
    /// Stop; there is more to do.
    Later,
    /// Stop; there is nothing to do.
    Nothing,
}

/// Makes slices as `next` says, until the collection ends; one that begins is whole if `whole` says so.
fn slices(whole: bool, mut next: impl FnMut(&Heap) -> Next) -> bool {
    let Some(thread) = attach::attached() else { return false };
    let (more, ended) = with_heap(thread, |heap| {
        if !heap.started || heap.held != 0 || !heap.may_slice() {
            return (false, false);
        }
        heap.incremental.is_idle = true;
        let result = loop {
            let budget = match next(heap) {
                Next::Slice(budget) => budget,
                Next::Later => break (true, false),
                Next::Nothing => break (false, false),
            };
            let progress = thread.standing_here(|| incremental::step(heap, thread, budget, whole));
            note(thread, progress);
            match progress {
                Progress::More => {}
                Progress::Done => break (false, true),
                Progress::Nothing => break (false, false),
            }
        };
        heap.incremental.is_idle = false;
        result
    });
    if ended {
        run::run_after_collection();
    }
    more
}

/// Whether collections can be made in slices here: the kernel or the program tracks writes.
pub fn can_slice() -> bool {
    let Some(thread) = attach::attached() else { return false };
    with_heap(thread, |heap| heap.started && heap.may_slice())
}
