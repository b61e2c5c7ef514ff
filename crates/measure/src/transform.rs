//! The discrete Fourier transform for lengths that are a power of two, by the `rustfft` crate.
//!
//! On processors with vector instructions, the crate's planner for these instructions chooses the algorithm.
//! Other processors run the simplest one. A general planner would add code for lengths never used here.

use rustfft::algorithm::Radix4;
use rustfft::{Fft, FftDirection, FftNum, FftPlannerAvx, FftPlannerNeon};
use std::sync::Arc;

/// A transform, not normalised, of `size` points; `size` is a power of two.
pub(crate) fn transform<T: FftNum>(size: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
    debug_assert!(size.is_power_of_two());
    if let Ok(mut planner) = FftPlannerAvx::new() {
        return planner.plan_fft(size, direction);
    }
    if let Ok(mut planner) = FftPlannerNeon::new() {
        return planner.plan_fft(size, direction);
    }
    // This is a fifth as fast.
    Arc::new(Radix4::new(size, direction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustfft::num_complex::Complex;
    use std::f64::consts::TAU;

    /// By the definition.
    fn sum(line: &[Complex<f64>], at: usize) -> Complex<f64> {
        let turn = |place: usize| -TAU * ((at * place) % line.len()) as f64 / line.len() as f64;
        line.iter().enumerate().map(|(place, value)| value * Complex::from_polar(1.0, turn(place))).sum()
    }

    #[test]
    fn the_transform_is_the_sum_on_every_processor() {
        for size in [1, 2, 4, 64, 128, 1024] {
            let line: Vec<Complex<f64>> =
                (0..size).map(|at| Complex::new((at * at % 17) as f64, (at % 5) as f64)).collect();
            let simplest: Arc<dyn Fft<f64>> = Arc::new(Radix4::new(size, FftDirection::Forward));
            for fft in [transform(size, FftDirection::Forward), simplest] {
                let mut found = line.clone();
                fft.process(&mut found);
                for at in (0..size).step_by(size.div_ceil(7)) {
                    assert!((found[at] - sum(&line, at)).norm() < 1e-8 * size as f64, "{at} of {size}");
                }
            }
            let mut back = line.clone();
            transform(size, FftDirection::Forward).process(&mut back);
            transform(size, FftDirection::Inverse).process(&mut back);
            let off = back.iter().zip(&line).map(|(back, was)| (back / size as f64 - was).norm());
            assert!(off.fold(0.0, f64::max) < 1e-9, "{size}");
        }
    }
}
