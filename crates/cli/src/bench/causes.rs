//! What one series is like: its figures, outliers, levels, beats and losses.

use super::args::Metric;
use super::report::{Beat, Beats, Losses, Subject};
use crate::explain::explain;
use vellum_measure::{Attribution, Estimator, Modality, Series, Spectrum, Stat, Steady, median, resampled};

/// Drawings for an interval.
const RESAMPLES: usize = 1000;

/// Describes a series of times, nanoseconds; `None` if it holds none.
pub(super) fn subject(series: &Series, metric: Metric, low_share: f64, seed: u64) -> Option<Subject> {
    let walls = series.walls();
    let (stat, explained) = (Stat::of(&walls)?, explain(series)?);
    let step = series.base.as_ref().map_or(0.0, |base| base.step / series.batch.max(1) as f64);
    Some(Subject {
        name: series.name.clone(),
        metric,
        batch: series.batch,
        stat,
        median: median(&walls)?,
        low: resampled(&walls, Estimator::Quantile(low_share), RESAMPLES, seed),
        layers: explained.layers.count(),
        kept_share: explained.layers.kept_share(),
        steady: Steady::of(&walls),
        modality: Modality::of(&walls, step, seed),
        beats: explained.spectrum.as_ref().map(beats),
        losses: explained.attribution.as_ref().map(losses),
    })
}

fn beats(spectrum: &Spectrum) -> Beats {
    let found = spectrum.periods.iter().map(|period| Beat {
        hz: period.frequency,
        hz_error: period.frequency_error,
        source: period.whose(),
        false_alarm: period.false_alarm,
        typical_ns: period.typical,
        share: period.share,
    });
    Beats { searched_hz: spectrum.searched, found: found.collect() }
}

fn losses(attribution: &Attribution) -> Losses {
    Losses {
        of_all: attribution.lost_share(),
        lost_ns: attribution.lost.ns(),
        outliers: attribution.outliers.len(),
        causes: attribution.causes.clone(),
    }
}
