//! Douglas 2011, Figure 6: very small and very large blocks mixed at random, and the cost of each size.
//!
//! Each step picks an entry of a table at random, frees its block, and allocates another in its place. The
//! size is drawn so that every power of two is equally likely. One byte of each page of the new block is
//! written. A block's cost is the time of its allocation, these writes, and its free, averaged for each
//! power of two of its size. It includes the effect of the other blocks' sizes, as in the paper.

use crate::clock;
use vellum_campaign::Metrics;
use vellum_campaign::worker::area::{Area, touch};
use vellum_campaign::worker::{Params, WorkError, raw};
use vellum_measure::Rng;

/// The smallest bin: blocks from `2^BIN_FIRST` bytes.
pub(crate) const BIN_FIRST: u32 = 4;
/// The largest bin: blocks below `2^(BIN_LAST + 1)` bytes.
pub(crate) const BIN_LAST: u32 = 20;
/// Blocks in use at a time: 50 MiB on average.
const PLACES: usize = 512;

/// `bin_N_cycles` for each bin: allocating, using and freeing a block of `2^N` bytes or more, as the mean
/// over all blocks of the bin. `cpu_ns` is the process's CPU time for the whole run.
pub(super) fn mix(params: &Params) -> Result<Metrics, WorkError> {
    let (steps, seed) = (params.number("steps")?, params.number("seed")?);
    let mut rng = Rng::new(seed as u64);
    let bins = BIN_LAST as usize + 1;
    let (mut spent, mut count) = (Area::<u64>::new(bins), Area::<u64>::new(bins));
    let mut places = Area::<(*mut u8, usize)>::new(PLACES);
    let base = clock::base();
    let begun = clock::cpu();
    // The first round fills the table; it is not counted.
    for step in 0..steps + PLACES {
        let place = if step < PLACES { step } else { rng.below(PLACES as u64) as usize };
        let bin = BIN_FIRST + rng.below(u64::from(BIN_LAST - BIN_FIRST + 1)) as u32;
        let bytes = (1usize << bin) + rng.below(1 << bin) as usize;
        let (old, old_bin) = places[place];
        if !old.is_null() {
            let start = clock::now();
            // SAFETY: a live block of this table, which is replaced by another one.
            unsafe { raw::free(old) };
            spent[old_bin] += (clock::now() - start).saturating_sub(base);
        }
        let start = clock::now();
        let block = raw::malloc(bytes);
        // SAFETY: the block was just allocated with `bytes` bytes.
        unsafe { touch(block, bytes) };
        let end = clock::now();
        if step >= PLACES {
            spent[bin as usize] += (end - start).saturating_sub(base);
            count[bin as usize] += 1;
        }
        places[place] = (block, bin as usize);
    }
    let cpu = clock::cpu() - begun;
    for (block, _) in places.iter() {
        // SAFETY: after the first round every place holds a live block, and none is used again.
        unsafe { raw::free(*block) };
    }
    let mut metrics = Metrics::new();
    metrics.set("cpu_ns", cpu.as_nanos() as f64);
    for bin in BIN_FIRST as usize..bins {
        metrics.set(&format!("bin_{bin}_cycles"), spent[bin] as f64 / count[bin] as f64);
    }
    Ok(metrics)
}
