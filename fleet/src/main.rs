//! `vellum-fleet`: the commands `vellum agent`, `vellum recommend` and `vellum plan`.
//!
//! `vellum` starts this program with unchanged arguments. This crate root parses the options and prints
//! the results; the library `vellum_fleet` does the work.
//!
//! Exit status: the number that the command returns, or 125 after an error.

#[macro_use(say)]
extern crate vellum_report;

mod command;

use clap::{CommandFactory, Parser, Subcommand, ValueHint};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vellum_report::OutputError;
use vellum_report::exit;

/// A command's exit status, or the error that ended it.
type Ended = Result<u8, Box<dyn Error>>;

/// Memory recommendations for every container, unit and job step of a node or a cluster.
#[derive(Debug, Parser)]
#[command(name = "vellum-fleet", bin_name = "vellum", version, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Agent(Box<command::agent::AgentArgs>),
    Recommend(Box<command::recommend::Recommend>),
    Plan(Box<command::plan::Plan>),
    /// Write the manual pages of these commands into a directory.
    #[command(hide = true)]
    Man {
        /// The directory; it is created if it does not exist.
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let args: Args = match vellum_report::arguments::parse() {
        Ok(args) => args,
        Err(status) => return ExitCode::from(status),
    };
    let ended = match args.command {
        Command::Agent(args) => command::agent::agent(&args),
        Command::Recommend(args) => command::recommend::recommend(&args),
        Command::Plan(args) => command::plan::plan(&args),
        Command::Man { directory } => man(&directory),
    };
    ExitCode::from(exit::status(ended.unwrap_or_else(exit::failed)))
}

/// Writes `vellum-agent.1` and so on: the pages of subcommands that `vellum man` does not write.
fn man(directory: &Path) -> Ended {
    let failed = |source| OutputError { path: directory.to_path_buf(), source };
    std::fs::create_dir_all(directory).map_err(failed)?;
    let mut all = Args::command().name("vellum").bin_name("vellum").disable_help_subcommand(true);
    all.build();
    for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
        clap_mangen::generate_to(command.clone(), directory).map_err(failed)?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn each_command_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        man(folder.path()).unwrap();
        for page in ["agent", "recommend", "recommend-kubernetes", "plan", "plan-export"] {
            let page = folder.path().join(format!("vellum-{page}.1"));
            assert!(page.exists(), "{}", page.display());
        }
        assert!(!folder.path().join("vellum.1").exists());
    }
}
