//! `vellum-papers`, the program that `vellum papers` starts.
//!
//! The experiments are in this package's library; this file has the command line, the progress bar and the
//! output files. Workers are this executable again, started by a subcommand that the help does not list.

use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use vellum_measure::line::{WriteError, write_series};
use vellum_papers::bates::{self, BasesError};
use vellum_papers::cooper;
use vellum_papers::douglas::{self, Bench, Places, work};
use vellum_papers::nishigaki;
use vellum_papers::smith::{self, WorkshopError};
use vellum_papers::{Common, Finding, Progress, write_figures};
use vellum_process::Interrupt;
use vellum_process::library::{self, LibraryError};
use vellum_report::exit::{self, SIGNALLED};
use vellum_report::{Output, OutputError, stdout};

/// Time between two redraws of the bar's clock.
const REDRAW: Duration = Duration::from_millis(250);

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Lines(#[from] WriteError),
    #[error(transparent)]
    Bases(#[from] BasesError),
}

#[derive(Debug, Parser)]
#[command(name = "vellum papers", version, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    source: Papers,
}

/// The paper whose experiments are run.
#[derive(Debug, Subcommand)]
enum Papers {
    Douglas(douglas::Options),
    Bates(bates::Options),
    Smith(smith::Options),
    Nishigaki(nishigaki::Options),
    Cooper(cooper::Options),
    /// Do one part of an experiment's work, and print its figures as a line of JSON.
    #[command(hide = true)]
    Work {
        /// The name of the work.
        name: String,
        /// Its parameters, name=value.
        words: Vec<String>,
    },
}

fn main() -> ExitCode {
    let args: Args = match vellum_report::arguments::parse() {
        Ok(args) => args,
        Err(status) => return ExitCode::from(status),
    };
    ExitCode::from(exit::status(papers(&args.source).unwrap_or_else(exit::failed)))
}

/// Runs the chosen experiments. Missed goals are printed and are no failure.
fn papers(which: &Papers) -> Result<u8, Failure> {
    match which {
        Papers::Douglas(options) => douglas(options),
        Papers::Bates(options) => bates(options),
        Papers::Smith(options) => smith(options),
        Papers::Nishigaki(options) => nishigaki(options),
        Papers::Cooper(options) => cooper(options),
        Papers::Work { name, words } => Ok(worker(name, words)),
    }
}

fn worker(name: &str, words: &[String]) -> u8 {
    vellum_campaign::worker::say_panics_in_a_line();
    match if name == nishigaki::JOB { nishigaki::job(words) } else { work(name, words) } {
        Ok(line) => {
            println!("{line}");
            0
        }
        Err(error) => exit::failed(error),
    }
}

fn douglas(options: &douglas::Options) -> Result<u8, Failure> {
    reported(&options.common, None, clocked_bar(), |progress, found| {
        let places = Places { worker: own()?, library: library::find(None)? };
        let mut bench = Bench::new(options.common.scale(), options.common.seed(), places, progress);
        Ok((douglas::run(options, &mut bench, found), Vec::new()))
    })
}

fn bates(options: &bates::Options) -> Result<u8, Failure> {
    // No thread redraws the bar, since this process measures itself.
    reported(&options.common, options.out.as_deref(), bar(), |progress, found| {
        let (report, series) = bates::run(options, options.common.scale(), progress, found)?;
        let mut lines = Vec::new();
        series.iter().try_for_each(|series| write_series(&mut lines, series))?;
        Ok((report, lines))
    })
}

fn smith(options: &smith::Options) -> Result<u8, Failure> {
    reported(&options.common, None, clocked_bar(), |progress, found| {
        // Without the library only libgc is shown, and the tables list the missing parts.
        let vellum = library::find(None).unwrap_or_else(|_| PathBuf::from("libvellum.so"));
        let libgc = library::find_libgc().map_err(|error| error.to_string());
        let libraries = smith::Libraries { vellum, libgc };
        let report = smith::run(options, options.common.scale(), &libraries, progress, found);
        Ok((report.map_err(unwritten)?, Vec::new()))
    })
}

