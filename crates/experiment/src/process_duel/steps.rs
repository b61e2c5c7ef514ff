//! Steps: commands that run before and after each run of a program and are not timed. They prepare data, drop
//! caches or remove output.
//!
//! A step has no input, and its output is kept only for the error message. A step that fails ends the duel,
//! because the next run would measure something else.

use super::output::Streams;
use super::spawn::{self, Words};
use super::{Output, ProcessDuelError, StepError};
use vellum_process::{Command, Interrupt, Outcome};
use vellum_timing::clock::{Clock, ClockKind};

/// The commands that run before and after every run of a program.
#[derive(Debug)]
pub(super) struct Steps {
    before: Vec<Step>,
    after: Vec<Step>,
    streams: Streams,
}

#[derive(Debug)]
struct Step {
    what: &'static str,
    command: String,
    words: Words,
}

impl Step {
    fn new(what: &'static str, command: &Command) -> Result<Step, ProcessDuelError> {
        let last = command.argv.last().map(|word| word.to_string_lossy().into_owned());
        Ok(Step { what, command: last.unwrap_or_default(), words: Words::of(command)? })
    }

    fn run(&self, streams: &mut Streams, clock: &Clock) -> Result<(), ProcessDuelError> {
        let run = spawn::run(&self.words, clock, streams.ready()?)?;
        match (run.outcome, Interrupt::arrived()) {
            (Outcome::Exited(0), _) => Ok(()),
            (_, Some(signal)) => Err(ProcessDuelError::Interrupted(signal)),
            (outcome, None) => {
                let (command, last) = (self.command.clone(), streams.last_words());
                Err(StepError { what: self.what, command, outcome, last }.into())
            }
        }
    }
}

impl Steps {
    pub(super) fn new(before: &[Command], after: &[Command]) -> Result<Steps, ProcessDuelError> {
        let all = |what, commands: &[Command]| -> Result<Vec<Step>, ProcessDuelError> {
            commands.iter().map(|one| Step::new(what, one)).collect()
        };
        Ok(Steps {
            before: all("prepare", before)?,
            after: all("conclude", after)?,
            streams: Streams::open(Output::Discard, None)?,
        })
    }

    pub(super) fn before(&mut self, thing: usize, clock: &Clock) -> Result<(), ProcessDuelError> {
        self.before.get(thing).map_or(Ok(()), |step| step.run(&mut self.streams, clock))
    }

    pub(super) fn after(&mut self, thing: usize, clock: &Clock) -> Result<(), ProcessDuelError> {
        self.after.get(thing).map_or(Ok(()), |step| step.run(&mut self.streams, clock))
    }
}

/// Runs a single step, such as one before all runs; `what` names it in errors.
///
/// # Errors
/// If the step cannot be started, or fails.
pub fn step(what: &'static str, command: &Command) -> Result<(), ProcessDuelError> {
    let clock = Clock::open(ClockKind::Monotonic)?;
    Step::new(what, command)?.run(&mut Streams::open(Output::Discard, None)?, &clock)
}
