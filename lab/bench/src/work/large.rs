//! Workloads that allocate a large block, write one byte in each page, and free it, over and over.
//!
//! The *floor* is the time to touch memory that is already mapped: no allocator can be faster. Loops are
//! timed in groups of at least `pages` pages, so that reading the clock has no visible cost. The median is
//! reported.
//!
//! Figures 3 to 5 of Douglas 2011, "User Mode Memory Page Management", plot the cost per page against block
//! size. In that paper the allocation alone costs the same at every size; the workload `pair` measures it.

use super::with_memory;
use crate::Metrics;
use std::time::Instant;
use vellum_campaign::worker::area::{Area, PAGE, touch};
use vellum_campaign::worker::raw;
use vellum_campaign::worker::{Params, WorkError, middle};

/// `ns_per_page` of allocating, touching and freeing a block of `bytes`; `cold_ns_per_page` of the first
/// time.
pub(super) fn blocks(params: &Params) -> Result<Metrics, WorkError> {
    let bytes = params.size("bytes", 1 << 20);
    let mut metrics = timed(params, bytes, || {
        let block = raw::malloc(bytes);
        // SAFETY: allocated above with `bytes` bytes, freed once.
        unsafe {
            touch(block, bytes);
            raw::free(block);
        }
    });
    metrics.set("block_bytes", bytes as f64);
    Ok(with_memory(metrics))
}

/// The floor: touching a mapping that stays mapped.
pub(super) fn floor(params: &Params) -> Result<Metrics, WorkError> {
    let bytes = params.size("bytes", 1 << 20);
    let mut area = Area::<u8>::new(bytes);
    let at = area.as_mut_ptr();
    // SAFETY: the area has `bytes` bytes.
    Ok(with_memory(timed(params, bytes, || unsafe { touch(raw::opaque(at), bytes) })))
}

/// `pair_ns`: one malloc and free of a block that was touched once before and is not touched again.
pub(super) fn pair(params: &Params) -> Result<Metrics, WorkError> {
    let bytes = params.size("bytes", 1 << 20);
    let pairs = params.get("pairs", 2000);
    let block = raw::malloc(bytes);
    // SAFETY: allocated above with `bytes` bytes, freed once.
    unsafe {
        touch(block, bytes);
        raw::free(block);
    }

    let groups = params.size("groups", 21);
    let mut spent = Area::<u64>::new(groups);
    for slot in spent.iter_mut() {
        let start = Instant::now();
        for _ in 0..pairs {
            let block = raw::malloc(bytes);
            // SAFETY: allocated above, freed once.
            unsafe { raw::free(block) };
        }
        *slot = start.elapsed().as_nanos() as u64;
    }
    let mut metrics = Metrics::new();
    metrics.set("pair_ns", middle(&mut spent) / pairs as f64);
    Ok(with_memory(metrics))
}

/// One cold round of `step`, then `groups` timed groups.
fn timed(params: &Params, bytes: usize, step: impl Fn()) -> Metrics {
    let pages = bytes.div_ceil(PAGE);
    let loops = params.size("pages", 16 << 10).div_ceil(pages);
    let groups = params.size("groups", 9);
    let mut spent = Area::<u64>::new(groups);

    let start = Instant::now();
    step();
    let cold = start.elapsed().as_nanos() as f64;
    for slot in spent.iter_mut() {
        let start = Instant::now();
        for _ in 0..loops {
            step();
        }
        *slot = start.elapsed().as_nanos() as u64;
    }
    let mut metrics = Metrics::new();
    metrics.set("ns_per_page", middle(&mut spent) / (loops * pages) as f64);
    metrics.set("cold_ns_per_page", cold / pages as f64);
    metrics
}