fn nishigaki(options: &nishigaki::Options) -> Result<u8, Failure> {
    reported(&options.common, None, clocked_bar(), |progress, found| {
        Ok((nishigaki::run(options, options.common.scale(), progress, found), Vec::new()))
    })
}

fn cooper(options: &cooper::Options) -> Result<u8, Failure> {
    reported(&options.common, None, clocked_bar(), |progress, found| {
        let library = library::find(None)?;
        let report = cooper::run(options, options.common.scale(), &library, progress, found);
        Ok((report.map_err(unwritten)?, Vec::new()))
    })
}

/// Runs experiments and prints each finding at once; writes the report at the end, and to `out` the lines
/// that `run` returns with it. The exit status shows a signal that stopped them. Checks first whether the
/// files can be written.
fn reported(
    common: &Common,
    out: Option<&Path>,
    bar: ProgressBar,
    run: impl FnOnce(
        &mut dyn FnMut(Progress<'_>),
        &mut dyn FnMut(&Finding),
    ) -> Result<(vellum_papers::Report, Vec<u8>), Failure>,
) -> Result<u8, Failure> {
    let json = common.json.as_deref().map(Output::prepare).transpose()?;
    let out = out.map(Output::prepare).transpose()?;
    // Text goes to standard error when a file goes to standard output.
    let to_stderr = [&json, &out].iter().any(|output| matches!(output, Some(Output::Stdout)));
    let mut failed = None;
    let done = run(&mut |now| show(&bar, now), &mut |finding| {
        let done = bar.suspend(|| print(finding, common.svg.as_deref(), to_stderr));
        failed = failed.take().or(done.err());
    });
    bar.finish_and_clear();
    let (report, lines) = done?;
    if let Some(output) = json {
        output.write(report.json())?;
    }
    if let Some(output) = out {
        output.write(lines)?;
    }
    failed.map_or_else(|| Ok(interrupted()), Err)
}

/// This executable, for workers.
fn own() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|source| OutputError { path: "/proc/self/exe".into(), source }.into())
}

fn unwritten(error: WorkshopError) -> Failure {
    OutputError { path: error.path, source: error.source }.into()
}

/// The exit status after a signal has stopped an experiment: the status that shells give for a process that
/// was ended by that signal.
fn interrupted() -> u8 {
    Interrupt::last().map_or(0, |signal| SIGNALLED + signal as u8)
}

/// Prints a finding, and the paths of its figures.
fn print(finding: &Finding, svg: Option<&Path>, to_stderr: bool) -> Result<(), Failure> {
    let written = svg.map_or(Ok(Vec::new()), |folder| write_figures(finding, folder));
    let figures = written.map_err(|error| OutputError { path: error.path, source: error.source })?;
    let mut text = finding.text();
    if !figures.is_empty() {
        let names: Vec<String> = figures.iter().map(|path| path.display().to_string()).collect();
        text += &format!("Figures: {}\n", names.join(", "));
    }
    text.push('\n');
    if to_stderr {
        let written = std::io::stderr().lock().write_all(text.as_bytes());
        return written.map_err(|source| OutputError { path: "standard error".into(), source }.into());
    }
    Ok(stdout::write_all(text.as_bytes())?)
}

/// The same bar as [`bar`], with a thread that redraws its clock.
fn clocked_bar() -> ProgressBar {
    let bar = bar();
    bar.enable_steady_tick(REDRAW);
    bar
}

/// A bar on standard error if that is a terminal; otherwise nothing is drawn.
fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{elapsed} {prefix:9} [{bar:30}] {pos}/{len} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar
}

fn show(bar: &ProgressBar, now: Progress<'_>) {
    bar.set_prefix(now.experiment.to_owned());
    bar.set_length(now.total as u64);
    bar.set_position(now.done as u64);
    bar.set_message(now.what.to_owned());
    bar.tick();
}
