//! Batches of mixed sizes, freed in another order than they came (after MicroQuill's sh6bench and sh8bench).
//!
//! Each turn fills a table with blocks in rising sizes, frees part of it backwards, part of it forwards, and
//! keeps a few blocks over to the next turn, so that free lists never come back in order. `sh8` exchanges its
//! full table with the other threads before freeing: most blocks die on a foreign thread.

use super::{Area, Block, Failure, Metrics, Params, Rng, measured, on_threads, release_all, threads};
use std::sync::Mutex;

const BATCH: usize = 12_000;
const SMALLEST: usize = 8;
const TURNS_SH6: u64 = 2000;
const TURNS_SH8: u64 = 300;
/// One block in this many survives a turn.
const KEPT: usize = 7;

pub(crate) fn sh6(params: &Params) -> Result<Metrics, Failure> {
    let turns = params.scaled(TURNS_SH6);
    let seed = params.seed();
    measured(|| {
        on_threads(threads(params), |number| {
            let mut rng = Rng::new(seed + number);
            let mut table = Area::<Block>::new(BATCH);
            for _ in 0..turns {
                fill(&mut table, &mut rng, 400);
                free_mixed(&mut table);
            }
            release_all(&mut table);
        });
        Ok(())
    })
}

pub(crate) fn sh8(params: &Params) -> Result<Metrics, Failure> {
    let turns = params.scaled(TURNS_SH8);
    let seed = params.seed();
    let exchange: Mutex<Option<Area<Block>>> = Mutex::new(None);
    measured(|| {
        on_threads(threads(params), |number| {
            let mut rng = Rng::new(seed + number);
            let mut table = Area::<Block>::new(BATCH);
            for _ in 0..turns {
                fill(&mut table, &mut rng, 2000);
                let mut held = exchange.lock().expect("no holder of the exchange panics");
                table = held.replace(table).unwrap_or_else(|| Area::new(BATCH));
                drop(held);
                free_mixed(&mut table);
            }
            release_all(&mut table);
        });
        if let Some(mut left) = exchange.lock().expect("no holder of the exchange panics").take() {
            release_all(&mut left);
        }
        Ok(())
    })
}

/// Gives every empty place a block; sizes rise through the table with some noise.
fn fill(table: &mut [Block], rng: &mut Rng, spread: usize) {
    let len = table.len();
    for (place, slot) in table.iter_mut().enumerate().filter(|(_, slot)| !slot.is_some()) {
        let rising = place * spread / len;
        *slot = Block::new(SMALLEST + rising / 2 + rng.below(1 + rising as u64 / 2) as usize);
    }
}

/// Frees the odd places from the end, then the even ones from the start, but for those kept.
fn free_mixed(table: &mut [Block]) {
    let empty = |slot: &mut Block| std::mem::replace(slot, Block::NONE).release();
    table.iter_mut().skip(1).step_by(2).rev().for_each(empty);
    for (place, slot) in table.iter_mut().enumerate().step_by(2) {
        if place % KEPT != 0 {
            empty(slot);
        }
    }
}
