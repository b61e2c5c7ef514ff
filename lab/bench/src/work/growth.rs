//! Workloads with blocks that grow, as those of vectors, strings and buffers do.
//!
//! Each loop grows a block from nothing and frees it at the end. In the first loop the allocator has not
//! served the sizes before (`cold_*`); the other loops reuse the memory (`warm_*`, their median). Each new
//! page gets its page number written into it at once, so that contents lost in a move are detected.

use super::with_memory;
use crate::Metrics;
use std::time::Instant;
use vellum_campaign::worker::area::{Area, PAGE};
use vellum_campaign::worker::{Params, WorkError};
use vellum_campaign::worker::{meter, middle, raw};

const KIB: usize = 1 << 10;

/// Grows a block from 4 KiB by doubling until `bytes`.
pub(super) fn doubling(params: &Params) -> Result<Metrics, WorkError> {
    let bytes = params.size("bytes", 1 << 30);
    looped(params, bytes, || {
        let mut buffer = Buffer::new(4 * KIB);
        let mut inside = 0;
        while buffer.bytes < bytes {
            inside += buffer.grow(buffer.bytes * 2);
        }
        buffer.finish("doubling").map(|()| inside)
    })
}

/// Grows a block from 64 KiB in steps of 64 KiB until `bytes`.
pub(super) fn steps(params: &Params) -> Result<Metrics, WorkError> {
    let bytes = params.size("bytes", 256 << 20);
    looped(params, bytes, || {
        let mut buffer = Buffer::new(64 * KIB);
        let mut inside = 0;
        while buffer.bytes < bytes {
            inside += buffer.grow(buffer.bytes + 64 * KIB);
        }
        buffer.finish("steps").map(|()| inside)
    })
}

/// Grows two blocks by turns in steps of 64 KiB until each has `bytes`. They compete for the free space
/// behind them.
pub(super) fn interleaved(params: &Params) -> Result<Metrics, WorkError> {
    let bytes = params.size("bytes", 128 << 20);
    looped(params, 2 * bytes, || {
        let (mut one, mut other) = (Buffer::new(64 * KIB), Buffer::new(64 * KIB));
        let mut inside = 0;
        while other.bytes < bytes {
            inside += one.grow(one.bytes + 64 * KIB);
            inside += other.grow(other.bytes + 64 * KIB);
        }
        one.finish("interleaved")?;
        other.finish("interleaved").map(|()| inside)
    })
}

/// Runs `grow`, which returns the nanoseconds inside realloc, `loops` times. Reports `cold_ns` and `warm_ns`
/// for the whole loop, `cold_realloc_ns` and `warm_realloc_ns` inside realloc, and `peak_over_final`. The
/// last is the highest resident memory, less the memory before the run, over `final_bytes`.
fn looped(
    params: &Params,
    final_bytes: usize,
    mut grow: impl FnMut() -> Result<u64, WorkError>,
) -> Result<Metrics, WorkError> {
    let loops = params.size("loops", 7).max(2);
    let (mut total, mut inside) = (Area::<u64>::new(loops), Area::<u64>::new(loops));
    let before = meter::resident_bytes();
    for turn in 0..loops {
        let start = Instant::now();
        inside[turn] = grow()?;
        total[turn] = start.elapsed().as_nanos() as u64;
    }
    let mut metrics = Metrics::new();
    metrics.set("cold_ns", total[0] as f64);
    metrics.set("cold_realloc_ns", inside[0] as f64);
    metrics.set("warm_ns", middle(&mut total[1..]));
    metrics.set("warm_realloc_ns", middle(&mut inside[1..]));
    let mut metrics = with_memory(metrics);
    metrics.set("peak_over_final", (meter::peak_bytes() - before) / final_bytes as f64);
    Ok(metrics)
}

/// A block in which each page begins with the page's number.
struct Buffer {
    at: *mut u8,
    bytes: usize,
}

impl Buffer {
    fn new(bytes: usize) -> Self {
        let buffer = Self { at: raw::malloc(bytes), bytes };
        buffer.number(0);
        buffer
    }

    /// Reallocates, touches the new pages, and returns the nanoseconds inside realloc.
    fn grow(&mut self, bytes: usize) -> u64 {
        let start = Instant::now();
        // SAFETY: `at` is this buffer's live block; the old pointer is replaced at once.
        self.at = unsafe { raw::realloc(self.at, bytes) };
        let spent = start.elapsed().as_nanos() as u64;
        let old = std::mem::replace(&mut self.bytes, bytes);
        self.number(old);
        spent
    }

    fn number(&self, from: usize) {
        for at in (from..self.bytes).step_by(PAGE) {
            // SAFETY: `at` and the eight bytes after it lie in the block: sizes are multiples of a page.
            unsafe { self.at.add(at).cast::<u64>().write(at as u64) };
        }
    }

    /// Checks some pages, spread over the whole block, and frees it.
    fn finish(self, workload: &'static str) -> Result<(), WorkError> {
        let stride = (self.bytes / 64).next_multiple_of(PAGE).max(PAGE);
        for at in (0..self.bytes).step_by(stride) {
            // SAFETY: `at` and the eight bytes after it lie in the block: sizes are multiples of a page.
            let found = unsafe { self.at.add(at).cast::<u64>().read() };
            if found != at as u64 {
                return Err(WorkError::Wrong {
                    workload,
                    what: format!("byte {at} holds {found:#x} after growth"),
                });
            }
        }
        // SAFETY: `at` is this buffer's live block, and the buffer is consumed here.
        unsafe { raw::free(self.at) };
        Ok(())
    }
}
