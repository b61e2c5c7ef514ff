//! What can be written on the command line.
//!
//! The doc comments here are the help texts, the manual page and the completions: each says what the option does, its unit and
//! its default.

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// A user-mode memory runtime: runs programs on it and says what that did.
#[derive(Debug, Parser)]
#[command(name = "vellum", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<Run>),
    Cost(Box<crate::cost::Cost>),
    Bench(Box<crate::bench::Bench>),
    Obs(Box<crate::obs::Obs>),
    Plot(Box<crate::plot_command::PlotArgs>),
    Trace(Box<crate::trace::TraceArgs>),
    Watch(Box<crate::watch::Watch>),
    Govern(Box<crate::govern::Govern>),
    Top(Box<crate::top::Top>),
    GcStat(Box<crate::gc_stat::GcStat>),
    /// Run the experiments of a source again, and print its tables beside what is measured here.
    Papers {
        /// Which source.
        #[command(subcommand)]
        source: crate::papers::Papers,
    },
    /// Write a shell's completions for this command to standard output.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages: all of them into a directory, or the main one to standard output.
    Man {
        /// The directory, made if it is not there.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
}

/// Run a program, unmodified, on Vellum's memory, and report what it used.
///
/// The program's input, output, exit status and signals are untouched; the report comes on standard error when it has
/// ended. Exit status: the program's own, 128+N when signal N killed it, 127 when it is not found, 126 when it
/// cannot be executed, 125 when vellum itself failed.
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum run -- python3 script.py\n  vellum run --report job.html -- make -j2\n  \
    vellum run --compare -- sort big.txt"
)]
pub(crate) struct Run {
    /// Also write the report as JSON (schema vellum.run/1, or vellum.compare/1 with --compare); "-" is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,

    /// Also write the report as one self-contained HTML page with plots.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "compare")]
    pub(crate) report: Option<PathBuf>,

    /// Print no report on standard error.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Show no live line on a terminal.
    #[arg(long)]
    pub(crate) no_live: bool,

    /// Do not look at which pages are referenced: the report then has no working-set curve, knee or memory to give.
    #[arg(long)]
    pub(crate) no_watch: bool,

    /// When to ask the kernel for huge pages (default: auto).
    #[arg(long, value_name = "WHEN")]
    pub(crate) huge: Option<Huge>,

    /// How long free pages are kept before they go back to the kernel, in milliseconds.
    #[arg(long, value_name = "MS")]
    pub(crate) decay: Option<u32>,

    /// Leave the program's own mmap, munmap and mremap calls to the kernel.
    #[arg(long)]
    pub(crate) no_mmap: bool,

    /// Give big blocks (above 256 KiB) of each process this much memory together, such as 512M, and page the rest to a file.
    ///
    /// The program may use many times as much; nothing else of it is limited, and neither privilege nor swap is needed. In bytes, or with K, M or G;
    /// from 256K to 256G.
    #[arg(long, value_name = "SIZE", value_parser = frames)]
    pub(crate) frames: Option<u64>,

    /// Where paged-out blocks go: a directory, or a file that does not exist yet. Nothing is left there (default: TMPDIR, else /var/tmp).
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, requires = "frames")]
    pub(crate) store: Option<PathBuf>,

    /// Run a program that is linked with libgc (the Boehm-Demers-Weiser collector) on Vellum's collector.
    ///
    /// Puts the folder of Vellum's libgc.so.1 first on the program's LD_LIBRARY_PATH. docs/libgc.md says what is served.
    #[arg(long)]
    pub(crate) libgc: bool,

    /// The library to preload, instead of the one VELLUM_LIB names or the libvellum.so found beside this command.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) lib: Option<PathBuf>,

    /// Run the command N times with Vellum and 2N times without, in random order, and print the ratios.
    ///
    /// Only the very first run's output is shown; the others' standard output is discarded. If standard input is a file, every run
    /// reads it from its present position; otherwise every run finds it empty. N is chosen from the time of the
    /// first runs unless given (at least 5).
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0",
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

/// What big blocks may have in memory, in bytes.
fn frames(text: &str) -> Result<u64, String> {
    const LIMITS: std::ops::RangeInclusive<u64> = 256 << 10..=256 << 30;
    crate::amount::memory(text).filter(|bytes| LIMITS.contains(bytes)).ok_or_else(|| {
        "write a number of bytes, or one with K, M or G, such as 512M, from 256K to 256G".to_owned()
    })
}

/// A number of pairs; 0 (no number given) means "choose".
fn pairs(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Ok(0),
        Ok(n) if (PAIRS_MIN..=PAIRS_MAX).contains(&n) => Ok(n),
        _ => Err(format!("the number of pairs is from {PAIRS_MIN} to {PAIRS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_commands_own_options_are_not_ours() {
        for line in
            [&["vellum", "run", "--", "ls", "--json", "x"][..], &["vellum", "run", "ls", "--json", "x"]]
        {
            let Command::Run(run) = Args::try_parse_from(line).unwrap().command else { panic!("not run") };
            assert_eq!(run.command, ["ls", "--json", "x"]);
            assert_eq!(run.json, None);
        }
    }

    #[test]
    fn frames_have_units_and_limits() {
        for (text, bytes) in [("512M", Some(512 << 20)), ("262144", Some(262_144)), ("2g", Some(2 << 30))] {
            assert_eq!(frames(text).ok(), bytes, "{text}");
        }
        for wrong in ["", "M", "255K", "257G", "1T", "-1M", "1.5G"] {
            assert!(frames(wrong).unwrap_err().contains("from 256K to 256G"), "{wrong}");
        }
        assert!(
            Args::try_parse_from(["vellum", "run", "--store", "/x", "ls"]).is_err(),
            "a store without frames"
        );
    }

    #[test]
    fn compare_takes_its_number_only_by_an_equals_sign() {
        let parse = |line: &[&str]| match Args::try_parse_from(line).map(|args| args.command) {
            Ok(Command::Run(run)) => Ok((run.compare, run.command)),
            _ => Err(()),
        };
        assert_eq!(parse(&["vellum", "run", "--compare", "8"]), Ok((Some(0), vec!["8".into()])));
        assert_eq!(parse(&["vellum", "run", "--compare=8", "ls"]), Ok((Some(8), vec!["ls".into()])));
        assert!(parse(&["vellum", "run", "--compare=2", "ls"]).is_err());
        assert!(parse(&["vellum", "run"]).is_err());
    }
}
