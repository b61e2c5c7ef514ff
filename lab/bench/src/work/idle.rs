//! Workloads that measure the memory that a process keeps after a burst of allocations.
//!
//! Some memory stays live. A burst many times as large is allocated, touched and freed; then the process
//! allocates nothing more. Resident memory is read after `idle_ms`, and should then be about the live
//! memory. With `other=1` the burst happens on a second thread, which then sleeps: the memory in its
//! caches must be returned too.

use crate::Metrics;
use std::sync::mpsc;
use std::time::Duration;
use vellum_campaign::worker::area::{Area, touch};
use vellum_campaign::worker::batch::Batch;
use vellum_campaign::worker::raw::Block;
use vellum_campaign::worker::{Params, WorkError};
use vellum_campaign::worker::{meter, raw};
use vellum_measure::Rng;

/// Blocks of 16 to 512 bytes.
pub(super) fn small(params: &Params) -> Result<Metrics, WorkError> {
    burst(params, |bytes, seed| fill(bytes, seed, |rng| 16 + rng.below(497) as usize), release)
}

/// Blocks of 256 KiB to 8 MiB, equally many of each power of two.
pub(super) fn large(params: &Params) -> Result<Metrics, WorkError> {
    let size = |rng: &mut Rng| {
        let octave = (256 << 10) << rng.below(5);
        octave + rng.below(octave as u64) as usize
    };
    burst(params, |bytes, seed| fill(bytes, seed, size), release)
}

/// Blocks of 16 bytes, by the batch calls if the allocator has them.
pub(super) fn nodes(params: &Params) -> Result<Metrics, WorkError> {
    let Ok(batch) = Batch::find() else {
        return burst(params, |bytes, seed| fill(bytes, seed, |_| NODE), release);
    };
    let make = |bytes: usize, _| {
        let mut nodes = Area::<*mut u8>::new(bytes / NODE);
        batch.malloc(NODE, &mut nodes);
        nodes.iter().for_each(|at| Block { at: *at, bytes: NODE }.stamp());
        nodes
    };
    burst(params, make, |nodes| {
        assert!(nodes.iter().all(|at| Block { at: *at, bytes: NODE }.intact()), "two nodes overlap");
        // SAFETY: made by the call above, freed once.
        unsafe { batch.free(&nodes) };
    })
}

/// Blocks of `least` to `most` bytes, equally many of each power of two. One in [`SURVIVORS`] stays, so
/// that hardly any slab becomes empty. `end_bytes` is the resident memory after `idle_ms`, or with `trim=1`
/// after `malloc_trim`.
pub(super) fn sparse(params: &Params) -> Result<Metrics, WorkError> {
    let (least, most) = (params.size("least", 256), params.size("most", 4096));
    let octaves = u64::from((most / least).ilog2().max(1));
    let blocks = fill(params.size("bytes", 256 << 20), params.seed(), |rng| {
        let octave = least << rng.below(octaves);
        octave + rng.below(octave as u64) as usize
    });
    // The random choice is made twice, since a list of the chosen blocks would count in the measured memory.
    let survives = || {
        let mut rng = Rng::new(params.seed() + 1);
        blocks.iter().map(move |block| (block, rng.below(SURVIVORS) == 0))
    };
    survives().filter(|(_, stays)| !stays).for_each(|(block, _)| block.release());
    let live: usize = survives().filter(|(_, stays)| *stays).map(|(block, _)| block.bytes).sum();
    std::thread::sleep(Duration::from_millis(params.get("idle_ms", 3000)));
    if params.get("trim", 0) != 0 {
        // SAFETY: glibc's function, which takes any number and only releases free memory.
        unsafe { libc::malloc_trim(0) };
    }
    let metrics = report(live as f64);
    survives().filter(|(_, stays)| *stays).for_each(|(block, _)| block.release());
    Ok(metrics)
}

/// One block in this number survives.
const SURVIVORS: u64 = 50;

const NODE: usize = 16;

fn release(blocks: Area<Block>) {
    blocks.iter().for_each(|block| block.release());
}

/// Makes `live` bytes, then `bytes` more and frees the latter, idles, and reports.
fn burst<T>(
    params: &Params,
    make: impl Fn(usize, u64) -> T + Sync,
    forget: impl Fn(T) + Sync,
) -> Result<Metrics, WorkError> {
    let (live, bytes) = (params.size("live", 32 << 20), params.size("bytes", 256 << 20));
    let idle = Duration::from_millis(params.get("idle_ms", 3000));
    let seed = params.seed();

    let kept = make(live, seed);
    let live_bytes = meter::resident_bytes();
    let rush = || forget(make(bytes, seed + 1));

    let metrics = std::thread::scope(|scope| {
        // The second thread stays until the other side of the channel is dropped, so that the memory is not
        // freed by its exit.
        let (end, hold) = mpsc::channel::<()>();
        let (done, wait) = mpsc::channel();
        if params.get("other", 0) == 0 {
            rush();
        } else {
            scope.spawn(move || {
                rush();
                let _ = done.send(());
                let _ = hold.recv();
            });
            wait.recv().expect("the second thread says when it is done");
        }
        std::thread::sleep(idle);
        let metrics = report(live_bytes);
        drop(end);
        metrics
    });
    forget(kept);
    Ok(metrics)
}

/// `end_bytes` now, `live_bytes` before the burst, `end_over_live`, and `peak_bytes`.
fn report(live_bytes: f64) -> Metrics {
    let mut metrics = Metrics::new();
    let end = meter::resident_bytes();
    metrics.set("end_bytes", end);
    metrics.set("live_bytes", live_bytes);
    metrics.set("end_over_live", end / live_bytes);
    metrics.set("peak_bytes", meter::peak_bytes());
    metrics
}

/// Blocks with `bytes` altogether, every page touched.
fn fill(bytes: usize, seed: u64, size: impl Fn(&mut Rng) -> usize) -> Area<Block> {
    // Two passes over the same random sizes: the first counts, so that the table is exact.
    let sizes = || {
        let (mut rng, size) = (Rng::new(seed), &size);
        let mut left = bytes;
        std::iter::from_fn(move || {
            let next = size(&mut rng).min(left);
            left -= next;
            (next > 0).then_some(next)
        })
    };
    let mut blocks = Area::<Block>::new(sizes().count());
    for (slot, bytes) in blocks.iter_mut().zip(sizes()) {
        let block = Block { at: raw::malloc(bytes), bytes };
        // SAFETY: allocated above with `bytes` bytes.
        unsafe { touch(block.at, bytes) };
        block.stamp();
        *slot = block;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn filled_blocks_have_the_requested_total() {
        let blocks = fill(1 << 20, 3, |rng| 16 + rng.below(497) as usize);
        assert_eq!(blocks.iter().map(|b| b.bytes).sum::<usize>(), 1 << 20);
        blocks.iter().for_each(|b| b.release());
    }
}
