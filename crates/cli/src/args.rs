//! The command line: the list of subcommands, and the options of those subcommands that have no source
//! folder.
//!
//! Doc comments on options become the help texts, the manual pages and the completions. Each gives the
//! effect of the option, its unit and its default.

use clap::{Parser, Subcommand, ValueHint};
use std::path::PathBuf;

/// A user-mode memory runtime: runs programs on it and measures their memory.
#[derive(Debug, Parser)]
#[command(name = "vellum", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<crate::run::Run>),
    Cost(Box<crate::cost::Cost>),
    Heap(Box<crate::heap::Heap>),
    Bench(Box<crate::bench::Bench>),
    Obs(Box<crate::obs::Obs>),
    Plot(Box<crate::plot::PlotArgs>),
    Trace(Box<crate::trace::TraceArgs>),
    Watch(Box<crate::watch::Watch>),
    Govern(Box<crate::govern::Govern>),
    /// Export a memory recommendation for every container, unit and job step of this node to Prometheus.
    Agent(crate::companion::Passed),
    /// Derive settings from the metrics of `vellum agent` in Prometheus.
    Recommend(crate::companion::Passed),
    /// Plan a fleet: the memory and nodes needed at 1, 2, 5 % slowdown, and the owners that lose CPU time.
    Plan(crate::companion::Passed),
    Top(Box<crate::top::Top>),
    GcStat(Box<crate::gc_stat::GcStat>),
    Doctor(Box<crate::doctor::Doctor>),
    /// Repeat the experiments of a paper, and print its tables beside the results measured here.
    Papers(crate::companion::Passed),
    /// Print the version.
    Version,
    /// Write a shell's completions for this command to standard output.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write all manual pages into a directory, or the main page to standard output.
    Man {
        /// The directory; it is created if it does not exist.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
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
    fn options_after_the_program_belong_to_it() {
        for line in
            [&["vellum", "run", "--", "ls", "--json", "x"][..], &["vellum", "run", "ls", "--json", "x"]]
        {
            let Command::Run(run) = Args::try_parse_from(line).unwrap().command else { panic!("not run") };
            assert_eq!(run.command, ["ls", "--json", "x"]);
            assert_eq!(run.json, None);
        }
    }

    #[test]
    fn compare_takes_its_number_after_an_equals_sign() {
        let parse = |line: &[&str]| match Args::try_parse_from(line).map(|args| args.command) {
            Ok(Command::Run(run)) => Ok((run.compare, run.command)),
            _ => Err(()),
        };
        assert_eq!(parse(&["vellum", "run", "--compare", "8"]), Ok((Some(0), vec!["8".into()])));
        assert_eq!(parse(&["vellum", "run", "--compare=8", "ls"]), Ok((Some(8), vec!["ls".into()])));
        for few in ["--compare=0", "--compare=2"] {
            assert!(parse(&["vellum", "run", few, "ls"]).is_err(), "{few}");
        }
        assert!(parse(&["vellum", "run"]).is_err());
    }
}
