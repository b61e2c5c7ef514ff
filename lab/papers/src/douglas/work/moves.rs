//! Douglas 2011, section 4.2: contents relocated and swapped, by moving page tables and by copying.
//!
//! Blocks begin at multiples of 2 MiB and all their pages are in use. `relocate` and `swap` are operations
//! of Vellum's page layer; `copy` is memcpy from one such block to another. With `beside=1` a second
//! thread runs all the time. Moving page tables must then interrupt its processor; copying need not.

use crate::area::HUGE;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use vellum_campaign::Metrics;
use vellum_campaign::worker::area::{Area, PAGE};
use vellum_campaign::worker::{Params, WorkError, middle};
use vellum_pages::{Pages, Request};

type Blocks = [NonNull<u8>; 2];
/// One move of blocks of the given size; returns whether it was done.
type Step = fn(&mut Blocks, usize) -> bool;

/// `move_ns`: the median of `times` moves of `bytes`.
pub(super) fn moves(params: &Params) -> Result<Metrics, WorkError> {
    let bytes = params.number("bytes")?;
    let mut spent = Area::<u64>::new(params.number("times")?.max(1));
    let beside = params.number("beside")? != 0;
    // The marks in the two blocks at the end, after `times` moves.
    let (step, marks): (Step, [u64; 2]) = match params.word("method") {
        "relocate" => (relocate, [1, 2]),
        "swap" => (swap, if spent.len().is_multiple_of(2) { [1, 2] } else { [2, 1] }),
        "copy" => (copy, [1, 1]),
        _ => return Err(params.refused("method")),
    };
    let mut blocks = [block(bytes)?, block(bytes)?];
    blocks.iter().zip([1, 2]).for_each(|(block, with)| mark(*block, bytes, with));
    let stop = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        if beside {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let done = spent.iter_mut().all(|slot| {
            let start = Instant::now();
            let done = step(&mut blocks, bytes);
            *slot = start.elapsed().as_nanos() as u64;
            done
        });
        stop.store(true, Ordering::Relaxed);
        done
    });
    if !done {
        return Err(WorkError::Memory { call: "Pages::relocate or swap", bytes });
    }
    for (block, with) in blocks.iter().zip(marks) {
        check(*block, bytes, with)?;
        // SAFETY: a live block, which is not used again.
        let freed = unsafe { Pages::global().free(*block) };
        debug_assert!(freed.is_ok(), "{freed:?}");
    }
    let mut metrics = Metrics::new();
    metrics.set("move_ns", middle(&mut spent));
    Ok(metrics)
}

fn block(bytes: usize) -> Result<NonNull<u8>, WorkError> {
    let extent = Pages::global().alloc(Request { bytes, align: HUGE, zero: false });
    extent.map(|extent| extent.addr).map_err(|_| WorkError::Memory { call: "Pages::alloc", bytes })
}

/// Moves the first block to another address.
fn relocate(blocks: &mut Blocks, _: usize) -> bool {
    // SAFETY: a live block, whose old address is replaced by the new one.
    let moved = unsafe { Pages::global().relocate(blocks[0], HUGE) };
    moved.is_ok_and(|extent| std::mem::replace(&mut blocks[0], extent.addr) != extent.addr)
}

/// Exchanges the contents of both blocks.
fn swap(blocks: &mut Blocks, _: usize) -> bool {
    // SAFETY: two live blocks of the same length.
    unsafe { Pages::global().swap(blocks[0], blocks[1]) }.is_ok()
}

/// Copies the first block over the second by memcpy.
fn copy(blocks: &mut Blocks, bytes: usize) -> bool {
    // SAFETY: two live blocks of `bytes` that do not overlap.
    unsafe { std::hint::black_box(blocks[1]).copy_from_nonoverlapping(blocks[0], bytes) };
    true
}

/// Writes the page's number and the mark into every page.
fn mark(block: NonNull<u8>, bytes: usize, with: u64) {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: inside a live block, at the start of a page.
        unsafe { block.add(at).cast::<u64>().write((at as u64) << 2 | with) };
    }
}

/// Checks every page.
fn check(block: NonNull<u8>, bytes: usize, with: u64) -> Result<(), WorkError> {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: inside a live block, at the start of a page.
        let found = unsafe { block.add(at).cast::<u64>().read() };
        let expected = (at as u64) << 2 | with;
        if found != expected {
            return Err(WorkError::Damaged { what: format!("byte {at} after the moves"), found, expected });
        }
    }
    Ok(())
}
