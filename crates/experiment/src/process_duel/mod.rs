//! Programs timed against each other, process by process, by turns in random order.
//!
//! ```text
//! nothing × 20 ─▶ warm-up ─▶ round 1: B A A'   round 2: A' B A   …   until the time is over
//!                             │
//!                             └ posix_spawn ─▶ wait4: wall, user, system, faults, switches, how it ended
//! ```
//!
//! The same rules as for a [duel](crate::duel) in one process: every program once a round and the first one
//! twice, so that the control stands beside every answer. The figure to trust is CPU time: other programs on
//! the machine change it ten times less than wall time.
//!
//! What starting a process costs by itself is measured on a program that does nothing and given with the
//! result. It is subtracted only if asked: every start of a program pays it.
//!
//! Steps before and after each run ([`ProcessOptions::prepare`] and [`conclude`](ProcessOptions::conclude))
//! are not timed.
//!
//! A process that fails is no measurement: the duel ends with its status and its last words, unless failures
//! are to be ignored. With [`Output::Equal`] so it does when two processes write different things, because
//! then they did not do the same work.
//!
//! Source: Bates times operations inside one system; comparing whole programs, and everything here, is ours.

mod error;
mod nothing;
mod output;
mod spawn;
mod steps;

pub use error::ProcessDuelError;
pub use spawn::ProcessRun;
pub use steps::{StepError, step};

use crate::arms::{self, arm_name, thing_of};
use crate::{ArmOrder, Executor, Experiment, Stop, Turn};
use nothing::Nothing;
use output::Streams;
use spawn::Prepared;
use std::path::PathBuf;
use std::time::Duration;
use steps::Steps;
use vellum_measure::{Base, CompareError, Comparison, Interval, Observation, Options, Plan, Sample, Series};
use vellum_process::{Command, Interrupt, Outcome, make_children_waitable};
use vellum_timing::clock::{Clock, ClockKind};

/// Rounds of processes kept at most.
pub const PROCESS_ROUNDS_MAX: usize = 1 << 20;
/// How often nothing is run.
const NOTHINGS: usize = 20;

/// What becomes of what the processes write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Output {
    /// Standard output goes to `/dev/null`. Some programs notice, and work less.
    #[default]
    Discard,
    /// It is kept in memory, and must be the same for every process.
    Equal,
    /// It goes where ours goes.
    Inherit,
}

/// How programs are compared.
#[derive(Debug)]
pub struct ProcessOptions {
    /// The clock of wall times; the [best](Clock::best) there is, if none.
    pub clock: Option<ClockKind>,
    /// How long to go on, warm-up not counted.
    pub time: Duration,
    /// How many rounds at least, even if the time is over.
    pub rounds_min: usize,
    /// How many rounds at most.
    pub rounds_max: usize,
    /// How many rounds beforehand, thrown away.
    pub warm_up: usize,
    /// In which order the arms run.
    pub order: ArmOrder,
    /// Where the random orders come from.
    pub seed: u64,
    /// What becomes of what they write.
    pub output: Output,
    /// What they read; nothing, if none. Wound back for each.
    pub input: Option<PathBuf>,
    /// Whether processes that fail count like others.
    pub ignore_failure: bool,
    /// Whether the cost of running nothing is subtracted from times.
    pub subtract_nothing: bool,
    /// What to run before every run, one command for each program; none if empty.
    pub prepare: Vec<Command>,
    /// What to run after every run, likewise.
    pub conclude: Vec<Command>,
    /// To end as soon as every program's ratio to the first is known this well: half the interval's width,
    /// as a logarithm, and of which time.
    pub until: Option<(ProcessTime, f64)>,
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
        }
    }
}

/// What running nothing costs.
#[derive(Clone, Debug, PartialEq)]
pub struct NothingCost {
    /// What ran, for people.
    pub what: &'static str,
    /// Wall time, nanoseconds.
    pub wall: Base,
    /// User and system time, nanoseconds.
    pub cpu: Base,
}

/// One round: how each arm went, A, A', B and so on.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessRound {
    /// The runs by arm: the first program's two, then one of each other program.
    pub runs: Vec<ProcessRun>,
    /// The arms in the order in which they ran.
    pub order: Vec<usize>,
}

/// What a duel of processes gave: every round, in order.
#[derive(Clone, Debug)]
pub struct ProcessDuel {
    /// The rounds.
    pub rounds: Vec<ProcessRound>,
    /// What running nothing costs.
    pub nothing: NothingCost,
    /// How many processes of each arm failed.
    pub failures: Vec<usize>,
    clock: Clock,
    order: ArmOrder,
    subtract_nothing: bool,
}

