//! Shell commands around a program's runs, as in `hyperfine`: `--setup` once before all of the program's
//! runs, `--prepare` before and `--conclude` after each run, `--cleanup` once at the end.
//!
//! These steps are not timed. `--cleanup` runs for every program that was set up, even after a failure or a
//! signal.

use super::args::Bench;
use super::duel::failed;
use super::parameters::Setting;
use crate::failure::Failure;
use std::ffi::OsStr;
use vellum_experiment::process_duel::step;
use vellum_process::Command;

/// The shell of all steps.
const SHELL: &str = "/bin/sh";

/// The steps around the runs of all programs, each with its setting.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    args: &'a Bench,
    settings: Vec<Setting>,
    set_up: usize,
}

impl<'a> Steps<'a> {
    /// Sets all programs up.
    pub(super) fn begin(args: &'a Bench, settings: Vec<Setting>) -> Result<Steps<'a>, Failure> {
        let mut steps = Steps { args, settings, set_up: 0 };
        for place in 0..steps.settings.len() {
            // Counted first: a set-up that fails half-way may leave files behind.
            steps.set_up += 1;
            if let Some(line) = &args.setup {
                step("setup", &shell(line, &steps.settings[place])).map_err(failed)?;
            }
        }
        Ok(steps)
    }

    /// The commands of `line`, the value of --prepare or --conclude, for all programs; empty without a line.
    /// One program alone is timed as several, with the same setting.
    pub(super) fn each(&self, line: Option<&OsStr>, programs: usize) -> Vec<Command> {
        let settings = || self.settings.iter().cycle().take(programs);
        line.into_iter().flat_map(|line| settings().map(move |setting| shell(line, setting))).collect()
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        let Some(line) = &self.args.cleanup else { return };
        for setting in &self.settings[..self.set_up] {
            if let Err(error) = step("cleanup", &shell(line, setting)) {
                say!("error: {error}");
            }
        }
    }
}

/// A line for the shell, with this process's environment.
fn shell(line: &OsStr, setting: &Setting) -> Command {
    Command {
        program: SHELL.into(),
        argv: vec!["sh".into(), "-c".into(), setting.fill(line)],
        env: std::env::vars_os().collect(),
        stdio: [None, None, None],
    }
}
