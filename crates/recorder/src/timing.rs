//! The choice of operations to time, and the statistics of their times.
//!
//! The first [`FIRST`] operations of a record are timed. If any took less than a microsecond, later
//! operations are sampled at random distances, whose mean grows with the count up to [`GAP_MAX`]. A fixed
//! distance could match the allocator's own period (a slab is carved at regular intervals) and see that work
//! always or never. If all operations take longer than a microsecond, all are timed.
//!
//! A timing represents all operations since the last timing, and is weighted accordingly in the sums. The
//! mean is therefore unbiased, although the first operations are over-represented among the timings.
//!
//! An operation during which the thread loses its processor takes milliseconds. With a weight of a thousand,
//! one such timing would raise the mean a thousandfold. A timing longer than [`DISTURBED_US`], in a record
//! with another timing below a microsecond, is stored in a separate record ([`ASIDE_BIT`]). The next timing
//! also represents this operation. The command decides after the run whether these timings were disturbances:
//! if they are frequent, they belong to the operation. The tests for a microsecond use the record's minimum,
//! which no disturbance can raise; with the mean, one disturbance would cause all operations to be timed.
//!
//! Times are read from the time-stamp counter, fenced on both sides to time exactly the operation.
//!
//! Invariants: `due` (the next count to time) exceeds `count` except during a timing; only the table's thread
//! writes.

use crate::process;
use crate::table;
use crate::thread::Thread;
use core::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use core::sync::atomic::Ordering::Relaxed;
use vellum_wire::cost::{ASIDE_BIT, DISTURBED_US, Due, Record, halves, joined};

/// The number of first operations of a record that are all timed.
const FIRST: u64 = 32;
/// The largest mean distance between timed operations.
const GAP_MAX: u64 = 1024;
/// The mean distance is at most the count divided by this, so the number of timings grows at least with the
/// logarithm of the count.
const GAP_SHARE: u64 = 32;

/// The time before an operation.
#[inline(always)]
pub(crate) fn begin() -> u64 {
    // SAFETY: every x86-64 processor has `lfence` and `rdtsc`.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// The time after an operation.
#[inline(always)]
pub(crate) fn end() -> u64 {
    let mut cpu = 0;
    // SAFETY: every x86-64 processor since 2008 has `rdtscp`.
    unsafe {
        let now = __rdtscp(&raw mut cpu);
        _mm_lfence();
        now
    }
}

/// Records that the operation just counted took `cycles`.
pub(crate) fn note(record: &Record, cycles: u64, thread: &Thread) {
    let count = record.count.load(Relaxed);
    let last = Due(record.due.load(Relaxed)).last();
    let shortest = note_extremes(record, cycles);
    let long = u64::from(process::CYCLES_PER_US.load(Relaxed));
    let is_aside = cycles > long.saturating_mul(DISTURBED_US) && (last == 0 || shortest < long as f32);
    let last = if is_aside {
        // The next timing represents this operation too.
        put_aside(record, cycles, thread);
        last
    } else {
        // The weight exceeds the gap if operations could not be timed.
        add(record, cycles, count.wrapping_sub(last).max(1));
        count
    };
    let distance = if count < FIRST || shortest >= long as f32 {
        1
    } else {
        let mean = (count / GAP_SHARE).clamp(1, GAP_MAX);
        // Uniform from 1 to 2 mean - 1.
        1 + thread.next_random() % (2 * mean - 1)
    };
    record.due.store(Due::new(count + distance, last).0, Relaxed);
}

/// Adds a time that represents `weight` operations.
fn add(record: &Record, cycles: u64, weight: u64) {
    let sum = record.sum.load(Relaxed).wrapping_add(cycles.wrapping_mul(weight));
    let square = (cycles as f32) * (cycles as f32) * weight as f32;
    let (squares, timed) = halves(record.squares_timed.load(Relaxed));
    let squares = f32::from_bits(squares) + square;
    record.sum.store(sum, Relaxed);
    record.squares_timed.store(joined(squares.to_bits(), timed.saturating_add(1)), Relaxed);
}

/// Updates the extremes with a time; returns the smallest so far.
fn note_extremes(record: &Record, cycles: u64) -> f32 {
    let this = cycles as f32;
    let before = record.extremes.load(Relaxed);
    let (low, high) = halves(before);
    let (low, high) = (f32::from_bits(low), f32::from_bits(high));
    let low = if before == 0 || this < low { this } else { low };
    let high = if this > high { this } else { high };
    record.extremes.store(joined(low.to_bits(), high.to_bits()), Relaxed);
    low
}

/// Adds a time to the record's separate long timings. Without room for them, only the maximum shows it.
#[cold]
fn put_aside(record: &Record, cycles: u64, thread: &Thread) {
    let (place, what) = (record.place.load(Relaxed), record.what.load(Relaxed));
    if let Some((asides, _)) = table::find_or_add(thread, place, what | ASIDE_BIT) {
        add(asides, cycles, 1);
        asides.count.store(asides.count.load(Relaxed) + 1, Relaxed);
    }
}
