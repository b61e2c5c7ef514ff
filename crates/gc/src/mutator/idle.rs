//! Runs slices (pieces) of a collection while the program has nothing else to do ([`idle`]).
//!
//! A program that waits for input, or to draw its next picture, can offer that time for the next collection.
//! A slice yields within about ten microseconds when another thread is ready. No slice begins while another
//! thread runs, as the slice would stop that thread.
//!
//! Source: Bates 1999, "Reliable Benchmarking with Limbo on Inferno", section "Improving the Results". There
//! the scheduler runs slices while no thread is ready. As slices yield to threads that become ready, the
//! slices do not show in the distributions of response times.

use crate::heap::Heap;
use crate::instance::{Collector, world};
use crate::mutator::access::with_collector;
use crate::mutator::collect::note;
use crate::mutator::{attach, run};
use crate::plan::PlanState;
use crate::plan::contract::{Plan, Progress};
use crate::plan::mark_sweep::{MarkSweep, incremental};
use crate::world::budget::Budget;
use vellum_sys::clock;

/// A collection begins in idle time only if one part in this many of the allocation budget was used.
const WORTH_PART: usize = 8;

/// Goes on with the collection in slices that is on, or begins one if enough was allocated. Runs for `ns`
/// nanoseconds at most, or until another thread is ready; returns at once while another thread runs. Returns
/// whether there may be more to do.
pub fn idle(ns: u64) -> bool {
    let deadline = clock::now_ns().saturating_add(ns);
    // The end is a stop that cannot be cut short: it is left to a caller that has time for it.
    slices_in_idle_time(WORTH_PART, |end_ns| {
        let left = deadline.saturating_sub(clock::now_ns());
        (left > 0 && left >= end_ns).then_some(left)
    })
}

/// [`idle`] without a deadline, for the collector's own thread: all threads have waited for `waited_ns`
/// nanoseconds. The end, which cannot be cut short, is made only if they have waited longer than it takes:
/// they should wait as long again. A collection begins only if one part in `worth_part` of the budget was
/// used.
pub(crate) fn unasked(waited_ns: u64, worth_part: usize) -> bool {
    slices_in_idle_time(worth_part, |end_ns| (waited_ns >= end_ns).then_some(u64::MAX))
}

/// Makes slices while no other thread runs. A collection begins only if one part in `worth_part` of the
/// budget was used. `left_ns` returns how long the next slice may last, if there is to be one, which takes
/// some time if it is the end.
fn slices_in_idle_time(worth_part: usize, mut left_ns: impl FnMut(u64) -> Option<u64>) -> bool {
    if world().others_run() {
        return true;
    }
    slices(false, |plan, heap| {
        if !plan.is_in_cycle() && heap.sizing.used < heap.sizing.room / worth_part {
            return Next::Nothing;
        }
        let Some(left) = left_ns(plan.end_ns_expected()) else { return Next::Later };
        let mut budget = Budget::new(left, Some(&world().waiters));
        if budget.look() { Next::Slice(budget) } else { Next::Later }
    })
}

/// Makes one slice of at most `objects` objects. A collection that begins with it is a whole one. Returns
/// whether there is more to do.
pub fn step(objects: u32) -> bool {
    let mut made = false;
    slices(true, |_, _| match core::mem::replace(&mut made, true) {
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

/// Makes slices by the decisions of `next`, until the collection ends. `whole`: a new collection is a whole
/// one.
fn slices(whole: bool, mut next: impl FnMut(&MarkSweep, &Heap) -> Next) -> bool {
    let Some(thread) = attach::attached() else { return false };
    let (more, ended) = with_collector(thread, |collector| {
        let heap = &mut collector.heap;
        let PlanState::MarkSweep(plan) = &mut collector.plan else { return (false, false) };
        if !heap.started || heap.held != 0 || !plan.may_slice(heap) {
            return (false, false);
        }
        plan.is_idle = true;
        let result = loop {
            let budget = match next(plan, heap) {
                Next::Slice(budget) => budget,
                Next::Later => break (true, false),
                Next::Nothing => break (false, false),
            };
            let progress = thread.collecting(|| incremental::step(plan, heap, thread, budget, whole));
            note(thread, progress);
            match progress {
                Progress::More => {}
                Progress::Done => break (false, true),
                Progress::Nothing => break (false, false),
            }
        };
        plan.is_idle = false;
        result
    });
    if ended {
        run::run_after_collection();
    }
    more
}

/// Sets whether slices in idle time yield to threads that are ready. They do by default; `false` is for
/// experiments on what that is worth.
pub fn give_way(on: bool) {
    world().waiters.give_way(on);
}

/// Returns whether collections can be made in slices here: the kernel or the program tracks writes.
pub fn can_slice() -> bool {
    let Some(thread) = attach::attached() else { return false };
    with_collector(
        thread,
        |Collector { heap, plan }| matches!(plan, PlanState::MarkSweep(plan) if heap.started && plan.may_slice(heap)),
    )
}
