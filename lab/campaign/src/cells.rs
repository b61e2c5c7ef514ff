//! Helpers to make a campaign's cells (what it measures), and to compute figures from their runs.

use crate::{Arm, Cell, Sheet};
use vellum_measure::{Interval, median, paired_ratio, short};

/// Samples drawn for the interval of a ratio.
pub const RESAMPLES: usize = 1000;

/// The label of the second arm of the same thing, for the control.
#[must_use]
pub fn twin(label: &str) -> String {
    format!("{label}'")
}

/// A cell whose arms run one after the other.
pub fn cell(name: impl Into<String>, rounds: usize, arms: Vec<Arm>) -> Cell {
    Cell { name: name.into(), prepare: None, arms, rounds, together: false }
}

/// The sheet of a cell.
#[must_use]
pub fn sheet<'s>(sheets: &'s [Sheet], cell: &str) -> Option<&'s Sheet> {
    sheets.iter().find(|sheet| sheet.cell == cell)
}

/// The median of a figure.
#[must_use]
pub fn middle(sheet: &Sheet, arm: &str, metric: &str) -> Option<f64> {
    median(&sheet.values(arm, metric))
}

/// The median ratio of one arm's figure to another's, over the pairs of each round.
#[must_use]
pub fn ratio(sheet: &Sheet, above: (&str, &str), below: (&str, &str), seed: u64) -> Option<Interval> {
    paired(&sheet.by_round(above.0, above.1), &sheet.by_round(below.0, below.1), seed)
}

/// The median ratio of two figures by round, over the rounds that have both.
#[must_use]
pub fn paired(above: &[Option<f64>], below: &[Option<f64>], seed: u64) -> Option<Interval> {
    let pairs: Vec<(f64, f64)> = above.iter().zip(below).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
    paired_ratio(&pairs, RESAMPLES, seed)
}

/// The geometric mean over cells of one arm's figure over another's, round by round. `None` if a cell lacks
/// figures.
#[must_use]
pub fn geomean(
    sheets: &[Sheet],
    cells: impl Iterator<Item = String>,
    above: (&str, &str),
    below: (&str, &str),
    seed: u64,
) -> Option<Interval> {
    let mut logs: Vec<Vec<f64>> = Vec::new();
    for cell in cells {
        let sheet = sheet(sheets, &cell)?;
        let (ours, theirs) = (sheet.by_round(above.0, above.1), sheet.by_round(below.0, below.1));
        logs.push(ours.into_iter().zip(theirs).filter_map(|(a, b)| Some((a? / b?).ln())).collect());
    }
    let rounds = logs.iter().map(Vec::len).min().filter(|rounds| *rounds > 0)?;
    let mean = |round: usize| logs.iter().map(|of| of[round]).sum::<f64>() / logs.len() as f64;
    let pairs: Vec<(f64, f64)> = (0..rounds).map(|round| (mean(round).exp(), 1.0)).collect();
    paired_ratio(&pairs, RESAMPLES, seed)
}

/// The difference of two arms of the same kind, as text.
#[must_use]
pub fn control(sheet: &Sheet, arm: &str, metric: &str, seed: u64) -> Option<String> {
    let control = ratio(sheet, (&twin(arm), metric), (arm, metric), seed)?;
    let [low, high] = [control.low, control.high].map(short);
    Some(format!(
        "A/A: {} in {}, {arm} over itself: {} [{low}, {high}]",
        metric,
        sheet.cell,
        short(control.estimate)
    ))
}

/// How far a ratio is above 1, in percent.
#[must_use]
pub fn excess_percent(ratio: Interval) -> Interval {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Interval { estimate: percent(ratio.estimate), low: percent(ratio.low), high: percent(ratio.high) }
}
