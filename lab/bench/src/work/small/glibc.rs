//! Fixed mixes (after the malloc benchmarks of glibc's own test suite).
//!
//! `simple`: runs of equal blocks, a few to a few thousand, allocated and freed in the same order, size after
//! size: the friendliest pattern there is. `thread`: each thread replaces random blocks of a small working
//! set, with sizes that are the rarer the larger they are, up to 32 KiB.

use super::{Area, Block, Failure, Metrics, Params, Rng, measured, on_threads, release_all, threads};

const SIZES: [usize; 8] = [8, 16, 32, 64, 128, 256, 512, 1024];
const RUNS: [usize; 4] = [25, 100, 400, 1600];
const BLOCKS: u64 = 1_600_000;

pub(crate) fn simple(params: &Params) -> Result<Metrics, Failure> {
    let blocks = params.scaled(BLOCKS) as usize;
    measured(|| {
        let mut table = Area::<Block>::new(RUNS[RUNS.len() - 1]);
        for (size, run) in SIZES.into_iter().flat_map(|size| RUNS.map(|run| (size, run))) {
            for _ in 0..blocks.div_ceil(run) {
                table[..run].iter_mut().for_each(|slot| *slot = Block::new(size));
                table[..run].iter().for_each(|block| block.release());
            }
        }
        Ok(())
    })
}

const WORKING_SET: usize = 1024;
const REPLACEMENTS: u64 = 18_000_000;

pub(crate) fn thread(params: &Params) -> Result<Metrics, Failure> {
    let (replacements, seed) = (params.scaled(REPLACEMENTS), params.seed());
    measured(|| {
        on_threads(threads(params), |number| {
            let mut rng = Rng::new(seed + number);
            let mut table = Area::<Block>::new(WORKING_SET);
            for _ in 0..replacements {
                let slot = &mut table[rng.below(WORKING_SET as u64) as usize];
                slot.release();
                *slot = Block::new(inverse_square(rng.unit()));
            }
            release_all(&mut table);
        });
        Ok(())
    })
}

/// Sizes from 4 to 32768 with density 1/size²: the inverse of its cumulative distribution.
fn inverse_square(u: f64) -> usize {
    const LEAST: f64 = 4.0;
    const MOST: f64 = 32768.0;
    (LEAST / (1.0 - u * (1.0 - LEAST / MOST))) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_inverse_square() {
        assert_eq!(inverse_square(0.0), 4);
        assert!(inverse_square(1.0 - 1e-12) <= 32768);
        // Half of the mass lies below about 8: 4 / (1 - 0.5 (1 - 4/32768)) = 7.999.
        assert_eq!(inverse_square(0.5), 7);
    }
}
