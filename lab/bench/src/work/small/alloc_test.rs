//! Random sizes, random lifetimes (after node-dev's alloc-test).
//!
//! Small blocks are common and big ones rare (each octave from 8 bytes half as likely as the one below); some
//! slots are hit all the time and others almost never, so that short-lived blocks share their neighbourhood
//! with old ones.

use super::{Area, Block, Failure, Metrics, Params, Rng, measured, on_threads, release_all, threads};

const SLOTS: usize = 1 << 16;
const TURNS: u64 = 24_000_000;
const SIZE_OCTAVES: u32 = 8;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let (turns, seed, threads) = (params.scaled(TURNS), params.seed(), threads(params));
    measured(|| {
        on_threads(threads, |number| {
            let mut rng = Rng::new(seed + number);
            let mut blocks = Area::<Block>::new(SLOTS);
            for _ in 0..turns {
                let slot = &mut blocks[slot(rng.next_u64())];
                if slot.is_some() {
                    std::mem::replace(slot, Block::NONE).release();
                } else {
                    *slot = Block::new(size(rng.next_u64()));
                    // SAFETY: the last byte of a live block of eight bytes or more; the stamp is in the first
                    // eight.
                    unsafe { slot.at.add(slot.bytes).sub(1).write_volatile(slot.bytes as u8) };
                    slot.stamp();
                }
            }
            release_all(&mut blocks);
        });
        Ok(())
    })
}

/// Half of the choices fall on a 1/16 of the slots, half of the rest on the next, and so on.
#[inline]
fn slot(bits: u64) -> usize {
    let part = (bits >> 32).trailing_ones().min(15) as usize;
    part * (SLOTS / 16) + bits as usize % (SLOTS / 16)
}

/// 8 to 15 bytes with chance 1/2, 16 to 31 with 1/4, ... up to 2047.
#[inline]
fn size(bits: u64) -> usize {
    let least = 8usize << (bits >> 32).trailing_ones().min(SIZE_OCTAVES - 1);
    least + bits as usize % least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_slots_stay_in_range() {
        let mut rng = Rng::new(4);
        let sizes: Vec<usize> = (0..100_000).map(|_| size(rng.next_u64())).collect();
        assert_eq!((*sizes.iter().min().unwrap(), sizes.iter().max().unwrap() < &2048), (8, true));
        let small = sizes.iter().filter(|n| **n < 16).count();
        assert!((45_000..55_000).contains(&small), "{small} of 100000 are below 16 bytes (seed 4)");
        assert!((0..100_000).all(|_| slot(rng.next_u64()) < SLOTS));
    }
}
