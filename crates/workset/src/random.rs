//! Seeded random draws for synthetic programs and resampling: the same on every machine for the same seed.
//!
//! The generator is xoshiro256++ of `rand_xoshiro`, seeded through SplitMix64 as its authors advise.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

#[derive(Debug, Clone)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// From 0 up to, never reaching, 1; a multiple of 2⁻⁵³.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number below `bound`, which is at least 1. The bias of the multiplication, below bound · 2⁻⁶⁴, is left in.
    #[inline]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// How often an event of probability `p` (above 0) fails to come before it comes.
    #[inline]
    pub(crate) fn failures(&mut self, p: f64) -> u64 {
        if p >= 1.0 {
            return 0;
        }
        // 1 − unit() is never 0, so that the logarithm is finite; a float too large for u64 becomes its largest.
        ((1.0 - self.unit()).ln() / (-p).ln_1p()) as u64
    }

    /// A time until the next of events that come at random with this mean between them; at least 1.
    pub(crate) fn exponential(&mut self, mean: f64) -> u64 {
        ((-(1.0 - self.unit()).ln() * mean).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_means() {
        let (mut random, draws) = (Random::new(17), 100_000);
        let failures: u64 = (0..draws).map(|_| random.failures(0.01)).sum();
        let mean = failures as f64 / f64::from(draws);
        // The mean of (1 − p) / p = 99; its standard error here is 0.31.
        assert!((mean - 99.0).abs() < 1.3, "mean {mean} of failures (seed 17)");
        let waits: u64 = (0..draws).map(|_| random.exponential(500.0)).sum();
        let mean = waits as f64 / f64::from(draws);
        assert!((mean - 500.0).abs() < 6.5, "mean {mean} of waits (seed 17)");
        let below: usize = (0..draws).map(|_| random.below(7)).sum();
        let mean = below as f64 / f64::from(draws);
        assert!((mean - 3.0).abs() < 0.026, "mean {mean} below 7 (seed 17)");
    }

    #[test]
    fn certain_events_never_fail() {
        assert_eq!(Random::new(1).failures(1.0), 0);
    }
}
