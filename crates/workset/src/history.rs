//! The history of a job: working-set curves of all stretches watched so far, with mean and variation.
//!
//! A mean curve shows neither its own error nor different phases of the job. The samples are therefore
//! kept in batches, in order. If there are too many batches, neighbours are joined. The number of batches
//! stays between half the limit and the limit, and all batches cover equally long times.
//!
//! ```text
//! samples  ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪
//! batches  ├──┤├──┤├──┤├──┤├──┤├      full: join pairs, twice as many samples in each
//! ```
//!
//! Neighbouring samples of working sets share most of their window and are nearly equal. Batches longer than
//! the windows are nearly independent, so confidence intervals are found by resampling batches
//! ([`spread`](crate::spread())).
//!
//! The weight of a batch is the virtual time it covers. A fading history multiplies all weights by a factor
//! below 1 at each new sample: exponential smoothing (Nishigaki's equation 3.2), where α is that factor.

use crate::curve::Curve;

/// The most batches kept.
pub const BATCHES_MAX: usize = 64;

/// The means of some neighbouring samples.
#[derive(Debug, Clone, PartialEq)]
struct Batch {
    samples: u64,
    /// The time covered at each window. These times fall, since a sample that has a window also has all
    /// smaller ones.
    weights: Vec<f64>,
    pages: Vec<f64>,
    /// Empty if fault rates follow from the slopes.
    faults: Vec<f64>,
}

/// Samples of a curve at the same windows, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    windows: Vec<f64>,
    alpha: f64,
    batches: Vec<Batch>,
    /// Samples in a full batch.
    size: u64,
    samples: u64,
}

impl History {
    /// A history without samples, at windows that rise from above 0. With `alpha` below 1 the past fades by
    /// that factor a sample.
    #[must_use]
    pub fn new(windows: Vec<f64>, alpha: f64) -> Self {
        Self { windows, alpha, batches: Vec::new(), size: 1, samples: 0 }
    }

    /// Adds a sample that covers `length` ticks: z at each window, and f if it was counted, else an empty
    /// slice.
    ///
    /// A sample may have only the first few windows, as when the watch began recently; it does not count for
    /// the others. Samples without time or windows are ignored.
    pub fn push(&mut self, length: f64, pages: &[f64], faults: &[f64]) {
        if length.is_nan() || length <= 0.0 || pages.is_empty() {
            return;
        }
        if self.batches.last().is_none_or(|batch| batch.samples >= self.size) {
            self.open_batch(!faults.is_empty());
        }
        if self.alpha < 1.0 {
            let weights = self.batches.iter_mut().flat_map(|batch| &mut batch.weights);
            weights.for_each(|weight| *weight *= self.alpha);
        }
        if let Some(batch) = self.batches.last_mut() {
            batch.samples += 1;
            batch.mix(&vec![length; pages.len().min(self.windows.len())], pages, faults);
        }
        self.samples += 1;
    }

    /// The windows.
    #[must_use]
    pub fn windows(&self) -> &[f64] {
        &self.windows
    }

    /// The number of samples since the beginning or the last [`restart`](Self::restart).
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The number of batches of these samples.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.batches.len()
    }

    /// Drops all samples, for a new phase.
    pub fn restart(&mut self) {
        *self = Self::new(std::mem::take(&mut self.windows), self.alpha);
    }

    /// The mean curve; `None` without samples or with fewer than two windows.
    #[must_use]
    pub fn mean(&self) -> Option<Curve> {
        self.weighted(&vec![1.0; self.batches.len()])
    }

    /// The mean curve with the weight of each batch multiplied by `factors[batch]`, at the windows that
    /// remain.
    #[must_use]
    pub fn weighted(&self, factors: &[f64]) -> Option<Curve> {
        let counted = self.batches.first().is_some_and(|batch| !batch.faults.is_empty());
        let mut mean = Batch::empty(self.windows.len(), counted);
        for (batch, factor) in self.batches.iter().zip(factors) {
            let weights: Vec<f64> = batch.weights.iter().map(|weight| weight * factor).collect();
            mean.mix(&weights, &batch.pages, &batch.faults);
        }
        self.curve(&mean)
    }

    /// Each batch's curve with its share of the total weight, oldest first. Batches without a curve are left
    /// out.
    pub fn curves(&self) -> impl Iterator<Item = (f64, Curve)> + '_ {
        let weight = |batch: &Batch| batch.weights.first().copied().unwrap_or(0.0);
        let total: f64 = self.batches.iter().map(weight).sum();
        self.batches.iter().filter_map(move |batch| Some((weight(batch) / total, self.curve(batch)?)))
    }

    /// The history at the first `windows` windows only; `None` if it has no curve then.
    pub(crate) fn cut(&self, windows: usize) -> Option<Self> {
        if windows < crate::curve::WINDOWS_MIN || self.batches.is_empty() {
            return None;
        }
        let mut cut = self.clone();
        cut.windows.truncate(windows);
        for batch in &mut cut.batches {
            batch.weights.truncate(windows);
            batch.pages.truncate(windows);
            batch.faults.truncate(windows);
        }
        Some(cut)
    }

    /// The curve at the windows of the batch.
    fn curve(&self, batch: &Batch) -> Option<Curve> {
        let known = batch.weights.partition_point(|weight| *weight > 0.0);
        let (windows, pages) = (&self.windows[..known], &batch.pages[..known]);
        let faults = batch.faults.get(..known);
        faults
            .map_or_else(|| Curve::of_sets(windows, pages), |faults| Curve::of_counts(windows, pages, faults))
            .ok()
    }

    fn open_batch(&mut self, counted: bool) {
        if self.batches.len() == BATCHES_MAX {
            let mut pairs = std::mem::take(&mut self.batches);
            for at in 0..BATCHES_MAX / 2 {
                let (left, right) = pairs.split_at_mut(2 * at + 1);
                let (left, right) = (&mut left[2 * at], &right[0]);
                left.samples += right.samples;
                left.mix(&right.weights, &right.pages, &right.faults);
                pairs.swap(at, 2 * at);
            }
            pairs.truncate(BATCHES_MAX / 2);
            self.batches = pairs;
            self.size *= 2;
        }
        self.batches.push(Batch::empty(self.windows.len(), counted));
    }
}

