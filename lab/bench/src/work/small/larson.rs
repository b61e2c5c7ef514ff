//! A server whose threads inherit each other's blocks (after Larson and Krishnan, 1998).
//!
//! Each lane owns a table of blocks and replaces random ones with new ones of 8 to 1000 bytes. After a while
//! the thread of the lane ends and a fresh one takes over the table: from then on it frees what its
//! predecessor allocated, as a server's threads do with the sessions they pass on.

use super::{Area, Block, Failure, Metrics, Params, Rng, measured, release_all, threads};
use std::sync::mpsc;

const SLOTS: usize = 5000;
const GENERATIONS: u64 = 24;
const REPLACEMENTS: u64 = 500_000;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let (lanes, seed, replacements) = (threads(params), params.seed(), params.scaled(REPLACEMENTS));
    measured(|| {
        let (done, next) = mpsc::channel::<Lane>();
        for number in 0..lanes {
            spawn(
                Lane { blocks: Area::new(SLOTS), rng: Rng::new(seed + number), left: GENERATIONS },
                replacements,
                &done,
            );
        }
        let mut running = lanes;
        while running > 0 {
            let mut lane = next.recv().expect("a thread of a lane panicked: its message is above");
            if lane.left > 0 {
                spawn(lane, replacements, &done);
            } else {
                release_all(&mut lane.blocks);
                running -= 1;
            }
        }
        Ok(())
    })
}

struct Lane {
    blocks: Area<Block>,
    rng: Rng,
    left: u64,
}

fn spawn(mut lane: Lane, replacements: u64, done: &mpsc::Sender<Lane>) {
    let done = done.clone();
    std::thread::spawn(move || {
        for _ in 0..replacements {
            let slot = lane.rng.below(SLOTS as u64) as usize;
            lane.blocks[slot].release();
            lane.blocks[slot] = Block::new(8 + lane.rng.below(993) as usize);
        }
        lane.left -= 1;
        // The receiver outlives all lanes, unless another lane panicked and the worker is ending anyway.
        let _ = done.send(lane);
    });
}
