//! Runs a program with Vellum as its malloc, under a memory limit.

use super::program::Program;
use super::rivals::{Senpai, Usage};
use crate::confined::{self, Job, RunError};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The cost of a run, and the limits that the rivals derive from it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Took {
    pub(super) ran: confined::Took,
    /// The limit by the recommender's rule, and the mean memory in the second half, in bytes.
    pub(super) recommended: u64,
    pub(super) settled: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Setting<'a> {
    pub(super) program: Program,
    pub(super) executable: OsString,
    pub(super) folder: &'a Path,
    pub(super) library: &'a Path,
}

impl Setting<'_> {
    pub(super) fn command(&self, executable: &OsString) -> io::Result<Command> {
        self.program.command(executable, self.folder)
    }

    /// Runs the program on Vellum's memory under a limit, and under the loop if there is one, and stops it
    /// after `longest`.
    pub(super) fn run(
        &self,
        limit: u64,
        mut senpai: Option<Senpai>,
        longest: Duration,
    ) -> Result<Took, RunError> {
        let mut command = self.command(&self.executable)?;
        command.args(&self.program.words[1..]).env("LD_PRELOAD", self.library);
        let mut usage = Usage::new();
        let job = Job { name: "vellum-advice", command, driver: None, limit, longest };
        let ran = confined::run(job, |group| {
            usage.look(|| group.held());
            if let Some(senpai) = &mut senpai {
                senpai.look(group);
            }
        })?;
        Ok(Took { ran, recommended: usage.recommended(), settled: usage.settled() })
    }
}