/// Which of a process's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessTime {
    /// From its start to its end.
    Wall,
    /// User and system time.
    Cpu,
}

/// Lets programs run by turns, the first one twice a round. Their `stdio` is not used: see
/// [`ProcessOptions::output`].
///
/// # Errors
/// When a program cannot be started, fails, or writes something else than the first did (where that is
/// asked).
pub fn process_duel(
    programs: &[&Command],
    options: &ProcessOptions,
) -> Result<ProcessDuel, ProcessDuelError> {
    process_duel_while(programs, options, |_| true)
}

/// The same, for as long as `go_on` says so of the rounds there are: it is asked after each, and may show how
/// far it is.
///
/// An [`Interrupt`] that arrives ends it early, with the rounds that are complete.
///
/// # Errors
/// As for [`process_duel`].
pub fn process_duel_while(
    programs: &[&Command],
    options: &ProcessOptions,
    go_on: impl FnMut(&[ProcessRound]) -> bool,
) -> Result<ProcessDuel, ProcessDuelError> {
    make_children_waitable();
    let clock = options.clock.map_or_else(Clock::best, Clock::open)?;
    let things = programs.iter().map(|program| Prepared::new(program)).collect::<Result<_, _>>()?;
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
    let mut processes = Processes {
        programs,
        things,
        streams: Streams::open(options.output, options.input.as_deref())?,
        steps: Steps::new(&options.prepare, &options.conclude)?,
        ignore_failure: options.ignore_failure,
        duel,
        order: Vec::with_capacity(arms),
        runs: vec![None; arms],
        decides: options.until.map_or(ProcessTime::Cpu, |(time, _)| time),
        go_on,
    };
    for _ in 0..options.warm_up {
        for arm in (0..arms).filter(|arm| *arm != DOUBLE) {
            processes.once(arm)?;
        }
    }
    let most = options.rounds_max.clamp(1, PROCESS_ROUNDS_MAX);
    let least = options.rounds_min.clamp(1, most);
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
        (Some(signal), duel) if duel.rounds.is_empty() => Err(ProcessDuelError::Interrupted { signal }),
        // The rounds that are complete are worth having.
        (_, duel) => Ok(duel),
    }
}

/// The arm that is the first program once more.
const DOUBLE: usize = 1;

/// Runs programs as processes of their own.
struct Processes<'a, F> {
    programs: &'a [&'a Command],
    things: Vec<Prepared>,
    streams: Streams,
    steps: Steps,
    ignore_failure: bool,
    duel: ProcessDuel,
    /// Of the round under way: the arms by place, the runs by arm.
    order: Vec<usize>,
    runs: Vec<Option<ProcessRun>>,
    /// The time whose interval ends it.
    decides: ProcessTime,
    go_on: F,
}

impl<F> Processes<'_, F> {
    /// Runs an arm, and says whether it failed.
    fn once(&mut self, arm: usize) -> Result<(ProcessRun, bool), ProcessDuelError> {
        let thing = thing_of(arm);
        self.steps.before(thing, &self.duel.clock)?;
        let run = self.things[thing].run(&self.duel.clock, self.streams.ready()?);
        self.steps.after(thing, &self.duel.clock)?;
        let run = run?;
        if let Some(signal) = Interrupt::arrived() {
            return Err(ProcessDuelError::Interrupted { signal });
        }
        let program = || self.programs[thing].program.display().to_string();
        let failed = run.outcome != Outcome::Exited(0);
        if failed && !self.ignore_failure {
            let (outcome, last) = (run.outcome, self.streams.last_words());
            return Err(ProcessDuelError::Failed { arm: arm_name(arm), program: program(), outcome, last });
        }
        match self.streams.difference()? {
            Some(at) => Err(ProcessDuelError::Differs { arm: arm_name(arm), program: program(), at }),
            None => Ok((run, failed)),
        }
    }
}

impl<F: FnMut(&[ProcessRound]) -> bool> Executor for Processes<'_, F> {
    type Error = ProcessDuelError;

    fn run(&mut self, Turn { place, arm, .. }: Turn) -> Result<(), ProcessDuelError> {
        match self.once(arm) {
            // The experiment sees the signal, and ends.
            Err(ProcessDuelError::Interrupted { .. }) => {}
            ran => {
                let (run, failed) = ran?;
                self.order.truncate(place);
                self.order.push(arm);
                self.runs[arm] = Some(run);
                self.duel.failures[arm] += usize::from(failed);
            }
        }
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        // A complete round has every arm once.
        if let Some(runs) = self.runs.iter().copied().collect() {
            self.duel.rounds.push(ProcessRound { runs, order: self.order.clone() });
        }
        (self.go_on)(&self.duel.rounds)
    }

    /// The widest of the intervals: all are to be narrow enough.
    fn interval(&self) -> Option<Interval> {
        let options = Options::default();
        let ratio = |arm| Some(self.duel.compare(self.decides, arm, &options).ok()?.headline.ratio);
        let ratios: Option<Vec<Interval>> = (DOUBLE + 1..self.runs.len()).map(ratio).collect();
        ratios?.into_iter().max_by(|a, b| (a.high / a.low).total_cmp(&(b.high / b.low)))
    }
}

