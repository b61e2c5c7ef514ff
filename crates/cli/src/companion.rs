//! Starts the subcommands that are in two other programs, `vellum-fleet` and `vellum-papers`.
//!
//! Both are built separately, as few users need them. `vellum` execs the program that
//! [`library::find_program`] finds, and passes on all arguments unchanged, including `--help`.

use crate::failure::Failure;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use vellum_process::library;

/// The arguments of such a subcommand, for the help. The original ones are passed on, as clap drops a leading
/// `--`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Passed {
    /// The arguments of the program; --help lists them.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// `vellum agent`, `recommend` and `plan`. Returns only if the program cannot be started.
pub(crate) fn fleet() -> Result<u8, Failure> {
    start("vellum-fleet", "fleet/build", 1)
}

/// `vellum papers`. Returns only if the program cannot be started.
pub(crate) fn papers() -> Result<u8, Failure> {
    start("vellum-papers", "lab/build", 2)
}

/// Executes a program that `build` makes, with this command's arguments except the first `without`.
fn start(program: &'static str, build: &'static str, without: usize) -> Result<u8, Failure> {
    let Ok(path) = library::find_program(program, build) else {
        let command = std::env::current_exe().unwrap_or_else(|_| "vellum".into());
        let command = command.display();
        return Err(Failure::because(format!(
            "cannot find {program} beside {command} (build it with {build})"
        )));
    };
    // The program exists, but the system refuses to run it.
    let error = Command::new(&path).args(std::env::args_os().skip(without)).exec();
    let path = path.display();
    Err(Failure::because(format!("cannot start {path}: {error} (build it again with {build})")))
}
