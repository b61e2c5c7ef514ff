//! Duels of programs: times processes against each other, in rounds. The order within a round is random.
//!
//! ```text
//! empty × 20 ──▶ warm-up ─▶ round 1: B A A'   round 2: A' B A   …   until the time is over
//!                             │
//!                             └ posix_spawn ─▶ wait4: wall, user, system, faults, switches, exit status
//! ```
//!
//! "Empty" is a program that does nothing. It measures the cost of starting a process, which is reported with
//! the result. This cost is subtracted only on request, because every start of a program includes it.
//!
//! The rules are those of a [duel](crate::duel) in one process: every program runs once in each round, and
//! the first one also as the control A'. CPU time is more reliable than wall time: other programs on the
//! machine change the CPU time ten times less.
//!
//! - Instructions can be counted as well as times ([`ProcessOptions::counter`]).
//! - Commands that run before and after each run ([`ProcessOptions::prepare`],
//!   [`conclude`](ProcessOptions::conclude)) are not timed.
//!
//! A failed process gives no measurement: the duel ends with its exit status and the last line of its
//! standard error, unless failures are ignored. With [`Output::Equal`] the duel also ends if two processes
//! write different output, because they did not do the same work.
//!
//! Source: ours. Bates 1999 (see [`crate::duel`]) times operations inside one system, not whole programs.

mod error;
mod instructions;
mod nothing;
mod output;
mod results;
mod spawn;
mod steps;

pub use error::{CountError, ProcessDuelError, StepError};
pub use instructions::Counter;
pub use nothing::NothingCost;
pub use results::{ProcessDuel, ProcessMetric};
pub use spawn::ProcessRun;
pub use steps::step;

use crate::arms::{arm_name, thing_of};
use crate::{ArmOrder, Executor, Experiment, Stop, Turn};
use instructions::Counting;
use nothing::time_nothing;
use output::Streams;
use spawn::Words;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use steps::Steps;
use vellum_measure::{Interval, Options, Plan};
use vellum_process::{Command, Interrupt, Outcome, make_children_waitable};
use vellum_timing::clock::{Clock, ClockKind};

/// The most rounds of processes.
const PROCESS_ROUNDS_MAX: usize = 1 << 20;

/// The destination of the processes' output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Output {
    /// Standard output goes to `/dev/null`. Some programs detect this and do less work.
    #[default]
    Discard,
    /// Output is kept in memory, and must be the same for every process.
    Equal,
    /// Output goes to this process's own standard output.
    Inherit,
}

/// Options of a duel of programs.
#[derive(Debug)]
pub struct ProcessOptions {
    /// The clock of wall times; if `None`, the [best](Clock::best) one.
    pub clock: Option<ClockKind>,
    /// The time of the duel without the warm-up.
    pub time: Duration,
    /// The least number of rounds, even if the time is over.
    pub rounds_min: usize,
    /// The most rounds.
    pub rounds_max: usize,
    /// The rounds of the warm-up, which are dropped.
    pub warm_up: usize,
    /// The order of the arms.
    pub order: ArmOrder,
    /// The seed of random orders.
    pub seed: u64,
    /// The destination of the output.
    pub output: Output,
    /// The input of each process, read from its start; empty if `None`.
    pub input: Option<PathBuf>,
    /// True if failed processes count like others.
    pub ignore_failure: bool,
    /// True if the cost of an empty program is subtracted from times.
    pub subtract_nothing: bool,
    /// Steps to run before every run, one command for each program; none if empty.
    pub prepare: Vec<Command>,
    /// Steps to run after every run, in the same form.
    pub conclude: Vec<Command>,
    /// Ends the duel when, for this metric, every program's ratio to the first has an interval of this
    /// half-width (as a logarithm).
    pub until: Option<(ProcessMetric, f64)>,
    /// The counter of instructions; if `None`, they are not counted.
    pub counter: Option<Counter>,
}

impl Default for ProcessOptions {
    fn default() -> Self {
        ProcessOptions {
            clock: None,
            time: Duration::from_secs(6),
            rounds_min: 10,
            rounds_max: PROCESS_ROUNDS_MAX,
            warm_up: 1,
            order: ArmOrder::Random,
            seed: 1,
            output: Output::Discard,
            input: None,
            ignore_failure: false,
            subtract_nothing: false,
            prepare: Vec::new(),
            conclude: Vec::new(),
            until: None,
            counter: None,
        }
    }
}

/// Runs programs by turns, the first one twice in each round. Their `stdio` is not used: see
/// [`ProcessOptions::output`].
///
/// # Errors
/// If a program cannot be started, fails, or (with [`Output::Equal`]) writes different output from the first.
pub fn process_duel(
    programs: &[&Command],
    options: &ProcessOptions,
) -> Result<ProcessDuel, ProcessDuelError> {
    process_duel_while(programs, options, |_| true)
}