/// Runs nothing some times.
fn time_nothing(clock: &Clock) -> Result<NothingCost, ProcessDuelError> {
    let mut streams = Streams::open(Output::Discard, None)?;
    let mut nothing = Nothing::new().unwrap_or_else(|_| Nothing::stand_in());
    // The first run also shows whether it can be run at all.
    if Prepared::bare(&nothing.path).run(clock, streams.ready()?).is_err() {
        nothing = Nothing::stand_in();
    }
    let prepared = Prepared::bare(&nothing.path);
    let (mut wall, mut cpu) = (Sample::new(NOTHINGS), Sample::new(NOTHINGS));
    for _ in 0..NOTHINGS {
        let run = prepared.run(clock, streams.ready()?)?;
        wall.add(run.wall_ns);
        cpu.add(run.cpu_ns());
    }
    let step = clock.step_ns();
    match (Base::with_step("process-wall", &wall, step), Base::with_step("process-cpu", &cpu, CPU_STEP_NS)) {
        (Some(wall), Some(cpu)) => Ok(NothingCost { what: nothing.what, wall, cpu }),
        _ => unreachable!("durations are finite and never negative"),
    }
}

/// The kernel accounts processes' times in microseconds.
const CPU_STEP_NS: f64 = 1000.0;

impl ProcessDuel {
    /// In which order the arms ran.
    #[must_use]
    pub fn order(&self) -> ArmOrder {
        self.order
    }

    /// Each round's time of one kind, nanoseconds: A, A' and the program of this arm; less what running
    /// nothing costs, if that was asked.
    pub fn times(&self, time: ProcessTime, arm: usize) -> impl Iterator<Item = [f64; 3]> {
        let base = match time {
            ProcessTime::Wall => self.nothing.wall.min,
            ProcessTime::Cpu => self.nothing.cpu.min,
        };
        let base = if self.subtract_nothing { base } else { 0.0 };
        self.rounds.iter().map(move |round| {
            [0, DOUBLE, arm].map(|arm| match time {
                ProcessTime::Wall => round.runs[arm].wall_ns - base,
                ProcessTime::Cpu => round.runs[arm].cpu_ns() - base,
            })
        })
    }

    /// The program of this arm against the first one, with A' against A beside it. The step of the time is
    /// filled in.
    ///
    /// # Errors
    /// As for [`Comparison::of`].
    pub fn compare(
        &self,
        time: ProcessTime,
        arm: usize,
        options: &Options,
    ) -> Result<Comparison, CompareError> {
        arms::compare(self.times(time, arm), self.step_ns(time), options)
    }

    /// How finely times can differ, nanoseconds: the clock's step, or the kernel's for CPU time.
    #[must_use]
    pub fn step_ns(&self, time: ProcessTime) -> f64 {
        match time {
            ProcessTime::Wall => self.clock.step_ns(),
            ProcessTime::Cpu => CPU_STEP_NS,
        }
    }

