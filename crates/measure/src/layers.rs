//! Layers of outliers: numbers the outliers of a series by repeated removal.
//!
//! A series of timings has a narrow peak and a few values far above it. In a plot, these outliers squeeze the
//! peak into a line at the bottom. Values more than two standard deviations from the mean are therefore
//! removed as the first layer. Mean and deviation are computed again from the rest; the values now outside
//! are the next layer, and so on. The number of each outlier's layer is stored, because the outliers are the
//! disturbances to explain.
//!
//! ```text
//! values     3 3 4 3 90 3 4 3 9 3
//! layer 1            90               beyond mean ± 2σ of all ten
//! layer 2                     9       beyond mean ± 2σ of the nine that are left
//! kept       3 3 4 3    3 4 3   3     0 in `layer_of`
//! ```
//!
//! Invariants:
//! - values in a layer lay outside its [`LayerBounds`], and kept values lie inside the bounds of every layer;
//! - removing `n + 1` layers gives the same first `n` layers as removing `n`;
//! - a layer without values is the last one, because all later layers would be empty.
//!
//! Source: Bates 1999, section "Initial Results": the plot's option `-o`, given once for each layer. The
//! paper does not give the divisor of the deviation; we divide by n − 1, as [`Stat`](crate::Stat) does.
//! Values exactly on a bound are kept ("more than two").

use serde::Serialize;

/// The distance from the mean at which a layer begins, in standard deviations.
pub const LAYER_DEVIATIONS: f64 = 2.0;

/// The most layers that can be peeled: the number of a layer is stored in a byte.
pub const LAYERS_MAX: u8 = u8::MAX;

/// The outliers among the values, by layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Layers {
    /// For each value, in order, its layer, counted from 1; 0 if it was kept.
    pub layer_of: Vec<u8>,
    /// The bounds of each layer that has values, the first layer first.
    pub bounds: Vec<LayerBounds>,
}

/// The bounds of a layer and how they were computed, in the values' unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LayerBounds {
    /// The mean of the values left by the layers before.
    pub mean: f64,
    /// The standard deviation of those values, over n − 1.
    pub std: f64,
    /// Values below are in this layer: mean − 2σ.
    pub low: f64,
    /// Values above are in this layer: mean + 2σ.
    pub high: f64,
    /// The number of values in this layer.
    pub taken: usize,
}

impl Layers {
    /// Peels `layers` layers off the values, or fewer if there is nothing left to take.
    ///
    /// Values that are not finite belong to the first layer, and count neither in its mean nor in its
    /// deviation. If `layers` is 0 they are kept like any other.
    #[must_use]
    pub fn peel(values: &[f64], layers: u8) -> Self {
        let mut layer_of = vec![0; values.len()];
        let mut all_bounds = Vec::new();
        for layer in 1..=layers {
            let kept = || values.iter().zip(&layer_of).filter(|(_, of)| **of == 0).map(|(value, _)| *value);
            let Some((mean, std)) = moments(kept().filter(|value| value.is_finite())) else { break };
            let (low, high) = (mean - LAYER_DEVIATIONS * std, mean + LAYER_DEVIATIONS * std);
            let mut taken = 0;
            for (value, of) in values.iter().zip(&mut layer_of) {
                if *of == 0 && !(low..=high).contains(value) {
                    *of = layer;
                    taken += 1;
                }
            }
            if taken == 0 {
                break;
            }
            all_bounds.push(LayerBounds { mean, std, low, high, taken });
        }
        Self { layer_of, bounds: all_bounds }
    }

    /// Peels until no value lies outside: at most [`LAYERS_MAX`] layers.
    #[must_use]
    pub fn peel_all(values: &[f64]) -> Self {
        Self::peel(values, LAYERS_MAX)
    }

    /// The number of layers that have values.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bounds.len()
    }

    /// The places of the kept values, in order.
    pub fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        self.layer_of.iter().enumerate().filter(|(_, of)| **of == 0).map(|(place, _)| place)
    }

    /// The places of the outliers, in order.
    pub fn outliers(&self) -> impl Iterator<Item = usize> + '_ {
        self.layer_of.iter().enumerate().filter(|(_, of)| **of != 0).map(|(place, _)| place)
    }

    /// The kept ones of `values`, in order; `values` are the peeled values.
    ///
    /// # Panics
    /// If there are fewer values than were peeled.
    #[must_use]
    pub fn keep(&self, values: &[f64]) -> Vec<f64> {
        self.kept().map(|place| values[place]).collect()
    }

    /// The share of kept values, 1 if there are no values.
    #[must_use]
    pub fn kept_share(&self) -> f64 {
        if self.layer_of.is_empty() { 1.0 } else { self.kept().count() as f64 / self.layer_of.len() as f64 }
    }
}