/// A duel of programs that ends when `go_on` returns false. It is called after each round, with the number of
/// rounds so far.
///
/// An [`Interrupt`] ends the duel early, with the complete rounds.
///
/// # Errors
/// Those of [`process_duel`].
pub fn process_duel_while(
    programs: &[&Command],
    options: &ProcessOptions,
    go_on: impl FnMut(usize) -> bool,
) -> Result<ProcessDuel, ProcessDuelError> {
    make_children_waitable();
    let clock = options.clock.map_or_else(Clock::best, Clock::open)?;
    let counting = Counting::open(options.counter.as_ref())?;
    let words = |program: &&Command| Words::of(counting.command(program).as_ref().unwrap_or(program));
    let things = programs.iter().map(words).collect::<Result<_, _>>()?;
    let nothing = time_nothing(&clock)?;
    let arms = programs.len() + 1;
    let duel = ProcessDuel {
        rounds: Vec::new(),
        nothing,
        failures: vec![0; arms],
        clock,
        order: options.order,
        subtract_nothing: options.subtract_nothing,
    };
    let most = options.rounds_max.clamp(1, PROCESS_ROUNDS_MAX);
    let least = options.rounds_min.clamp(1, most);
    let mut processes = Processes {
        programs,
        things,
        streams: Streams::open(options.output, options.input.as_deref())?,
        steps: Steps::new(&options.prepare, &options.conclude)?,
        ignore_failure: options.ignore_failure,
        rounds_min: least,
        counting,
        duel,
        runs: vec![None; arms],
        failed: vec![false; arms],
        decides: options.until.map_or(ProcessMetric::Cpu, |(metric, _)| metric),
        go_on,
    };
    for _ in 0..options.warm_up {
        for arm in (0..arms).filter(|arm| *arm != DOUBLE) {
            processes.turn(arm)?;
        }
    }
    let stop = match options.until {
        Some((_, half_width)) => Stop::Narrow(Plan {
            rounds_min: least,
            rounds_max: most,
            ..Plan::new(half_width, u64::try_from(options.time.as_nanos()).unwrap_or(u64::MAX))
        }),
        None => Stop::Time { time: options.time, least, most },
    };
    Experiment::new(options.order, arms, options.seed).run(&stop, &mut processes)?;
    match (Interrupt::arrived(), processes.duel) {
        (Some(signal), duel) if duel.rounds.is_empty() => Err(ProcessDuelError::Interrupted(signal)),
        // The complete rounds are returned.
        (_, duel) => Ok(duel),
    }
}

/// The arm that runs the first program a second time.
const DOUBLE: usize = 1;

/// The executor that runs programs as processes.
struct Processes<'a, F> {
    programs: &'a [&'a Command],
    things: Vec<Words>,
    streams: Streams,
    steps: Steps,
    ignore_failure: bool,
    /// The rules cannot end the duel before this many rounds.
    rounds_min: usize,
    counting: Counting,
    duel: ProcessDuel,
    /// The runs of the current round by arm.
    runs: Vec<Option<ProcessRun>>,
    /// Which runs failed.
    failed: Vec<bool>,
    /// The metric whose interval ends the duel.
    decides: ProcessMetric,
    go_on: F,
}

impl<F> Processes<'_, F> {
    /// Runs an arm, and stores the run and whether it failed.
    fn turn(&mut self, arm: usize) -> Result<(), ProcessDuelError> {
        let thing = thing_of(arm);
        self.steps.before(thing, &self.duel.clock)?;
        let ran = self.start(thing);
        self.steps.after(thing, &self.duel.clock)?;
        let mut run = ran?;
        if let Some(signal) = Interrupt::arrived() {
            return Err(ProcessDuelError::Interrupted(signal));
        }
        self.failed[arm] = self.judge(arm, &mut run)?;
        self.runs[arm] = Some(run);
        Ok(())
    }

    /// Runs a program to its end.
    fn start(&mut self, thing: usize) -> Result<ProcessRun, ProcessDuelError> {
        self.counting.begin()?;
        Ok(spawn::run(&self.things[thing], &self.duel.clock, self.streams.ready()?)?)
    }

    /// Fills in the instructions of a run. The result is whether it failed; an error if failures or different
    /// output are errors.
    fn judge(&mut self, arm: usize, run: &mut ProcessRun) -> Result<bool, ProcessDuelError> {
        let command = self.programs[thing_of(arm)];
        let program = || command.program.display().to_string();
        let failed = run.outcome != Outcome::Exited(0);
        if failed && !self.ignore_failure {
            let (outcome, last) = (run.outcome, self.streams.last_words());
            return Err(ProcessDuelError::Failed { arm: arm_name(arm), program: program(), outcome, last });
        }
        self.counting.end(run, command)?;
        match self.streams.difference()? {
            Some(at) => Err(ProcessDuelError::Differs { arm: arm_name(arm), program: program(), at }),
            None => Ok(failed),
        }
    }
}

