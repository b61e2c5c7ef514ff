//! The options of `vellum run`.

use crate::heap::args::{INTERVAL, interval};
use clap::{ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program, unmodified, on Vellum's memory, and report its time, memory and faults.
///
/// The program's input, output, exit status and signals are untouched; the report is written to standard
/// error after the program has ended. Exit status: the program's own, 128+N when signal N killed it, 127 when
/// it is not found, 126 when it cannot be executed, 125 when vellum itself failed.
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum run -- python3 script.py\n  vellum run --report job.html -- make -j2\n  \
    vellum run --compare -- sort big.txt"
)]
pub(crate) struct Run {
    /// Also write the report as JSON (schema vellum.run/1; with --compare vellum.compare/1); "-" is standard
    /// output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,

    /// Also write the report as one self-contained HTML page with plots.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "compare")]
    pub(crate) report: Option<PathBuf>,

    /// Print no report on standard error.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print all that was counted: pages, cache, growth, paging, and the working-set curve.
    #[arg(short, long, conflicts_with_all = ["quiet", "compare"])]
    pub(crate) verbose: bool,

    /// Show no progress line on a terminal.
    #[arg(long)]
    pub(crate) no_live: bool,

    /// Do not measure the working set: the report then has no curve, no knee and no recommended memory.
    #[arg(long)]
    pub(crate) no_watch: bool,

    /// Also sample which lines hold memory, one block every BYTES bytes on average (default: 512K).
    ///
    /// As in vellum heap. The report then lists the lines that hold memory at the peak and at the end, and
    /// all resident memory by kind.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true,
        default_missing_value = INTERVAL, value_parser = interval, conflicts_with = "compare")]
    pub(crate) heap: Option<u64>,

    /// When to request huge pages from the kernel (default: auto).
    #[arg(long, value_name = "WHEN")]
    pub(crate) huge: Option<Huge>,

    /// The time that free pages are kept before they are returned to the kernel, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub(crate) decay: Option<u32>,

    /// Leave the program's own mmap, munmap and mremap calls to the kernel.
    #[arg(long)]
    pub(crate) no_mmap: bool,

    /// Limit each process to SIZE of memory, such as 512M; the rest goes to a file.
    ///
    /// From 256K to 256G. The program may allocate many times as much. Needs Linux 6.5 and a file system on a
    /// disk (vellum doctor --check store), but neither privilege nor swap.
    #[arg(long, value_name = "SIZE", value_parser = frames)]
    pub(crate) frames: Option<u64>,

    /// The place of the paging file: a directory, or a file that does not exist yet. Nothing is left there
    /// (default: TMPDIR, else /var/tmp).
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, requires = "frames")]
    pub(crate) store: Option<PathBuf>,

    /// Run a program that is linked with libgc (the Boehm-Demers-Weiser collector) on Vellum's collector.
    ///
    /// Puts the directory of Vellum's libgc.so.1 first in LD_LIBRARY_PATH. docs/libgc.md lists the supported
    /// functions.
    #[arg(long)]
    pub(crate) libgc: bool,

    /// The library to preload (default: the one VELLUM_LIB names, else libvellum.so beside this command).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) lib: Option<PathBuf>,

    /// Run the command N times with Vellum and 2N times without, in random order, and print the ratios.
    ///
    /// Only the output of the first run is shown. If standard input is a file, every run reads it from the
    /// current position; otherwise it is empty. N is at least 5, and chosen from the time of the first runs
    /// unless given.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = CHOSEN,
        value_parser = pairs)]
    pub(crate) compare: Option<u32>,

    /// The seed of the order of runs in a comparison; printed with the result.
    #[arg(long, value_name = "N", requires = "compare")]
    pub(crate) seed: Option<u64>,

    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND",
        value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// The policies for huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Huge {
    /// For large blocks where they pay.
    Auto,
    /// Never.
    Never,
    /// For every large block.
    Always,
}

impl Huge {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Huge::Auto => "auto",
            Huge::Never => "never",
            Huge::Always => "always",
        }
    }
}

/// The fewest pairs a comparison is made of.
pub(crate) const PAIRS_MIN: u32 = 5;
/// The most pairs a comparison is made of.
pub(crate) const PAIRS_MAX: u32 = 10_000;

/// The limit on a process's memory, in bytes.
fn frames(text: &str) -> Result<u64, String> {
    const LIMITS: std::ops::RangeInclusive<u64> = 256 << 10..=256 << 30;
    vellum_report::amount::size(text)
        .filter(|bytes| LIMITS.contains(bytes))
        .ok_or_else(|| "write a size, such as 512M, 512MiB or 1.5G, from 256K to 256G".to_owned())
}

/// The internal value for a missing number.
const CHOSEN: &str = "auto";

/// A number of pairs; 0 means "choose".
fn pairs(text: &str) -> Result<u32, String> {
    match text.parse() {
        _ if text == CHOSEN => Ok(0),
        Ok(n) if (PAIRS_MIN..=PAIRS_MAX).contains(&n) => Ok(n),
        _ => Err(format!("the number of pairs is from {PAIRS_MIN} to {PAIRS_MAX}, or {CHOSEN}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_parse_with_units_and_limits() {
        for (text, bytes) in [("512M", Some(512 << 20)), ("262144", Some(262_144)), ("1.5g", Some(3 << 29))] {
            assert_eq!(frames(text).ok(), bytes, "{text}");
        }
        for wrong in ["", "M", "255K", "257G", "1T", "-1M", "1.5GB"] {
            assert!(frames(wrong).unwrap_err().contains("from 256K to 256G"), "{wrong}");
        }
    }
}
