//! The contents of blocks moved to another place, by page tables and by copying.
//!
//! Blocks lie at multiples of 2 MiB and every page of them was touched. `relocate` and `swap` are Vellum's;
//! `copy` is memcpy between two such warm blocks, the only way without them. Each page holds its number and
//! the mark of its block, which are checked after the last move.
//!
//! With `beside=1` a second thread runs and writes all the time. Moving page tables must then interrupt the
//! other processor; copying need not.

use super::large::{PAGE, middle};
use super::{Failure, Params, with_memory};
use crate::area::Area;
use crate::vellum::{Relocate, Swap};
use crate::{Metrics, raw};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const HUGE: usize = 2 << 20;

/// The two blocks of a run. The first has mark 1; the second's mark depends on the workload.
struct Pair {
    one: *mut u8,
    other: *mut u8,
    bytes: usize,
}

/// Moves one block to another address, repeatedly.
pub(super) fn relocate(params: &Params) -> Result<Metrics, Failure> {
    let relocate = Relocate::find()?;
    let step = |pair: &mut Pair| {
        // SAFETY: a live block, whose old address is replaced by the new one if it was moved.
        let moved = unsafe { relocate.call(pair.one, HUGE) };
        let fine = !moved.is_null() && moved != pair.one;
        pair.one = if fine { moved } else { pair.one };
        fine
    };
    measured("relocate", params, [1, 2], step)
}

/// Exchanges the contents of the two blocks.
pub(super) fn swap(params: &Params) -> Result<Metrics, Failure> {
    let swap = Swap::find()?;
    let step = |pair: &mut Pair| {
        std::mem::swap(&mut pair.one, &mut pair.other);
        // SAFETY: two live blocks of the same length.
        unsafe { swap.call(pair.one, pair.other) }
    };
    measured("swap", params, [1, 2], step)
}

/// Copies one block over the other by memcpy, alternately.
pub(super) fn copy(params: &Params) -> Result<Metrics, Failure> {
    let step = |pair: &mut Pair| {
        std::mem::swap(&mut pair.one, &mut pair.other);
        // SAFETY: two live blocks of `bytes` that do not overlap.
        unsafe { raw::opaque(pair.one).copy_from_nonoverlapping(pair.other, pair.bytes) };
        true
    };
    measured("copy", params, [1, 1], step)
}

/// `move_ns`: the median of `moves` calls of `step`. Afterwards the blocks must have these `marks`.
fn measured(
    workload: &'static str,
    params: &Params,
    marks: [u64; 2],
    step: impl Fn(&mut Pair) -> bool,
) -> Result<Metrics, Failure> {
    let bytes = params.size("bytes", 64 << 20).next_multiple_of(HUGE);
    let mut spent = Area::<u64>::new(params.size("moves", 21).max(1));
    let mut pair = Pair { one: raw::aligned(HUGE, bytes), other: raw::aligned(HUGE, bytes), bytes };
    mark(pair.one, bytes, 1);
    mark(pair.other, bytes, 2);

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if params.get("beside", 0) != 0 {
            scope.spawn(|| run_until(&stop));
        }
        let timed = spent.iter_mut().enumerate().try_for_each(|(number, slot)| {
            let start = Instant::now();
            let fine = step(&mut pair);
            *slot = start.elapsed().as_nanos() as u64;
            let what = || format!("move {number} of {bytes} bytes was refused or moved nothing");
            fine.then_some(()).ok_or_else(|| Failure::Wrong { workload, what: what() })
        });
        stop.store(true, Ordering::Relaxed);
        timed
    })?;

    for (block, mark) in [(pair.one, marks[0]), (pair.other, marks[1])] {
        check(workload, block, bytes, mark)?;
    }
    let mut metrics = Metrics::new();
    metrics.set("move_ns", middle(&mut spent));
    let metrics = with_memory(metrics);
    for block in [pair.one, pair.other] {
        // SAFETY: the two live blocks, freed once.
        unsafe { raw::free(block) };
    }
    Ok(metrics)
}

/// A thread that never sleeps and touches its own memory.
fn run_until(stop: &AtomicBool) {
    let mut own = Area::<u64>::new(8 << 10);
    let mut at = 0;
    while !stop.load(Ordering::Relaxed) {
        own[at % (8 << 10)] += 1;
        at += 1;
    }
}

/// Writes number and mark into every page.
fn mark(block: *mut u8, bytes: usize, mark: u64) {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: inside the block, aligned to a page.
        unsafe { block.add(at).cast::<u64>().write((at as u64) << 2 | mark) };
    }
}

/// Checks every page.
fn check(workload: &'static str, block: *mut u8, bytes: usize, mark: u64) -> Result<(), Failure> {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: inside the block, aligned to a page.
        let found = unsafe { block.add(at).cast::<u64>().read() };
        if found != (at as u64) << 2 | mark {
            return Err(Failure::Wrong {
                workload,
                what: format!("byte {at} holds {found:#x} after the moves"),
            });
        }
    }
    Ok(())
}
