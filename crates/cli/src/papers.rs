//! `vellum papers`: the sources' experiments, a program of their own.
//!
//! They are many programs, simulators and C clients that nobody needs who does not doubt the papers. So this
//! command only reads its words, to say what is wrong with them, and becomes `vellum-studies`, which lies
//! beside it and reads them again by the same definitions.

use crate::failure::Failure;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use vellum_process::library;

/// The experiments' program.
const PROGRAM: &str = "vellum-studies";

/// The experiments' program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {} ({source}); build it with `./build`", .program.display())]
struct NotStarted {
    program: PathBuf,
    source: io::Error,
}

/// Becomes the experiments' program, with the words behind `papers`. Returns only if it cannot be started.
pub(crate) fn papers() -> Result<u8, Failure> {
    let program = library::find_program(PROGRAM)?;
    let source = Command::new(&program).args(std::env::args_os().skip(2)).exec();
    Err(Failure::of(NotStarted { program, source }))
}
