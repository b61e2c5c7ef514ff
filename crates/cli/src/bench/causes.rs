//! Analyses a series of times: median, layers of outliers, clusters, periodic disturbances, and lost time.

use super::args::Metric;
use super::report::Subject;
use crate::accounts::{Beats, Losses};
use crate::explain::explain;
use vellum_measure::{Estimator, Layers, Modality, Series, Stat, Steady, median, resampled};

/// The number of resamples for an interval.
const RESAMPLES: usize = 1000;

/// Describes a series of times, or of counts (without causes); `None` if the series is empty.
pub(super) fn subject(series: &Series, metric: Metric, low_share: f64, seed: u64) -> Option<Subject> {
    let walls = series.walls();
    let (stat, explained) = (Stat::of(&walls)?, explain(series));
    let layers = explained.as_ref().map_or_else(|| Layers::peel_all(&walls), |found| found.layers.clone());
    let step = series.base.as_ref().map_or(0.0, |base| base.step / series.batch.max(1) as f64);
    Some(Subject {
        name: series.name.clone(),
        metric,
        batch: series.batch,
        stat,
        median: median(&walls)?,
        low: resampled(&walls, Estimator::Quantile(low_share), RESAMPLES, seed),
        layers: layers.count(),
        kept_share: layers.kept_share(),
        steady: Steady::of(&walls),
        modality: Modality::of(&walls, step, seed),
        beats: explained.as_ref().and_then(|found| found.spectrum.as_ref()).map(Beats::of),
        losses: explained.as_ref().and_then(|found| found.attribution.as_ref()).map(Losses::of),
    })
}
