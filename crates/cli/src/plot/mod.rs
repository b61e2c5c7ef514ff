//! `vellum plot`: draws observations (saved timings) in the terminal or into a file.
//!
//! ```text
//! Input ─▶ Filter ─▶ series ─▶ explain (causes) ─▶ report::plot ─▶ terminal │ SVG
//! ```
//!
//! Source: `plot` of Bates 1999, "Reliable Benchmarking with Limbo on Inferno". Its options are `-o` (remove
//! a layer of outliers), `-p` (the kind of plot) and `-z` (an axis from zero).

use crate::explain::explain;
use crate::failure::Failure;
use crate::observations::{Input, Named};
use crate::screen;
use clap::{ArgAction, ValueEnum, ValueHint};
use std::path::PathBuf;
use vellum_measure::Series;
use vellum_report::plot::{Kind, Plot, PlotError, SERIES_MAX};
use vellum_report::{Output, Style, stdout};

/// The default height of a plot, in lines.
const HEIGHT: usize = 24;

/// Draw observations: in order, as a histogram, as a cumulative distribution, or against each other.
///
/// Without --svg the plot goes to the terminal. Outliers are coloured by their causes, where these
/// were recorded. Exit status: 0, or 125 if there is nothing to draw or vellum itself failed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum plot x.obs\n  vellum plot x.obs -oo -p histogram --svg x.svg\n  \
    vellum plot x.obs --grep '^sort$' -p pairs\n  vellum obs cut 1-200 x.obs | vellum plot -z -"
)]
pub(crate) struct PlotArgs {
    #[command(flatten)]
    input: Input,

    /// Remove a layer of outliers (beyond mean ± 2 standard deviations); repeat for more layers.
    #[arg(short, long, action = ArgAction::Count)]
    outliers: u8,

    /// The kind of plot.
    #[arg(short = 'p', long = "plot", value_name = "KIND", default_value = "order")]
    kind: Kind,

    /// Begin the axis of values at zero.
    #[arg(short, long)]
    zero: bool,

    #[command(flatten)]
    named: Named,

    /// Write the plot as SVG into this file; "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    svg: Option<PathBuf>,

    /// Columns of the plot in the terminal (default: the terminal's, else 80; at least 40).
    #[arg(long, value_name = "COLUMNS")]
    width: Option<u16>,

    /// Lines of the plot in the terminal (default: 24, or fewer on a low terminal; at least 12).
    #[arg(long, value_name = "LINES")]
    height: Option<u16>,

    /// The title (default: the names of the series).
    #[arg(long)]
    title: Option<String>,

    /// The width of a histogram's bins, in the unit of the values (default: chosen from the values).
    #[arg(long, value_name = "WIDTH", value_parser = bin)]
    bin: Option<f64>,

    /// Do not search for the causes of outliers.
    #[arg(long)]
    no_causes: bool,

    /// When to use colour in the terminal.
    #[arg(long, value_name = "WHEN", default_value = "auto", alias = "color")]
    colour: Colour,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// On terminals, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

fn bin(text: &str) -> Result<f64, String> {
    let width = text.parse().ok().filter(|width: &f64| *width > 0.0 && width.is_finite());
    width.ok_or_else(|| "the width of a bin is a number above zero".to_owned())
}

/// Names shown when there are too many series.
const NAMES_MAX: usize = 20;

pub(crate) fn plot(args: &PlotArgs) -> Result<u8, Failure> {
    let svg = args.svg.as_deref().map(Output::prepare).transpose()?;
    let plot = drawn(args, &chosen(args)?)?;
    if let Some(output) = svg {
        output.write(plot.svg())?;
    } else {
        let (width, height) = screen::plot((args.width, args.height), HEIGHT);
        let colour = match args.colour {
            Colour::Auto => Style::of_stdout().is_coloured(),
            Colour::Always => true,
            Colour::Never => false,
        };
        stdout::write_all(plot.terminal(width, height, colour).as_bytes())?;
    }
    Ok(0)
}

fn chosen(args: &PlotArgs) -> Result<Vec<Series>, Failure> {
    let filter = args.named.filter();
    let (found, summaries, read) = args.input.series(&filter)?;
    if found.iter().all(|series| series.observations.is_empty()) {
        let why = match (read, summaries) {
            (0, _) => ": the input has no entries",
            (_, 0) => ": no entry of the input has that name, label or quantity",
            _ => ": the input holds only summaries; plot a file with the observations themselves",
        };
        return Err(Failure::because(format!("there are no observations to plot{why}")));
    }
    if found.len() > SERIES_MAX {
        let count = found.len();
        let mut names: Vec<&str> = Vec::new();
        for series in &found {
            if !names.contains(&series.name.as_str()) && names.len() < NAMES_MAX {
                names.push(&series.name);
            }
        }
        let names = names.join(", ");
        return Err(Failure::because(format!(
            "{count} series do not fit into one plot; choose at most {SERIES_MAX} by --grep or --label. There are: {names}"
        )));
    }
    Ok(found)
}

fn drawn(args: &PlotArgs, series: &[Series]) -> Result<Plot, PlotError> {
    let mut plot = Plot::of(args.kind, series)?.layers(args.outliers).zero(args.zero);
    if let Some(title) = &args.title {
        plot = plot.title(title);
    }
    if let Some(width) = args.bin {
        plot = plot.bin(width);
    }
    if !args.no_causes {
        for (subject, series) in plot.subjects_mut().zip(series) {
            if let Some(attribution) = explain(series).and_then(|explained| explained.attribution) {
                *subject = std::mem::take(subject).explained(&attribution);
            }
        }
    }
    Ok(plot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bin_width_must_be_valid() {
        assert_eq!(bin("0.5"), Ok(0.5));
        assert!(["0", "-1", "inf", "NaN", "x"].iter().all(|text| bin(text).is_err()));
    }
}