impl<F: FnMut(usize) -> bool> Executor for Processes<'_, F> {
    type Error = ProcessDuelError;

    fn run(&mut self, Turn { arm, .. }: Turn) -> Result<(), ProcessDuelError> {
        match self.turn(arm) {
            // The experiment also sees the signal, and ends.
            Err(ProcessDuelError::Interrupted(_)) => Ok(()),
            ran => ran,
        }
    }

    fn goes_on(&mut self) -> bool {
        // A round is complete if every arm has a run.
        if let Some(runs) = self.runs.iter().copied().collect() {
            self.duel.rounds.push(runs);
            for (failures, failed) in self.duel.failures.iter_mut().zip(&self.failed) {
                *failures += usize::from(*failed);
            }
        }
        (self.go_on)(self.duel.rounds.len())
    }

    /// The time counts as zero until the least number of rounds is reached: these rounds always run.
    fn spent(&self, began: Instant) -> Duration {
        if self.duel.rounds.len() < self.rounds_min { Duration::ZERO } else { began.elapsed() }
    }

    /// The widest of the intervals, because all must be narrow enough.
    fn interval(&self) -> Option<Interval> {
        let options = Options::default();
        let ratio = |arm| Some(self.duel.compare(self.decides, arm, &options).ok()?.headline.ratio);
        let ratios: Option<Vec<Interval>> = (DOUBLE + 1..self.runs.len()).map(ratio).collect();
        ratios?.into_iter().max_by(|a, b| (a.high / a.low).total_cmp(&(b.high / b.low)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use vellum_process::SpawnError;

    pub(super) fn shell(script: &str) -> Command {
        Command {
            program: "/bin/sh".into(),
            argv: ["sh", "-c", script].map(OsString::from).into(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            stdio: [None, None, None],
        }
    }

    /// A program that works longer than it takes to start.
    pub(super) fn busy() -> Command {
        shell("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done")
    }

    fn quick() -> ProcessOptions {
        ProcessOptions {
            clock: Some(ClockKind::Monotonic),
            rounds_min: 3,
            rounds_max: 3,
            ..ProcessOptions::default()
        }
    }

    #[test]
    fn every_round_runs_every_arm() {
        let duel = process_duel(&[&shell("exit 0"), &shell(":")], &quick()).unwrap();
        assert_eq!((duel.rounds.len(), &duel.failures), (3, &vec![0; 3]));
        for round in &duel.rounds {
            assert!(round.iter().all(|run| run.wall_ns > 0.0 && run.usage.minor_faults > 0));
        }
        let series = duel.series(ProcessMetric::Wall, "sh", 1);
        assert_eq!((series.label("arm"), series.observations.len()), (Some("A'"), 3));
        assert!(series.base.is_none() && series.observations.iter().all(|one| one.minor > 0));
    }

    #[test]
    fn a_callback_can_end_the_duel() {
        let (mut seen, options) = (Vec::new(), ProcessOptions { rounds_min: 9, rounds_max: 9, ..quick() });
        let duel = process_duel_while(&[&shell(":"), &shell(":")], &options, |rounds| {
            seen.push(rounds);
            rounds < 2
        });
        assert_eq!((duel.unwrap().rounds.len(), seen), (2, vec![1, 2]));
    }

    #[test]
    fn the_cost_of_a_start_is_subtracted_on_request() {
        let options = ProcessOptions { subtract_nothing: true, ..quick() };
        let duel = process_duel(&[&shell(":"), &shell(":")], &options).unwrap();
        assert!(duel.nothing.wall.min > 0.0 && duel.nothing.wall.n > 1);
        let raw = duel.rounds[0][0].wall_ns;
        assert_eq!(duel.values(ProcessMetric::Wall, 2).next().unwrap()[0], raw - duel.nothing.wall.min);
        assert_eq!(duel.series(ProcessMetric::Wall, "sh", 0).walls()[0], raw - duel.nothing.wall.min);
    }

    #[test]
    fn a_failed_process_ends_the_duel_unless_ignored() {
        let failing = shell("echo the reason >&2; exit 3");
        let error = process_duel(&[&shell(":"), &failing], &quick()).unwrap_err().to_string();
        assert!(error.contains("B (/bin/sh) exited with status 3 and printed: the reason"), "{error}");
        let killed = process_duel(&[&shell("kill -TERM $$"), &shell(":")], &quick()).unwrap_err().to_string();
        assert!(killed.contains("A (/bin/sh) was killed by signal 15"), "{killed}");
        let ignoring = ProcessOptions { ignore_failure: true, ..quick() };
        let duel = process_duel(&[&shell(":"), &failing], &ignoring).unwrap();
        assert_eq!(duel.failures, vec![0, 0, 3]);
    }

    #[test]
    fn different_outputs_end_the_duel() {
        let options = ProcessOptions { output: Output::Equal, ..quick() };
        assert!(process_duel(&[&shell("echo same"), &shell("printf 'same\\n'")], &options).is_ok());
        let error = process_duel(&[&shell("echo same"), &shell("echo some")], &options).unwrap_err();
        assert!(matches!(error, ProcessDuelError::Differs { ref arm, at: 1, .. } if arm == "B"), "{error}");
        let error =
            process_duel(&[&shell("echo same"), &shell("echo same; echo more")], &options).unwrap_err();
        assert!(matches!(error, ProcessDuelError::Differs { at: 5, .. }), "{error}");
    }

    #[test]
    fn every_process_reads_the_input_from_its_beginning() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "line\n").unwrap();
        let input = Some(file.path().to_owned());
        let options = ProcessOptions { output: Output::Equal, input, ..quick() };
        let script = shell("read word; test \"$word\" = line; echo \"$?\"");
        assert!(process_duel(&[&script, &shell("cat >/dev/null; echo 0")], &options).is_ok());
        let missing = ProcessOptions { input: Some("/no/such/file".into()), ..quick() };
        let error = process_duel(&[&script, &script], &missing).unwrap_err();
        assert!(matches!(error, ProcessDuelError::Input { .. }));
    }

    #[test]
    fn a_missing_program_is_reported() {
        let missing = Command { program: "/no/such/program".into(), ..shell(":") };
        let error = process_duel(&[&missing, &shell(":")], &quick()).unwrap_err();
        assert!(matches!(error, ProcessDuelError::Spawn(SpawnError::NotFound(_))), "{error}");
        let nul = Command { argv: vec!["a\0b".into()], ..shell(":") };
        assert!(matches!(
            process_duel(&[&nul, &shell(":")], &quick()),
            Err(ProcessDuelError::Spawn(SpawnError::Nul))
        ));
    }

    #[test]
    fn any_number_of_programs_take_turns() {
        let busy = busy();
        let (a, c) = (shell(":"), shell("exit 0"));
        let duel = process_duel(&[&a, &busy, &c, &busy], &quick()).unwrap();
        assert_eq!((duel.failures.len(), duel.rounds.len()), (5, 3));
        assert!(duel.rounds.iter().all(|round| round.len() == 5));
        assert_eq!(duel.series(ProcessMetric::Wall, "d", 4).label("arm"), Some("D"));
        let ratio =
            |arm| duel.compare(ProcessMetric::Cpu, arm, &Options::default()).unwrap().headline.ratio.estimate;
        assert!(ratio(2) > ratio(3) && ratio(4) > ratio(3), "{} {} {}", ratio(2), ratio(3), ratio(4));
        assert_eq!(process_duel(&[&a], &quick()).unwrap().rounds[0].len(), 2, "one has its control");
    }

    #[test]
    fn the_duel_ends_when_every_interval_is_narrow() {
        let (a, b) = (shell(":"), shell("exit 0"));
        let rounds = |half_width| {
            let until = Some((ProcessMetric::Wall, half_width));
            let options = ProcessOptions { rounds_min: 10, rounds_max: 40, until, ..quick() };
            process_duel(&[&a, &b], &options).unwrap().rounds.len()
        };
        assert_eq!((rounds(1e-9), rounds(100.0)), (40, 10));
    }

    #[test]
    fn steps_surround_every_run() {
        let folder = tempfile::tempdir().unwrap();
        let in_folder = |script: &str| shell(&format!("cd {} && {script}", folder.path().display()));
        let (prepare, conclude) = (|| in_folder("mkdir data"), || in_folder("rmdir data && echo >> ended"));
        let options = ProcessOptions {
            prepare: vec![prepare(), prepare()],
            conclude: vec![conclude(), conclude()],
            ..quick()
        };
        let sees = in_folder("test -d data");
        process_duel(&[&sees, &sees], &options).unwrap();
        let ended = std::fs::read_to_string(folder.path().join("ended")).unwrap();
        assert_eq!(ended.lines().count(), 2 + 3 * 3, "warm-up, and three rounds");

        let fails = shell("echo no data >&2; exit 4");
        let options = ProcessOptions { prepare: vec![prepare(), fails], ..quick() };
        let error = process_duel(&[&in_folder("rmdir data"), &sees], &options).unwrap_err().to_string();
        assert!(
            error.contains("prepare (echo") && error.contains("status 4 and printed: no data"),
            "{error}"
        );
        assert!(step("setup", &shell("exit 1")).is_err() && step("setup", &shell(":")).is_ok());
    }
}
