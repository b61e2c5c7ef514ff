//! When an allocation collects, and what it collects then: a slice, a minor collection, a whole one.

use crate::config::Config;
use crate::death::run;
use crate::debug::checks;
use crate::heap::Heap;
use crate::mutator::access::{Refused, with_heap};
use crate::mutator::attach;
use crate::mutator::budget::Budget;
use crate::mutator::thread::Thread;
use crate::plan;
use crate::plan::contract::Less;
use crate::plan::mark_sweep::cycle::Progress;

/// Objects scanned in a slice where every allocation makes one.
const SLICE_OBJECTS: u32 = 64;
/// Elsewhere, the logarithm of a slice's number of objects is random, and at most this (to base two).
const SLICE_OBJECTS_LOG: u64 = 12;
/// Bytes allocated before the first collection at random: libgc makes none before it has used up the 64 KiB
/// it begins with.
const EARLY: usize = 64 << 10;

/// Starts the heap with the defaults if it has not started.
pub(crate) fn ensure_started(heap: &mut Heap) -> bool {
    heap.started || heap.start(Config::DEFAULT)
}

/// Goes on with a collection in slices, or begins one, if it is time.
pub(crate) fn slice_if_due(heap: &mut Heap, thread: &'static Thread) {
    let progress = plan::of(heap).step_if_due(heap, thread);
    note(thread, progress);
}

/// Records that a collection has ended, if it has: finalizers may be due.
pub(crate) fn note(thread: &Thread, progress: Progress) {
    if progress == Progress::Done {
        ended(thread);
    }
}

fn ended(thread: &Thread) {
    thread.collections.set(thread.collections.get().wrapping_add(1));
}

/// Makes room: ends the collection that is on, or else makes one. Returns whether it was a whole one: then
/// there is no more to be had.
pub(crate) fn collect_in_need(heap: &mut Heap, thread: &'static Thread) -> bool {
    let plan = plan::of(heap);
    match plan.collect_less(heap, thread) {
        Less::Nothing => {}
        Less::NotEnough => ended(thread),
        Less::Enough => {
            ended(thread);
            return false;
        }
    }
    heap.stats.unsliced += u64::from(plan.is_whole_in_vain(heap));
    collect_now(heap, thread);
    true
}

pub(crate) fn collect_now(heap: &mut Heap, thread: &'static Thread) -> bool {
    let done = thread.standing_here(|| plan::of(heap).collect(heap, thread));
    ended(thread);
    done
}

/// Collects now; false if collection is held off or memory for the lists is out.
pub fn collect() -> bool {
    let Some(thread) = attach::attached() else { return false };
    let done = with_heap(thread, |heap| ensure_started(heap) && heap.held == 0 && collect_now(heap, thread));
    if done {
        run::run_after_collection();
    }
    done
}

/// Collects for `thread`, which is inside and about to allocate. `heap` is under its lock.
#[cold]
pub(crate) fn collect_eagerly(heap: &mut Heap, thread: &'static Thread) {
    if !ensure_started(heap) || heap.held != 0 || is_early(heap) || !heap.is_welcome() {
        return;
    }
    let objects = match checks::mean() {
        1 => SLICE_OBJECTS,
        _ => 1 << (checks::random(thread) % (SLICE_OBJECTS_LOG + 1)),
    };
    let budget = Budget::of_objects(objects);
    match plan::of(heap).collect_eagerly(heap, thread, budget) {
        Some(progress) => note(thread, progress),
        None => _ = collect_now(heap, thread),
    }
    checks::collected(heap.stats.marked_objects_last);
}

/// Whether it is too early for a collection at random: the program's roots callback may first have to
/// allocate what it is to name. Where every allocation collects, none is too early.
fn is_early(heap: &Heap) -> bool {
    checks::mean() != 1 && heap.stats.collections == 0 && heap.sizing.used < EARLY
}

/// Runs `work` with the heap's lock when there is room below the maximum for the bytes that `needs` returns,
/// if need be after a collection.
pub(crate) fn look_with_room<R>(
    needs: impl Fn(&Heap) -> usize,
    work: impl FnOnce(&mut Heap) -> Result<R, Refused>,
) -> Result<R, Refused> {
    let thread = attach::attached().ok_or(Refused::OutOfMemory)?;
    let (result, collected) = with_heap(thread, |heap| {
        let bytes = needs(heap);
        if bytes == 0 || heap.may_take(bytes) {
            return (work(heap), false);
        }
        if heap.held != 0 {
            return (Err(Refused::OutOfMemory), false);
        }
        collect_now(heap, thread);
        let fits = heap.may_take(needs(heap));
        (if fits { work(heap) } else { Err(Refused::OutOfMemory) }, true)
    });
    if collected {
        run::run_after_collection();
    }
    result
}