    /// One arm's processes as a series of observations. It has bases if subtracting was asked.
    #[must_use]
    pub fn series(&self, name: &str, arm: usize) -> Series {
        let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let observation = |round: &ProcessRound| {
            let run = &round.runs[arm];
            Observation {
                start_ns: run.start_ns,
                wall_ns: run.wall_ns,
                cpu_ns: Some(run.cpu_ns()),
                minor: count(run.usage.minor_faults),
                major: count(run.usage.major_faults),
                voluntary: count(run.usage.voluntary_switches),
                involuntary: count(run.usage.involuntary_switches),
                steal_ns: None,
            }
        };
        Series {
            base: self.subtract_nothing.then(|| self.nothing.wall.clone()),
            cpu_base: self.subtract_nothing.then(|| self.nothing.cpu.clone()),
            observations: self.rounds.iter().map(observation).collect(),
            ..arms::series(name, arm, self.order, &self.clock)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use vellum_process::SpawnError;

    fn shell(script: &str) -> Command {
        Command {
            program: "/bin/sh".into(),
            argv: ["sh", "-c", script].map(OsString::from).into(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            stdio: [None, None, None],
        }
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
            let starts = |arm: &usize| round.runs[*arm].start_ns;
            assert!(round.order.is_sorted_by_key(starts), "{round:?}");
            assert!(round.runs.iter().all(|run| run.wall_ns > 0.0 && run.usage.minor_faults > 0));
        }
        let series = duel.series("sh", 1);
        assert_eq!((series.label("arm"), series.observations.len()), (Some("A'"), 3));
        assert!(series.base.is_none() && series.observations.iter().all(|one| one.minor > 0));
    }

    #[test]
    fn whoever_watches_may_end_it() {
        let (mut seen, options) = (Vec::new(), ProcessOptions { rounds_min: 9, rounds_max: 9, ..quick() });
        let duel = process_duel_while(&[&shell(":"), &shell(":")], &options, |rounds| {
            seen.push(rounds.len());
            rounds.len() < 2
        });
        assert_eq!((duel.unwrap().rounds.len(), seen), (2, vec![1, 2]));
    }

    #[test]
    fn nothing_costs_something_and_is_subtracted_if_asked() {
        let options = ProcessOptions { subtract_nothing: true, ..quick() };
        let duel = process_duel(&[&shell(":"), &shell(":")], &options).unwrap();
        assert!(duel.nothing.wall.min > 0.0 && duel.nothing.wall.n == NOTHINGS as u64);
        let raw = duel.rounds[0].runs[0].wall_ns;
        assert_eq!(duel.times(ProcessTime::Wall, 2).next().unwrap()[0], raw - duel.nothing.wall.min);
        assert_eq!(duel.series("sh", 0).walls()[0], raw - duel.nothing.wall.min);
    }

    #[test]
    fn a_process_that_fails_ends_it_unless_that_is_ignored() {
        let failing = shell("echo the reason >&2; exit 3");
        let error = process_duel(&[&shell(":"), &failing], &quick()).unwrap_err().to_string();
        assert!(error.contains("B (/bin/sh) exited with status 3 and said: the reason"), "{error}");
        let killed = process_duel(&[&shell("kill -TERM $$"), &shell(":")], &quick()).unwrap_err().to_string();
        assert!(killed.contains("A (/bin/sh) was killed by signal 15"), "{killed}");
        let ignoring = ProcessOptions { ignore_failure: true, ..quick() };
        let duel = process_duel(&[&shell(":"), &failing], &ignoring).unwrap();
        assert_eq!(duel.failures, vec![0, 0, 3]);
    }

    #[test]
    fn outputs_may_have_to_be_equal() {
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
    fn a_program_that_is_not_there_is_named() {
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
    fn cpu_time_is_charged_to_the_arm_that_works() {
        let busy = shell("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done");
        let duel = process_duel(&[&shell(":"), &busy], &quick()).unwrap();
        let sums =
            duel.times(ProcessTime::Cpu, 2).fold([0.0; 3], |sum, cpu| [0, 1, 2].map(|i| sum[i] + cpu[i]));
        assert!(sums[2] > sums[0] && sums[2] > sums[1], "{sums:?}");
        let found = duel.compare(ProcessTime::Cpu, 2, &Options::default()).unwrap();
        assert!(found.rounds == 3 && found.headline.ratio.estimate > 1.0, "{found:?}");
    }

    #[test]
    fn any_number_of_programs_take_turns() {
        let busy = shell("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done");
        let (a, c) = (shell(":"), shell("exit 0"));
        let duel = process_duel(&[&a, &busy, &c, &busy], &quick()).unwrap();
        assert_eq!((duel.failures.len(), duel.rounds.len()), (5, 3));
        for round in &duel.rounds {
            let mut arms = round.order.clone();
            arms.sort_unstable();
            assert_eq!((arms, round.runs.len()), ((0..5).collect::<Vec<_>>(), 5));
        }
        assert_eq!(duel.series("d", 4).label("arm"), Some("D"));
        let ratio =
            |arm| duel.compare(ProcessTime::Cpu, arm, &Options::default()).unwrap().headline.ratio.estimate;
        assert!(ratio(2) > ratio(3) && ratio(4) > ratio(3), "{} {} {}", ratio(2), ratio(3), ratio(4));
        assert_eq!(process_duel(&[&a], &quick()).unwrap().rounds[0].runs.len(), 2, "one has its control");
    }

    #[test]
    fn it_ends_when_every_answer_is_narrow_enough() {
        let (a, b) = (shell(":"), shell("exit 0"));
        let rounds = |half_width| {
            let until = Some((ProcessTime::Wall, half_width));
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
            error.contains("prepare (echo no data") && error.contains("status 4 and said: no data"),
            "{error}"
        );
        assert!(step("setup", &shell("exit 1")).is_err() && step("setup", &shell(":")).is_ok());
    }
}
