//! The options of `vellum cost`.

use clap::ValueHint;
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program, unmodified, and print its most expensive memory operations by line, then its annotated
/// source.
///
/// First come the twenty dearest lines. Then comes the source: under each line are the operations it caused,
/// with count, bytes, and mean, smallest, largest time and standard deviation. Counts are exact. Only some
/// short operations are timed; a ~ marks their times. A library, an interpreter and its packages are summed;
/// --file shows their lines. Build the program with -g. Exit status: as for vellum run.
///
/// With --diff: compares two runs that were saved with --json, and marks changes of time that are noise.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:\n  vellum cost -- ./prog args\n  vellum cost -f list.c -- ./prog\n  \
    vellum cost -s --folded out.folded -- ./prog\n  vellum cost --diff old.json new.json")]
pub(crate) struct Cost {
    /// Show only source files whose path ends in FILE, including those of libraries; may be repeated.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Vec<PathBuf>,

    /// Show totals by line, operation, function and file instead of the source.
    #[arg(short, long)]
    pub(crate) summary: bool,

    /// Write the report to FILE instead of standard error; "-" is standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Also write everything as JSON (schema vellum.cost/1); "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,

    /// Also write stacks with their nanoseconds, one a line, in the format of flame graph tools. This slows
    /// the program more: every stack is walked to its end.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) folded: Option<PathBuf>,

    /// Measure the program's own allocator instead of Vellum's.
    #[arg(long)]
    pub(crate) own_allocator: bool,

    /// Vellum's library (default: the one VELLUM_LIB names, else libvellum.so beside this command).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "own_allocator")]
    pub(crate) lib: Option<PathBuf>,

    /// The recording library (default: the one VELLUM_COST_LIB names, else libvellum_cost.so beside this
    /// command).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) recorder: Option<PathBuf>,

    /// Show changes of counts and times from one run that was saved with --json to another.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], value_hint = ValueHint::FilePath,
        conflicts_with_all = ["command", "file", "summary", "output", "json", "folded"])]
    pub(crate) diff: Vec<PathBuf>,

    /// With --diff, show at most this number of operations.
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 15, requires = "diff")]
    pub(crate) top: usize,

    /// The program and its arguments.
    #[arg(required_unless_present = "diff", trailing_var_arg = true, value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}