const _: () = assert!(BATCHES_MAX.is_multiple_of(2), "batches are joined in pairs");

impl Batch {
    fn empty(windows: usize, counted: bool) -> Self {
        let faults = if counted { vec![0.0; windows] } else { Vec::new() };
        Self { samples: 0, weights: vec![0.0; windows], pages: vec![0.0; windows], faults }
    }

    /// Moves the means towards these values, with these weights, at as many windows as they have.
    fn mix(&mut self, weights: &[f64], pages: &[f64], faults: &[f64]) {
        for (at, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            self.weights[at] += weight;
            let share = weight / self.weights[at];
            self.pages[at] += (pages[at] - self.pages[at]) * share;
            if let Some((mean, value)) = self.faults.get_mut(at).zip(faults.get(at)) {
                *mean += (value - *mean) * share;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_by_time() {
        let mut history = History::new(vec![1.0, 2.0], 1.0);
        history.push(1.0, &[1.0, 2.0], &[1.0, 0.5]);
        history.push(3.0, &[5.0, 6.0], &[5.0, 0.9]);
        history.push(0.0, &[99.0, 99.0], &[9.0, 9.0]);
        let mean = history.mean().unwrap();
        assert_eq!((mean.first().pages, mean.last().pages), (4.0, 5.0));
        assert_eq!((mean.first().faults, mean.last().faults), (4.0, 0.8));
        assert_eq!((history.samples(), history.batches()), (2, 2));
    }

    #[test]
    fn batches_are_joined_and_nothing_is_lost() {
        let mut history = History::new(vec![1.0, 2.0], 1.0);
        for sample in 0..1000 {
            history.push(1.0, &[f64::from(sample), f64::from(sample) + 1.0], &[]);
            assert!(history.batches() <= BATCHES_MAX);
        }
        assert!(history.batches() > BATCHES_MAX / 2 - 1);
        assert!((history.mean().unwrap().first().pages - 499.5).abs() < 1e-9);
        let curves: Vec<_> = history.curves().collect();
        assert!(curves.windows(2).all(|pair| pair[0].1.first().pages < pair[1].1.first().pages), "in order");
        assert!((curves.iter().map(|(weight, _)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_fading_history_is_exponential_smoothing() {
        let (mut history, mut zeta) = (History::new(vec![1.0, 2.0], 0.5), 3.0);
        history.push(1.0, &[3.0, 4.0], &[]);
        for sample in 0..200 {
            let w = f64::from(sample * 7 % 11);
            history.push(1.0, &[w, w + 1.0], &[]);
            zeta = 0.5 * w + 0.5 * zeta;
        }
        // Joining batches keeps their mean; the order within them, which is lost, has long faded.
        let smoothed = history.mean().unwrap().first().pages;
        assert!((smoothed - zeta).abs() < 0.7, "{smoothed} for {zeta}");
    }

    #[test]
    fn weights_select_batches_and_missing_windows_do_not_count() {
        let mut history = History::new(vec![1.0, 2.0, 3.0], 1.0);
        history.push(1.0, &[1.0, 2.0], &[]);
        assert_eq!(history.mean().unwrap().last().window, 2.0);
        history.push(1.0, &[3.0, 4.0, 5.0], &[]);
        let second = history.weighted(&[0.0, 1.0]).unwrap();
        assert_eq!((second.first().pages, second.last().pages), (3.0, 5.0));
        let mean: Vec<f64> = history.mean().unwrap().points().iter().map(|point| point.pages).collect();
        assert_eq!(mean, [2.0, 3.5, 5.0], "2, 3 and, known once, 5: made concave");
        assert_eq!(history.weighted(&[0.0, 0.0]), None);
        history.restart();
        assert_eq!((history.samples(), history.mean()), (0, None));
    }
}
