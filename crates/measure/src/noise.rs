//! Random series with a given distribution and dependence, for tests.

use crate::Rng;

/// A source of random series.
pub(crate) struct Noise(Rng);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// Uniform from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// A normal deviate (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// An exponential deviate with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// A deviate of at least 1 that exceeds x with probability x^-index; it has no variance up to index 2.
    pub(crate) fn pareto(&mut self, index: f64) -> f64 {
        (1.0 - self.unit()).powf(-1.0 / index)
    }

    /// Independent normal deviates.
    pub(crate) fn white(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.normal()).collect()
    }

    /// A first-order process with variance 1: each value follows the one before with the given weight.
    pub(crate) fn following(&mut self, n: usize, follow: f64) -> Vec<f64> {
        let mut level = self.normal();
        (0..n)
            .map(|_| {
                level = follow * level + (1.0 - follow * follow).sqrt() * self.normal();
                level
            })
            .collect()
    }
}
