//! `vellum papers`: the sources' experiments, run again.
//!
//! The experiments are in `vellum-papers`; here are their place on the command line, the bar on the terminal and the
//! files. Their workers are this executable again, by a subcommand that help does not show.

use crate::FAILED;
use crate::library;
use crate::output::Output;
use crate::run::Failure;
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use vellum_papers::Finding;
use vellum_papers::douglas::{Bench, Options, Places, Progress, run, work, write_figures};

/// The words that make this executable a worker.
const WORKER: [&str; 2] = ["papers", "work"];
/// Between redraws of the bar's clock.
const REDRAW: Duration = Duration::from_millis(250);

/// The sources.
#[derive(Debug, Subcommand)]
pub(crate) enum Papers {
    Douglas(Options),
    /// One piece of an experiment's work, its figures printed as a line of JSON.
    #[command(hide = true)]
    Work {
        /// Which work.
        name: String,
        /// Its parameters, name=value.
        words: Vec<String>,
    },
}

/// Runs what was asked for. Goals that are missed are printed and are no failure.
pub(crate) fn papers(which: &Papers) -> Result<u8, Failure> {
    match which {
        Papers::Douglas(options) => douglas(options),
        Papers::Work { name, words } => Ok(worker(name, words)),
    }
}

fn worker(name: &str, words: &[String]) -> u8 {
    match work(name, words) {
        Ok(line) => {
            println!("{line}");
            0
        }
        Err(error) => {
            eprintln!("{error}");
            FAILED
        }
    }
}

fn douglas(options: &Options) -> Result<u8, Failure> {
    let json = options.json.as_deref().map(Output::prepare).transpose()?;
    let own = std::env::current_exe()
        .map_err(|source| Failure::Output { path: "/proc/self/exe".into(), source })?;
    let places =
        Places { worker: own, worker_words: WORKER.map(Into::into).to_vec(), library: library::find(None)? };
    // Text gives way when JSON goes to standard output.
    let text_to_stderr = matches!(json, Some(Output::Stdout));
    let bar = bar();
    let mut progress = |now: Progress<'_>| show(&bar, now);
    let mut bench = Bench::new(options.scale(), options.seed.unwrap_or(1), places, &mut progress);
    let mut failed = None;
    let report = run(options, &mut bench, |finding| {
        let done = bar.suspend(|| print(finding, options.svg.as_deref(), text_to_stderr));
        failed = failed.take().or(done.err());
    });
    bar.finish_and_clear();
    if let Some(output) = json {
        output.write(&report.json())?;
    }
    failed.map_or(Ok(0), Err)
}

/// Prints a finding and draws its figures.
fn print(finding: &Finding, svg: Option<&Path>, to_stderr: bool) -> Result<(), Failure> {
    let mut text = finding.text();
    if let Some(folder) = svg {
        let written = write_figures(finding, folder)
            .map_err(|error| Failure::Output { path: error.path, source: error.source })?;
        let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
        text += &format!("Figures: {}\n", names.join(", "));
    }
    let written = if to_stderr {
        writeln!(std::io::stderr().lock(), "{text}")
    } else {
        writeln!(std::io::stdout().lock(), "{text}")
    };
    written.map_err(|source| Failure::Output { path: "standard output".into(), source })
}

/// A bar on standard error if that is a terminal, and nothing elsewhere.
fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{elapsed} {prefix:9} [{bar:30}] {pos}/{len} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.enable_steady_tick(REDRAW);
    bar
}

fn show(bar: &ProgressBar, now: Progress<'_>) {
    bar.set_prefix(now.experiment.to_owned());
    bar.set_length(now.total as u64);
    bar.set_position(now.done as u64);
    bar.set_message(now.what.to_owned());
}
