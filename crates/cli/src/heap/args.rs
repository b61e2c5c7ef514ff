//! The options of `vellum heap`.

use super::scope::Scope;
use clap::{ValueEnum, ValueHint};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vellum_cost::Holding;
use vellum_report::amount;
use vellum_wire::held::{Amount, INTERVAL_MAX, INTERVAL_MIN};

/// The accepted times.
const TIMES: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(365 * 24 * 3600);

/// The default number of bytes between samples.
pub(crate) const INTERVAL: &str = "512K";

/// Run a program, unmodified, and show which of its lines hold its memory, at the peak and at the end. Or
/// observe a process that already runs on Vellum.
///
/// With a command: runs it. With a process id alone: samples the allocations of that process and its children
/// from now on, until Ctrl-C, --for, or its end. This needs no privilege for your own processes, and nothing
/// is restarted. With --diff: compares two profiles that were saved as JSON.
///
/// One block every 512 KiB on average is sampled, and stored with its stack until it is freed. The sampled
/// blocks are an unbiased estimate of all blocks. Build the program with -g for lines. Exit status: as for
/// vellum run.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:\n  vellum heap -- ./prog args\n  vellum heap -o heap.html -- ./prog\n  \
    vellum heap -i 64K -o heap.pb.gz -o heap.json -- ./prog\n  vellum heap --for 10s 4711\n  \
    vellum heap --every 5s 4711\n  vellum heap --diff old.json new.json")]
pub(crate) struct Heap {
    /// Take a sample every BYTES allocated bytes, on average; from 1 to 1 GiB. Fewer bytes make figures more
    /// exact and the program slower.
    #[arg(short, long, value_name = "BYTES", default_value = INTERVAL, value_parser = interval)]
    pub(crate) interval: u64,

    /// Also write the profile to FILE, in the format of its name's ending: .folded, .html (a page with flame
    /// graphs and tables), .json (schema vellum.heap/1), .pb.gz (pprof), .svg (a flame graph) or .txt (the
    /// report). May be repeated; "-" is standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Vec<PathBuf>,

    /// Write in this format, whatever the ending of the file's name.
    #[arg(long, value_name = "FORMAT", requires = "output")]
    pub(crate) format: Option<Format>,

    /// The amounts in folded stacks, the flame graph and the lines of callers.
    #[arg(long, value_name = "WHEN", default_value = "peak")]
    pub(crate) of: When,

    /// Show call trees from the program's start down, not from the allocating lines up.
    #[arg(long)]
    pub(crate) callees: bool,

    #[command(flatten)]
    pub(crate) scope: Scope,

    /// Show at most this number of lines in each table, not counting callers.
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 15)]
    pub(crate) top: usize,

    /// Vellum's library (default: the one VELLUM_LIB names, else libvellum.so beside this command).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) lib: Option<PathBuf>,

    /// With a process id: end after this time, such as 10s or 5m.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) time: Option<Duration>,

    /// With a process id: show the growth each time this has passed.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) every: Option<Duration>,

    /// Compare two profiles saved as JSON: the growth of the amount that --of selects. -o writes the growth.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], value_hint = ValueHint::FilePath,
        conflicts_with_all = ["command", "time", "every", "callees", "hide", "function", "module", "pid"])]
    pub(crate) diff: Vec<PathBuf>,

    /// The program and its arguments; or a process id (./4711 for a program of such a name).
    #[arg(required_unless_present = "diff", trailing_var_arg = true, value_name = "COMMAND|PID",
        value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

impl Heap {
    /// The process to observe, if a process id was given.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.command[..] {
            [word] => word.to_str()?.parse().ok(),
            _ => None,
        }
    }
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The tables of the report.
    Text,
    /// One stack and its bytes per line, for flame graph tools.
    Folded,
    /// A page with flame graphs and tables.
    Html,
    /// Everything, schema vellum.heap/1.
    Json,
    /// For pprof: profile.proto, compressed.
    Pprof,
    /// A flame graph.
    Svg,
}

impl Format {
    /// The format that a file's name ends in.
    pub(crate) fn of(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let endings = [
            (".folded", Format::Folded),
            (".html", Format::Html),
            (".json", Format::Json),
            (".pb.gz", Format::Pprof),
            (".svg", Format::Svg),
            (".txt", Format::Text),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }
}

/// The amount that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// Memory in use at the peak.
    #[default]
    Peak,
    /// Memory in use at the end.
    End,
    /// All memory ever allocated.
    Ever,
}

impl When {
    /// The selected amount of a holding.
    pub(crate) fn of(self, holding: &Holding) -> Amount {
        match self {
            When::Peak => holding.peak,
            When::End => holding.now,
            When::Ever => holding.ever,
        }
    }

    /// The selection in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            When::Peak => "held at the peak",
            When::End => "held at the end",
            When::Ever => "allocated in all",
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    amount::time(text, &TIMES)
}

/// The bytes between samples.
pub(crate) fn interval(text: &str) -> Result<u64, String> {
    amount::size(text)
        .filter(|bytes| (INTERVAL_MIN..=INTERVAL_MAX).contains(bytes))
        .ok_or_else(|| "expected a size from 1 to 1G, such as 512K".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(interval("64K"), Ok(64 << 10));
        assert!([interval("0"), interval("2G"), interval("often")].iter().all(Result::is_err));
    }
}
