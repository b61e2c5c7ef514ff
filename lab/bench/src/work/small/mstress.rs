//! Mixed lifetimes on threads that come and go (after mimalloc's own stress test).
//!
//! Each thread allocates in bursts, mostly small and now and then large blocks, keeps some for long, frees
//! others at once and lays some into places that all threads share, taking out what lies there: such blocks
//! are freed by any thread that finds them, perhaps after their maker has ended. Threads are made anew each
//! round.

use super::{
    Area, Block, Failure, Metrics, Params, Rng, measured, octaves, on_threads, raw, release_all, threads,
};
use std::sync::atomic::{AtomicPtr, Ordering};

const ROUNDS: u64 = 12;
const BURSTS: u64 = 4000;
const BURST: usize = 100;
const LONG_LIVED: usize = 4000;
const SHARED: usize = 1000;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let (bursts, seed) = (params.scaled(BURSTS), params.seed());
    let shared: Vec<AtomicPtr<u8>> = (0..SHARED).map(|_| AtomicPtr::default()).collect();
    measured(|| {
        for round in 0..ROUNDS {
            on_threads(threads(params), |number| {
                one(&shared, bursts, &mut Rng::new(seed + 1000 * round + number));
            });
        }
        shared.iter().for_each(|place| free_shared(place.swap(std::ptr::null_mut(), Ordering::Acquire)));
        Ok(())
    })
}

fn one(shared: &[AtomicPtr<u8>], bursts: u64, rng: &mut Rng) {
    let mut long = Area::<Block>::new(LONG_LIVED);
    let mut burst = Area::<Block>::new(BURST);
    for _ in 0..bursts {
        burst.iter_mut().for_each(|slot| *slot = Block::new(size(rng)));
        for slot in burst.iter_mut() {
            let block = std::mem::replace(slot, Block::NONE);
            match rng.below(8) {
                0 => {
                    let place = &mut long[rng.below(LONG_LIVED as u64) as usize];
                    std::mem::replace(place, block).release();
                }
                1 => {
                    // What crosses threads carries its size in itself.
                    block.release();
                    let crossing = new_shared(8 + rng.below(500) as usize);
                    let place = &shared[rng.below(SHARED as u64) as usize];
                    free_shared(place.swap(crossing, Ordering::AcqRel));
                }
                _ => block.release(),
            }
        }
    }
    release_all(&mut long);
}

/// Mostly 8 bytes to 1 KiB; one in 500 is 16 to 256 KiB.
fn size(rng: &mut Rng) -> usize {
    if rng.below(500) == 0 { octaves(rng, 16 << 10, 4) } else { octaves(rng, 8, 7) }
}

/// A block that begins with its size and ends with a mark made from it.
fn new_shared(bytes: usize) -> *mut u8 {
    let block = raw::malloc(bytes + 8);
    // SAFETY: the block has room for the word in front and the byte at the end.
    unsafe {
        block.cast::<usize>().write(bytes);
        block.add(bytes + 7).write(bytes as u8);
    }
    block
}

fn free_shared(block: *mut u8) {
    if block.is_null() {
        return;
    }
    // SAFETY: made by `new_shared` and taken out of its place by an exchange, so this thread alone owns it.
    unsafe {
        let bytes = block.cast::<usize>().read();
        assert!(block.add(bytes + 7).read() == bytes as u8, "mstress: a shared block lost its contents");
        raw::free(block);
    }
}
