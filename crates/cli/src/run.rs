//! `vellum run`: once, with a report.

use crate::args::Run;
use crate::bench::BenchFailure;
use crate::govern::GovernFailure;
use crate::launch::{Occasion, Plan};
use crate::obs::ObsError;
use crate::observations::InputError;
use crate::output::Output;
use crate::plot_command::PlotFailure;
use crate::store::StoreError;
use crate::style::Style;
use crate::trace::TraceFailure;
use crate::watch::WatchFailure;
use crate::{FAILED, gather, output, page, text};
use std::io;
use std::path::PathBuf;
use vellum_papers::bates::BasesError;
use vellum_probe::{BoardError, DoorError, LocateError, SignalError, SpawnError};

/// The exit status for a program that is not there.
const NOT_FOUND: u8 = 127;
/// The exit status for a program that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The program was not found or cannot be run.
    #[error(transparent)]
    Locate(#[from] LocateError),
    /// The program could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A process's counters cannot be read.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The board could not be made.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The pager's store cannot be where it should.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Signals could not be taken over.
    #[error(transparent)]
    Signals(#[from] SignalError),
    /// The library is not there.
    #[error("libvellum.so not found (looked for {}); build it with `cargo build --release -p vellum-runtime`, \
        or name it with --lib or VELLUM_LIB",
        .looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoLibrary {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// The library in libgc's place is not there.
    #[error("libgc/libgc.so.1 not found (looked for {}); build it with `./build`",
        .looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoLibgc {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// The recorder is not there.
    #[error("libvellum_cost.so not found (looked for {}); build it with `cargo build --release -p vellum-recorder`, \
        or name it with --recorder or VELLUM_COST_LIB",
        .looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoRecorder {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// The ledger could not be made.
    #[error(
        "cannot make the ledger that operations are recorded in ({0}); it needs a little room in /dev/shm"
    )]
    Ledger(#[source] io::Error),
    /// The link to a library whose path cannot be written in LD_PRELOAD was not made.
    #[error(
        "cannot link to the library, whose path holds a blank or a colon ({0}); name one without, by --lib"
    )]
    Link(#[source] io::Error),
    /// The program could not be waited for.
    #[error("cannot wait for the program ({0}); its own exit status is lost")]
    Wait(#[source] io::Error),
    /// A report could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Output {
        /// The place.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What a run of a comparison needs could not be opened.
    #[error("cannot open {what} for a run of the comparison: {source}")]
    Open {
        /// What it is.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A run of a comparison failed.
    #[error("the command failed {occasion} ({how}); a comparison needs a command that succeeds{said}")]
    Command {
        /// Which run it was.
        occasion: String,
        /// How it ended.
        how: String,
        /// The end of what it wrote to standard error, if that was not shown.
        said: String,
        /// The exit status to pass on.
        status: u8,
    },
    /// Observations could not be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Observations could not be written.
    #[error(transparent)]
    Obs(#[from] ObsError),
    /// There is no plot.
    #[error(transparent)]
    Plot(#[from] PlotFailure),
    /// A trace says nothing.
    #[error(transparent)]
    Trace(#[from] TraceFailure),
    /// Nothing could be timed.
    #[error(transparent)]
    Bases(#[from] BasesError),
    /// There is no benchmark.
    #[error(transparent)]
    Bench(Box<BenchFailure>),
    /// There is no watch.
    #[error(transparent)]
    Watch(Box<WatchFailure>),
    /// Nothing is governed.
    #[error(transparent)]
    Govern(Box<GovernFailure>),
}

impl From<GovernFailure> for Failure {
    fn from(failure: GovernFailure) -> Failure {
        Failure::Govern(Box::new(failure))
    }
}

impl From<BenchFailure> for Failure {
    fn from(failure: BenchFailure) -> Failure {
        Failure::Bench(Box::new(failure))
    }
}

impl Failure {
    /// This command's exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Locate(LocateError::NotFound(_)) | Failure::Spawn(SpawnError::NotFound(_)) => NOT_FOUND,
            Failure::Locate(LocateError::NotExecutable { .. })
            | Failure::Spawn(SpawnError::NotExecutable { .. }) => NOT_EXECUTABLE,
            Failure::Command { status, .. } => *status,
            Failure::Bench(failure) => match failure.spawn() {
                Some(SpawnError::NotFound(_)) => NOT_FOUND,
                Some(SpawnError::NotExecutable { .. }) => NOT_EXECUTABLE,
                _ => FAILED,
            },
            _ => FAILED,
        }
    }
}

/// Runs the command once, reports, and returns the program's exit status.
pub(crate) fn run(args: &Run) -> Result<u8, Failure> {
    let plan = Plan::new(args)?;
    let json = args.json.as_deref().map(Output::prepare).transpose()?;
    let html = args.report.as_deref().map(Output::prepare).transpose()?;
    let live = !(args.no_live || args.quiet);
    let occasion = Occasion { on_vellum: true, live, watch: !args.no_watch, ..Occasion::default() };
    let observed = plan.launch(occasion)?;
    let report = gather::report(&plan, &observed);
    if !args.quiet {
        text::print(&report, Style::of_stderr());
    }
    let mut status = observed.ended.outcome.shell_status();
    for (output, make) in [(json, output::json as fn(&_) -> String), (html, page::html)] {
        let written = output.map_or(Ok(()), |output| output.write(make(&report)));
        // The program's own failure says more than ours.
        if let Err(failure) = written {
            say!("vellum: {failure}");
            status = if status == 0 { FAILED } else { status };
        }
    }
    Ok(status)
}
