//! Random sizes up to 16000 bytes with frees across threads (after rpmalloc's benchmark).
//!
//! Each thread replaces random blocks in a table of its own; every few thousand turns it puts the table up
//! for exchange and goes on with that of another thread, whose blocks it then replaces.

use super::{Area, Block, Failure, Metrics, Params, Rng, measured, on_threads, release_all, threads};
use std::sync::Mutex;

const SLOTS: usize = 1500;
const EXCHANGES: u64 = 500;
const TURNS: u64 = 5_000;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let (exchanges, seed) = (params.scaled(EXCHANGES), params.seed());
    let exchange: Mutex<Option<Area<Block>>> = Mutex::new(None);
    measured(|| {
        on_threads(threads(params), |number| {
            let mut rng = Rng::new(seed + number);
            let mut table = Area::<Block>::new(SLOTS);
            for _ in 0..exchanges {
                for _ in 0..TURNS {
                    let slot = &mut table[rng.below(SLOTS as u64) as usize];
                    slot.release();
                    *slot = Block::new(16 + rng.below(15_985) as usize);
                }
                let mut held = exchange.lock().expect("no holder of the exchange panics");
                table = held.replace(table).unwrap_or_else(|| Area::new(SLOTS));
            }
            release_all(&mut table);
        });
        if let Some(mut left) = exchange.lock().expect("no holder of the exchange panics").take() {
            release_all(&mut left);
        }
        Ok(())
    })
}
