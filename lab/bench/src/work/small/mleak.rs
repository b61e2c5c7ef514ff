//! Threads that come and go, hundreds of times over (after mimalloc-bench's mleak).
//!
//! Each thread lives for a moment: it allocates, frees most of it, leaves the rest to the main thread, which
//! frees it later. An allocator that loses a little with each thread that ends grows here: `end_bytes` shows
//! it.

use super::{Area, Block, Failure, Metrics, Params, Rng, measured, octaves, release_all, threads};
use std::sync::mpsc;

const ROUNDS: u64 = 1500;
const BLOCKS: usize = 600;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let (rounds, threads, seed) = (params.scaled(ROUNDS), threads(params), params.seed());
    measured(|| {
        for round in 0..rounds {
            let (leave, left) = mpsc::channel::<Area<Block>>();
            for number in 0..threads {
                let leave = leave.clone();
                std::thread::spawn(move || {
                    // The receiver outlives the round.
                    let _ = leave.send(moment(&mut Rng::new(seed + 100 * round + number)));
                });
            }
            drop(leave);
            let mut came = 0;
            for mut blocks in left {
                release_all(&mut blocks);
                came += 1;
            }
            assert_eq!(came, threads, "a thread panicked: its message is above");
        }
        Ok(())
    })
}

/// Allocates, frees four of five, and returns the table with the rest.
fn moment(rng: &mut Rng) -> Area<Block> {
    let mut blocks = Area::<Block>::new(BLOCKS);
    blocks.iter_mut().for_each(|slot| *slot = Block::new(octaves(rng, 8, 9)));
    for (place, slot) in blocks.iter_mut().enumerate() {
        if place % 5 != 0 {
            std::mem::replace(slot, Block::NONE).release();
        }
    }
    blocks
}
