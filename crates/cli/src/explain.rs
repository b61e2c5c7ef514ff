//! Explains a series of times: its outlier layers, its periodic disturbances, and the causes of outliers.
//!
//! ```text
//! series ─▶ layers of outliers ─┐
//!        └▶ spectrum (beats) ───┴▶ attribution (causes)
//! ```
//!
//! A layer is a group of values far from the rest; a beat is a periodic disturbance. Plots colour outliers by
//! cause, and benchmark reports list the causes. A series without counters (values only) gets no attribution.

use vellum_measure::{Attribution, Column, Known, Layers, Series, Spectrum};

#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) layers: Layers,
    /// Frequencies of the disturbances; `None` without starts, or with too few observations.
    pub(crate) spectrum: Option<Spectrum>,
    /// Causes of lost time; `None` if no causes were recorded.
    pub(crate) attribution: Option<Attribution>,
}

/// Explains a series of times. `None` if it is empty or has other quantities.
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

/// Frequencies of possible sources: the kernel's tick, and marked activities.
fn known(series: &Series) -> Vec<Known> {
    let tick = series.machine.as_ref().and_then(|machine| machine.hz).map(Known::tick);
    tick.into_iter().chain(Known::from_marks(&series.marks)).collect()
}
