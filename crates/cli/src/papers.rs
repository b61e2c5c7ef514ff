//! `vellum papers`: the sources' experiments, a program of their own.
//!
//! They are many programs, simulators and C clients that nobody needs who does not doubt the
//! papers. So this command passes its arguments on to `vellum-papers`, which lies beside it
//! (`lab/build` links it there).

use crate::failure::Failure;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use vellum_process::library;

/// The experiments' program.
const PROGRAM: &str = "vellum-papers";

/// The experiments' program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {} ({source}); build it with `lab/build`", .program.display())]
struct NotStarted {
    program: PathBuf,
    source: io::Error,
}

/// Becomes the experiments' program, with the arguments behind `papers`. Returns only if it cannot
/// be started.
pub(crate) fn papers(arguments: &[OsString]) -> Result<u8, Failure> {
    let program = library::find_program(PROGRAM)?;
    let source = Command::new(&program).args(arguments).exec();
    Err(Failure::of(NotStarted { program, source }))
}
