//! Decides when an allocation collects, and how much: a slice (part of a collection), new objects, or all.

use crate::config::Config;
use crate::heap::Heap;
use crate::instance::Collector;
use crate::mutator::access::{Refused, with_collector};
use crate::mutator::{attach, run};
use crate::plan::contract::{Less, Progress};
use crate::world::budget::Budget;
use crate::world::thread::Thread;

/// Objects scanned in a slice where every allocation makes one.
const SLICE_OBJECTS: u32 = 64;
/// Elsewhere, the logarithm of a slice's number of objects is random, and at most this (to base two).
const SLICE_OBJECTS_LOG: u64 = 12;
/// Bytes allocated before the first collection at random: libgc makes none in its first 64 KiB.
const EARLY: usize = 64 << 10;

/// Goes on with a collection in slices, or begins one, if it is time.
pub(crate) fn slice_if_due(collector: &mut Collector, thread: &'static Thread) {
    let progress = collector.plan.step_if_due(&mut collector.heap, thread);
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
pub(crate) fn collect_in_need(collector: &mut Collector, thread: &'static Thread) -> bool {
    let Collector { heap, plan } = collector;
    match plan.collect_less(heap, thread) {
        Less::Nothing => {}
        Less::NotEnough => ended(thread),
        Less::Enough => {
            ended(thread);
            return false;
        }
    }
    heap.stats.unsliced += u64::from(plan.is_whole_in_vain(heap));
    collect_now(collector, thread);
    true
}

pub(crate) fn collect_now(collector: &mut Collector, thread: &'static Thread) -> bool {
    let done = thread.collecting(|| collector.plan.collect(&mut collector.heap, thread));
    ended(thread);
    done
}

/// Collects now; false if collection is held off or memory for the lists is out.
pub fn collect() -> bool {
    let Some(thread) = attach::attached() else { return false };
    let done = with_collector(thread, |collector| {
        collector.start(Config::DEFAULT) && collector.heap.held == 0 && collect_now(collector, thread)
    });
    if done {
        run::run_after_collection();
    }
    done
}

/// Collects for `thread`, which is inside and about to allocate.
#[cold]
pub(crate) fn collect_eagerly(collector: &mut Collector, thread: &'static Thread) {
    if !collector.start(Config::DEFAULT) {
        return;
    }
    let Collector { heap, plan } = collector;
    if heap.held != 0 || is_early(heap) || !heap.is_welcome() {
        return;
    }
    let checks = &heap.shared.observer.checks;
    let objects = match checks.mean() {
        1 => SLICE_OBJECTS,
        _ => 1 << (checks.random(thread) % (SLICE_OBJECTS_LOG + 1)),
    };
    let budget = Budget::of_objects(objects);
    match plan.collect_eagerly(heap, thread, budget) {
        Some(progress) => note(thread, progress),
        None => _ = collect_now(collector, thread),
    }
    checks.collected(collector.heap.stats.marked_objects_last);
}

/// Returns whether it is too early for a collection at random: the program's roots callback may first have to
/// allocate the objects that it names. A heap that collects at every allocation has no such exception.
fn is_early(heap: &Heap) -> bool {
    heap.shared.observer.checks.mean() != 1 && heap.stats.collections == 0 && heap.sizing.used < EARLY
}

/// Runs `work` with the heap's lock when there is room below the maximum for the bytes that `needs` returns,
/// if need be after a collection.
pub(crate) fn look_with_room<R>(
    needs: impl Fn(&Heap) -> usize,
    work: impl FnOnce(&mut Heap) -> Result<R, Refused>,
) -> Result<R, Refused> {
    let thread = attach::attached().ok_or(Refused::OutOfMemory)?;
    let (result, collected) = with_collector(thread, |collector| {
        let heap = &mut collector.heap;
        let bytes = needs(heap);
        if bytes == 0 || heap.may_take(bytes) {
            return (work(heap), false);
        }
        if heap.held != 0 {
            return (Err(Refused::OutOfMemory), false);
        }
        collect_now(collector, thread);
        let heap = &mut collector.heap;
        let fits = heap.may_take(needs(heap));
        (if fits { work(heap) } else { Err(Refused::OutOfMemory) }, true)
    });
    if collected {
        run::run_after_collection();
    }
    result
}