/// Mean and standard deviation over n − 1 (0 for one value); `None` without values, or if they overflow.
fn moments(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    // Distances are taken from the first value, so that equal values have exactly that mean and no deviation.
    let origin = values.clone().next()?;
    let n = values.clone().count() as f64;
    let mean = values.clone().map(|value| value - origin).sum::<f64>() / n;
    let squares: f64 = values.map(|value| (value - origin - mean).powi(2)).sum();
    let std = (squares / (n - 1.0).max(1.0)).sqrt();
    (mean.is_finite() && std.is_finite()).then_some((origin + mean, std))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_follow_from_the_closed_form() {
        // n zeros and one h: the mean is h / (n + 1), the deviation h / √(n + 1).
        let mut values = vec![0.0; 24];
        values.push(5.0);
        let layers = Layers::peel_all(&values);
        assert_eq!((layers.count(), layers.layer_of[24]), (1, 1));
        let bounds = layers.bounds[0];
        assert!((bounds.mean - 0.2).abs() < 1e-12 && (bounds.std - 1.0).abs() < 1e-12, "{bounds:?}");
        assert!((bounds.high - 2.2).abs() < 1e-12 && (bounds.low + 1.8).abs() < 1e-12, "{bounds:?}");
        assert_eq!(bounds.taken, 1);
    }

    #[test]
    fn a_value_on_the_bound_is_kept() {
        // Four zeros and one 1: mean 0.2, deviation √0.2 = 0.447, bound 1.094. Three zeros and a 1: nothing
        // beyond.
        assert_eq!(Layers::peel_all(&[0.0, 0.0, 0.0, 0.0, 1.0]).count(), 0);
        assert_eq!(Layers::peel_all(&[0.1; 1000]).count(), 0, "equal values have no outliers");
    }

    #[test]
    fn nan_is_in_the_first_layer() {
        let values = [1.0, f64::NAN, 1.0, f64::INFINITY, 1.0];
        assert_eq!(Layers::peel(&values, 3).layer_of, [0, 1, 0, 1, 0]);
        assert_eq!(Layers::peel(&values, 0).layer_of, [0; 5]);
        assert_eq!(Layers::peel(&[f64::NAN; 2], 3).count(), 0, "nothing to take a mean of");
        assert_eq!(Layers::peel(&[], 3).kept_share(), 1.0);
    }

    proptest! {
        #[test]
        fn each_layer_has_the_values_outside_its_bounds(
            values in proptest::collection::vec(prop_oneof![9 => 0.0f64..10.0, 1 => -1e6f64..1e6], 0..200), n in 0u8..6,
        ) {
            let layers = Layers::peel(&values, n);
            for (value, of) in values.iter().zip(&layers.layer_of) {
                for (layer, bounds) in (1u8..).zip(&layers.bounds) {
                    let inside = (bounds.low..=bounds.high).contains(value);
                    let gone = *of != 0 && *of < layer;
                    prop_assert!(gone || inside == (*of != layer), "{value} of {of}, {layer}: {bounds:?}");
                }
            }
            let more = Layers::peel(&values, n + 1);
            prop_assert_eq!(&more.bounds[..layers.count()], &layers.bounds[..]);
            let taken: usize = layers.bounds.iter().map(|bounds| bounds.taken).sum();
            prop_assert_eq!(taken + layers.kept().count(), values.len());
        }

        #[test]
        fn the_unit_does_not_matter(values in proptest::collection::vec(0u32..1000, 2..100), shift in -64i32..64) {
            // Powers of two, because they round nothing.
            let plain: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
            let scaled: Vec<f64> = plain.iter().map(|v| v * 2f64.powi(shift)).collect();
            prop_assert_eq!(Layers::peel_all(&plain).layer_of, Layers::peel_all(&scaled).layer_of);
        }
    }
}
