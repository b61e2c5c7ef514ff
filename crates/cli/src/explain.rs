//! Explains a series of times: its layers of outliers, its periodic disturbances, and what outliers lost time
//! to.
//!
//! ```text
//! series ─▶ layers of outliers ─┐
//!        └▶ spectrum (beats) ───┴▶ attribution (causes)
//! ```
//!
//! The plot colours outliers by their causes; the report of a benchmark shows them in tables. A series that
//! holds only values (lines written by another program) gets no causes: every outlier would be unexplained.

use vellum_measure::{Attribution, Column, Known, Layers, Series, Spectrum};

/// The explanation of a series of times.
#[derive(Debug)]
pub(crate) struct Explained {
    /// All layers that can be peeled off.
    pub(crate) layers: Layers,
    /// Periods of the disturbances; `None` without starts, or with too few observations.
    pub(crate) spectrum: Option<Spectrum>,
    /// Causes of lost time; `None` where nothing was recorded that could show them.
    pub(crate) attribution: Option<Attribution>,
}

/// Explains a series of times. `None` if it holds something else or nothing.
pub(crate) fn explain(series: &Series) -> Option<Explained> {
    let series = series.clone().into_nanoseconds()?;
    let walls = series.walls();
    if walls.is_empty() {
        return None;
    }
    let layers = Layers::peel_all(&walls);
    let spectrum = Spectrum::of_series(&series, &known(&series));
    let tick = spectrum.as_ref().map(Spectrum::on_tick).unwrap_or_default();
    let tells =
        [Column::Cpu, Column::MinorFaults, Column::MajorFaults, Column::Voluntary, Column::Involuntary];
    let accounts = tells.iter().any(|column| column.is_recorded(&series.observations));
    let attribution = (accounts || !series.marks.is_empty())
        .then(|| Attribution::of(&series.observations, &series.marks, &layers, &tick))
        .flatten();
    Some(Explained { layers, spectrum, attribution })
}

/// The frequencies that have a name: the kernel's tick, and what left marks.
fn known(series: &Series) -> Vec<Known> {
    let tick = series.machine.as_ref().and_then(|machine| machine.hz).map(Known::tick);
    tick.into_iter().chain(Known::from_marks(&series.marks)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::{Cause, Observation, Unit};

    #[test]
    fn outliers_are_given_their_causes() {
        let observation = |place: u64| {
            let away = if place == 40 { 1e6 } else { 0.0 };
            Observation {
                start_ns: 1 + place * 10_000,
                wall_ns: 1000.0 + (place % 3) as f64 + away,
                cpu_ns: Some(900.0),
                involuntary: u32::from(place == 40),
                ..Observation::default()
            }
        };
        let series = Series { observations: (0..200).map(observation).collect(), ..Series::default() };
        let explained = explain(&series).unwrap();
        assert_eq!(explained.attribution.unwrap().cause_of(40), Some(Cause::Preemption));
        assert!(explained.spectrum.is_some() && explained.layers.count() >= 1);
    }

    #[test]
    fn plain_values_are_given_no_causes() {
        let plain = Series::plain("X", "Time", Unit::Microseconds, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 90.0]);
        let explained = explain(&plain).unwrap();
        assert!(explained.attribution.is_none() && explained.spectrum.is_none());
        assert_eq!(explained.layers.count(), 1);
        assert!(explain(&Series::plain("X", "Size", Unit::Bytes, [1.0])).is_none());
        assert!(explain(&Series::default()).is_none());
    }
}
