//! `vellum obs explain`: explains the outliers of saved series.
//!
//! ```text
//! x.obs ─▶ Filter ─▶ explain, series by series ─▶ causes and periods: tables │ JSON
//! ```
//!
//! The columns of a series determine the possible explanations. Start times show periodic disturbances; page
//! faults, context switches and CPU time show causes. The report notes which explanations are missing.

use super::status;
use crate::accounts::{BEAT_HEADS, Beats, LOSS_HEADS, Losses, share, sought};
use crate::explain::explain;
use crate::failure::Failure;
use crate::observations::{Input, Named};
use crate::screen;
use serde::Serialize;
use vellum_measure::Series;
use vellum_measure::line::Entry;
use vellum_report::units::many;
use vellum_report::{Look, Report, Section, Style, Table, stdout};

const SCHEMA: &str = "vellum.obs.explain/1";

/// The options of `vellum obs explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    named: Named,

    /// Write JSON (schema vellum.obs.explain/1) instead of tables.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Serialize)]
struct Told {
    name: String,
    labels: Vec<String>,
    n: usize,
    /// The number of outlier layers, and the share of observations outside of all layers.
    layers: usize,
    kept_share: f64,
    /// Causes of lost time; null if none were recorded.
    losses: Option<Losses>,
    /// Periodic disturbances; null without start times.
    beats: Option<Beats>,
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    series: Vec<Told>,
}

pub(crate) fn obs_explain(args: &Explain) -> Result<u8, Failure> {
    let filter = args.named.filter();
    let mut all = Vec::new();
    args.input.each(|entry| {
        let entries = filter.apply(entry).into_iter();
        all.extend(entries.filter_map(|entry| match entry {
            Entry::Series(series) => told(&series),
            Entry::Summary(_) => None,
        }));
        Ok(())
    })?;
    let number = all.len();
    if number == 0 {
        say!(
            "vellum: nothing to explain: the input has no series of times; `vellum bench --out FILE` writes some"
        );
    }
    let text = if args.json {
        vellum_report::json(&Document { schema: SCHEMA, series: all })?
    } else {
        let look = Look::brief(Style::of_stdout()).wide(screen::columns());
        Report::new(None).sections(all.iter().map(Told::section)).text(look)
    };
    stdout::write_all(text.as_bytes())?;
    Ok(status(Some(number)))
}

fn told(series: &Series) -> Option<Told> {
    let explained = explain(series)?;
    Some(Told {
        name: series.name.clone(),
        labels: series.labels.clone(),
        n: series.observations.len(),
        layers: explained.layers.count(),
        kept_share: explained.layers.kept_share(),
        losses: explained.attribution.as_ref().map(Losses::of),
        beats: explained.spectrum.as_ref().map(Beats::of),
    })
}

impl Told {
    fn section(&self) -> Section {
        let head = std::iter::once(&self.name).chain(&self.labels).cloned().collect::<Vec<_>>().join(" ");
        let mut section = Section::titled(head);
        section.sentence(format!(
            "{}, {} of outliers; {} lie in none",
            many(self.n as u64, "observation"),
            many(self.layers as u64, "layer"),
            share(self.kept_share)
        ));
        match &self.losses {
            None => section
                .sentence("causes: unknown, only times were recorded; `vellum bench --out` records more"),
            Some(losses) if losses.causes.is_empty() => section.sentence("causes: no outlier lost time"),
            Some(losses) => {
                let mut table = Table::plain(&LOSS_HEADS, 1);
                losses.rows(None).for_each(|row| table.row(row));
                let of_all = share(losses.of_all);
                section.sentence(format!("outliers lost {of_all} of all time, to")).table(table)
            }
        };
        match &self.beats {
            None => section.sentence("beats: unknown without starts (`vellum bench --out` records them)"),
            Some(beats) if beats.found.is_empty() => {
                let sought = sought(beats.searched_hz);
                section.sentence(format!("disturbances that come back regularly: {sought}"))
            }
            Some(beats) => {
                let mut table = Table::plain(&BEAT_HEADS, 1);
                beats.rows(None).for_each(|row| table.row(row));
                section.sentence("disturbances that come back regularly:").table(table)
            }
        };
        section
    }
}
