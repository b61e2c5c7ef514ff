//! The choice of the blocks to sample, and the number of blocks and bytes that a sample stands for.
//!
//! Samples are the points of a Poisson process over the bytes that are allocated, one every *interval* on
//! average. The gaps are exponential, `-interval · ln(u)` with uniform `u`. A block is sampled if a point
//! falls on it. The gaps are memoryless, so bytes may be counted in any order that is independent of the
//! points: here by thread and size class. A block of `s` bytes has a point with the probability
//! `p(s) = 1 - exp(-s / interval)`. Before the next sample, `floor(gap / s)` whole blocks pass, a geometric
//! number with that `p`.
//!
//! **The estimator.** A sampled block stands for `1 / p(s)` blocks. Let `X_i` be 1 for a sampled block and 0
//! for others. As `E[X_i] = p(s_i)`, `E[sum X_i · y_i / p(s_i)] = sum y_i` for any quantity `y` of blocks
//! (Horvitz and Thompson, "A generalization of sampling without replacement from a finite universe", 1952).
//! So the requested bytes `y` count as `y / p(s)`, where `s` is the size of the block. This holds for any set
//! of blocks that is chosen without regard to the samples: those of a stack, those in use now. The variance
//! is `sum y_i² · (1 - p) / p`, for small blocks about the interval times the bytes. The relative error of
//! `n` samples is `1 / sqrt(n)`.
//!
//! Exponential numbers are drawn by comparing uniform ones (von Neumann, "Various techniques used in
//! connection with random digits", 1951), without logarithms, which would need the C library.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_wire::held::{Amount, BLOCK};

/// The number of 64-bit numbers.
const WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Random numbers: xorshift (Marsaglia, "Xorshift RNGs", 2003), multiplied. Threads that draw at once may
/// get the same number, which is harmless.
#[derive(Debug)]
pub(super) struct Random(AtomicU64);

impl Random {
    pub(super) const fn new(seed: u64) -> Random {
        Random(AtomicU64::new(seed | 1))
    }

    pub(super) fn seed(&self, seed: u64) {
        self.0.store(seed | 1, Relaxed);
    }

    fn next(&self) -> u64 {
        let mut state = self.0.load(Relaxed);
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0.store(state, Relaxed);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// An exponential number of mean 1. The lengths of falling runs of uniform numbers decide: one whose
    /// length is even is thrown away, and counts 1.
    pub(super) fn exponential(&self) -> f64 {
        let mut whole = 0.0;
        loop {
            let first = self.next();
            let (mut last, mut run) = (first, 1);
            loop {
                let next = self.next();
                if next > last {
                    break;
                }
                (last, run) = (next, run + 1);
            }
            if run % 2 == 1 {
                return whole + first as f64 / WHOLE;
            }
            whole += 1.0;
        }
    }
}

/// The number of blocks of `bytes` bytes before the next sample.
pub(super) fn passing(random: &Random, interval: u64, bytes: usize) -> u32 {
    (random.exponential() * interval as f64 / bytes as f64) as u32
}

/// `1 - exp(-x)`, for `x` above 0: by the series where that is short, and from there by `1 - exp(-2x) = q (2
/// - q)` with `q = 1 - exp(-x)`, which loses nothing.
fn one_less_exp(x: f64) -> f64 {
    const SHORT: f64 = 1.0 / 16.0;
    const NEVER: f64 = 40.0;
    const TERMS: u32 = 9;
    if x > NEVER {
        return 1.0;
    }
    let (mut part, mut doublings) = (x, 0);
    while part > SHORT {
        part /= 2.0;
        doublings += 1;
    }
    let (mut sum, mut term) = (0.0, 1.0);
    for n in 1..=TERMS {
        term *= -part / f64::from(n);
        sum -= term;
    }
    (0..doublings).fold(sum, |q, _| q * (2.0 - q))
}

/// The amount that a sampled block stands for: `asked` bytes were requested, and it takes `bytes`.
pub(super) fn stands_for(interval: u64, asked: usize, bytes: usize) -> Amount {
    let blocks = 1.0 / one_less_exp(bytes as f64 / interval as f64);
    // Rounded: half a byte, or half of a `BLOCK`th, at most.
    Amount {
        bytes: (asked as f64 * blocks + 0.5) as u64,
        blocks: (blocks * BLOCK as f64 + 0.5) as u64,
        samples: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_random::Rng;

    /// A fixed seed: the bounds below are five standard deviations, and need not be met by luck.
    const SEED: u64 = 0x5eed;

    #[test]
    fn probabilities_are_those_of_the_exponential() {
        for x in [1e-9f64, 1e-5, 0.01, 0.0625, 0.07, 0.5, 1.0, 3.0, 20.0, 39.0, 41.0, 1e6] {
            let right = -(-x).exp_m1();
            assert!((one_less_exp(x) / right - 1.0).abs() < 1e-12, "{x}: {} {right}", one_less_exp(x));
        }
    }

    #[test]
    fn exponential_numbers_have_their_moments_and_tail() {
        const NUMBERS: usize = 400_000;
        let random = Random::new(SEED);
        let numbers: Vec<f64> = (0..NUMBERS).map(|_| random.exponential()).collect();
        let n = NUMBERS as f64;
        let near = |is: f64, wanted: f64, deviation: f64| {
            assert!((is - wanted).abs() < 5.0 * deviation / n.sqrt(), "{is} for {wanted}");
        };
        near(numbers.iter().sum::<f64>() / n, 1.0, 1.0);
        near(numbers.iter().map(|x| x * x).sum::<f64>() / n, 2.0, 20f64.sqrt());
        for at in [0.1f64, 0.7, 1.5, 4.0] {
            let p = (-at).exp();
            let share = numbers.iter().filter(|&&x| x > at).count() as f64 / n;
            near(share, p, (p * (1.0 - p)).sqrt());
        }
    }

    #[test]
    fn sizes_are_estimated_without_bias() {
        const INTERVAL: u64 = 64 << 10;
        let random = Random::new(SEED);
        let mut sizes = Rng::new(SEED);
        for (least, most) in [(16, 17), (100, 4000), (16 << 10, 17 << 10), (100 << 10, 400 << 10)] {
            let (mut right, mut variance, mut told) = (0.0, 0.0, Amount::default());
            let mut blocks = 0;
            while right < 1e9 {
                let bytes = (least + sizes.below(most - least)) as usize;
                let p = one_less_exp(bytes as f64 / INTERVAL as f64);
                right += bytes as f64;
                blocks += 1;
                variance += (bytes as f64).powi(2) * (1.0 - p) / p;
                if passing(&random, INTERVAL, bytes) == 0 {
                    told = told.plus(stands_for(INTERVAL, bytes, bytes));
                }
            }
            let off = (told.bytes as f64 - right).abs();
            assert!(off < 5.0 * variance.sqrt() + told.samples as f64, "{least}: {told:?} for {right}");
            let mean = right / f64::from(blocks);
            let least_block = least as f64;
            assert!(off / right < 0.05, "{least}: {told:?}, mean {mean}, {least_block}");
        }
    }
}
