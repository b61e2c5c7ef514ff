//! Two suites of benchmarks compared: those of a framework, each benchmark by itself, by turns in random
//! order.
//!
//! ```text
//! list A, list B ─▶ in both: compared · in A alone: removed · in B alone: added
//!
//! round 1:  sum: B A A'   parse: A A' B   …      benchmarks in random order, and the arms of each
//! round 2:  parse: A' B A   sum: B A' A   …
//!           └ one call: the suite runs this benchmark alone, shortly; the low quantile of its
//!             samples is the turn's figure
//! ```
//!
//! Frameworks compare with what they saved before, so the pace of the machine is in every difference they
//! show. Here the arms of a benchmark follow each other within a second, and all that a [process
//! duel](crate::process_duel) promises holds for every benchmark: a figure a run, ratios within rounds, and
//! A against A beside them.
//!
//! **One figure a run.** Samples of one process have the same addresses, the same layout of its heap, and
//! neighbours in time: they are no independent evidence. Processes are. So a run is short, and there are
//! many.
//!
//! A benchmark that fails is left out from the round in which it failed, and named; the others go on.
//!
//! Invariant: every round of a benchmark has its three arms.

mod adapter;
mod call;
mod criterion;
mod error;
mod google;
mod pytest;

pub use adapter::{Framework, Sample};
pub use call::Suite;
pub use error::SuiteError;

use crate::arms::{ARMS, THING, arm_name};
use crate::process_duel::{ended, said, step};
use crate::{ArmOrder, Executor, Experiment, Orders, Stop, Turn};
use call::last_words;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vellum_measure::{
    CompareError, Comparison, Interval, Machine, Observation, Options, Plan, Series, quantile,
};
use vellum_process::{Command, Interrupt, Outcome, make_children_waitable};
use vellum_timing::clock::monotonic_ns;

/// What the two suites are called.
const SUITES: [&str; 2] = ["A", "B"];
/// Names that a message has of each list.
const NAMES_SHOWN: usize = 8;

/// How suites are compared.
#[derive(Debug)]
pub struct SuiteOptions {
    /// What they are written with.
    pub framework: Framework,
    /// Only benchmarks whose names contain this.
    pub only: Option<String>,
    /// Whether CPU time is compared; elapsed time, if not.
    pub by_cpu: bool,
    /// The share of a run's samples below its figure.
    pub low_share: f64,
    /// How long to go on.
    pub time: Duration,
    /// How many rounds at least, even if the time is over.
    pub rounds_min: usize,
    /// How many rounds at most.
    pub rounds_max: usize,
    /// How many rounds beforehand, thrown away.
    pub warm_up: usize,
    /// Where the random orders come from.
    pub seed: u64,
    /// To end as soon as every ratio is known this well: half the interval's width, as a logarithm.
    pub until: Option<f64>,
    /// What to run before every run, one command for each suite; none if empty.
    pub prepare: Vec<Command>,
    /// What to run after every run, likewise.
    pub conclude: Vec<Command>,
}

/// One run of a benchmark: the figures of its samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuiteRun {
    /// When it was started, nanoseconds of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// The low quantile of its samples, nanoseconds an iteration.
    pub low: Sample,
}

/// A benchmark that both suites have.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// Its name in both.
    pub name: String,
    /// Complete rounds, each with its arms A, A', B.
    pub rounds: Vec<[SuiteRun; 3]>,
    /// Why it was left out, for each suite in which it failed.
    pub failed: [Option<String>; 2],
}

impl Benchmark {
    /// Whether it failed in neither suite.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.failed.iter().all(Option::is_none)
    }

    /// Which suites it failed in, and why, in words; nothing if in none.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let [a, b] = &self.failed;
        let why = a.as_ref().or(b.as_ref())?;
        let only = |suite: usize| format!("{} alone", SUITES[suite]);
        let arms = match (a, b) {
            (Some(_), Some(_)) => "A and B".to_owned(),
            (Some(_), None) => only(0),
            _ => only(1),
        };
        Some(format!("{} failed in {arms}: {why}", self.name))
    }
}

/// What came of two suites.
#[derive(Debug)]
pub struct SuiteDuel {
    /// Those in both, in the order of A.
    pub benchmarks: Vec<Benchmark>,
    /// Those in A alone.
    pub removed: Vec<String>,
    /// Those in B alone.
    pub added: Vec<String>,
    by_cpu: bool,
    machine: Machine,
}

impl SuiteDuel {
    /// B against A for one benchmark, with A against A beside it.
    ///
    /// # Errors
    /// As for [`Comparison::of`].
    pub fn compare(&self, benchmark: &Benchmark, options: &Options) -> Result<Comparison, CompareError> {
        compared(benchmark, self.by_cpu, options)
    }

    /// One arm's figures of a benchmark as observations.
    #[must_use]
    pub fn series(&self, benchmark: &Benchmark, arm: usize) -> Series {
        let observation = |round: &[SuiteRun; 3]| {
            let run = &round[arm];
            let (wall_ns, cpu_ns) = (run.low.wall_ns, run.low.cpu_ns);
            Observation { start_ns: run.start_ns, wall_ns, cpu_ns, ..Observation::default() }
        };
        Series {
            name: benchmark.name.clone(),
            labels: vec![format!("arm={}", arm_name(arm)), format!("order={}", ArmOrder::Random.name())],
            machine: Some(self.machine.clone()),
            observations: benchmark.rounds.iter().map(observation).collect(),
            ..Series::default()
        }
    }
}

fn compared(benchmark: &Benchmark, by_cpu: bool, options: &Options) -> Result<Comparison, CompareError> {
    let value = |run: SuiteRun| run.low.cpu_ns.filter(|_| by_cpu).unwrap_or(run.low.wall_ns);
    crate::arms::compare(benchmark.rounds.iter().map(|round| round.map(value)), options.step, options)
}

/// Lets the benchmarks of two suites run by turns, those of the first twice a round. `tick` learns the
/// number of complete rounds.
///
/// An [`Interrupt`] that arrives ends it early, with the rounds that are complete.
///
/// # Errors
/// When a suite lists no benchmarks, the two have none in common, or all fail.
pub fn suite_duel(
    suites: [&Suite; 2],
    options: &SuiteOptions,
    tick: impl FnMut(usize),
) -> Result<SuiteDuel, SuiteError> {
    make_children_waitable();
    let home = tempfile::Builder::new().prefix("vellum-suites-").tempdir();
    let home = home.map_err(|source| SuiteError::Folder { folder: std::env::temp_dir(), source })?;
    let mut runs = Runs {
        suites,
        words: suites.map(Suite::words),
        options,
        folder: home.path().join("run"),
        _home: home,
        orders: Orders::new(ArmOrder::Random, ARMS.len(), options.seed.wrapping_add(1)),
        duel: SuiteDuel {
            benchmarks: Vec::new(),
            removed: Vec::new(),
            added: Vec::new(),
            by_cpu: options.by_cpu,
            machine: vellum_timing::machine::read(),
        },
        rounds: 0,
        tick,
    };
    let lists = [runs.list(0)?, runs.list(1)?];
    runs.match_up(lists)?;
    let (most, count) = (options.rounds_max.max(1), runs.duel.benchmarks.len());
    let least = options.rounds_min.clamp(1, most);
    for benchmark in (0..options.warm_up).flat_map(|_| 0..count) {
        match runs.round_of(benchmark) {
            Err(SuiteError::Interrupted { .. }) => break,
            ran => ran?,
        }
    }
    runs.duel.benchmarks.iter_mut().for_each(|benchmark| benchmark.rounds.clear());
    let stop = match options.until {
        Some(half_width) => Stop::Narrow(Plan {
            rounds_min: least,
            rounds_max: most,
            ..Plan::new(half_width, u64::try_from(options.time.as_nanos()).unwrap_or(u64::MAX))
        }),
        None => Stop::Time { time: options.time, least, most },
    };
    Experiment::new(ArmOrder::Random, count, options.seed).run(&stop, &mut runs)?;
    let duel = runs.duel;
    if duel.benchmarks.iter().any(|benchmark| benchmark.is_whole() && !benchmark.rounds.is_empty()) {
        return Ok(duel);
    }
    match (Interrupt::arrived(), duel.benchmarks.iter().find_map(Benchmark::failure)) {
        (Some(signal), _) => Err(SuiteError::Interrupted { signal }),
        (None, first) => Err(SuiteError::AllFailed { first: first.unwrap_or_default() }),
    }
}

/// Runs benchmarks; to the experiment, each of them is an arm.
struct Runs<'a, F> {
    suites: [&'a Suite; 2],
    words: [Vec<String>; 2],
    options: &'a SuiteOptions,
    /// What a call writes.
    folder: PathBuf,
    _home: TempDir,
    /// The orders of A, A' and B.
    orders: Orders,
    duel: SuiteDuel,
    rounds: usize,
    tick: F,
}

impl<F> Runs<'_, F> {
    /// The benchmarks of one suite.
    fn list(&self, thing: usize) -> Result<Vec<String>, SuiteError> {
        let (suite, framework) = (self.suites[thing], self.options.framework);
        let adapter = framework.adapter();
        let (called, needs) = (SUITES[thing], adapter.needs());
        let program = suite.command.program.display().to_string();
        let outcome = adapter.list(&self.words[thing], &self.folder).run(suite, &self.folder)?;
        let names = adapter.names(&self.folder);
        // pytest says so with a status of its own.
        let empty = names.as_ref().is_ok_and(Vec::is_empty);
        if outcome != Outcome::Exited(0) && !(empty && outcome == Outcome::Exited(pytest::NO_TESTS)) {
            let last = last_words(&self.folder);
            return Err(SuiteError::NotListed { suite: called, program, framework, outcome, last, needs });
        }
        match names {
            Ok(names) if names.is_empty() => {
                Err(SuiteError::Empty { suite: called, program, framework, needs })
            }
            Ok(names) => Ok(names),
            Err(why) => Err(SuiteError::Unreadable { suite: called, program, framework, why, needs }),
        }
    }

    /// Which benchmarks are compared, and which are in one suite alone.
    fn match_up(&mut self, [a, b]: [Vec<String>; 2]) -> Result<(), SuiteError> {
        let chosen = |names: &[String]| -> Vec<String> {
            let has = |name: &&String| self.options.only.as_ref().is_none_or(|only| name.contains(only));
            names.iter().filter(has).cloned().collect()
        };
        let (in_a, in_b) = (chosen(&a), chosen(&b));
        if let (Some(only), true, true) = (&self.options.only, in_a.is_empty(), in_b.is_empty()) {
            return Err(SuiteError::NoneChosen { only: only.clone(), names: shown(&a) });
        }
        let (common, removed): (Vec<String>, Vec<String>) =
            in_a.into_iter().partition(|name| in_b.contains(name));
        if common.is_empty() {
            return Err(SuiteError::NothingCommon { a: shown(&removed), b: shown(&in_b) });
        }
        let added = in_b.into_iter().filter(|name| !common.contains(name)).collect();
        let benchmark = |name| Benchmark { name, rounds: Vec::new(), failed: [None, None] };
        let benchmarks = common.into_iter().map(benchmark).collect();
        self.duel = SuiteDuel { benchmarks, removed, added, machine: self.duel.machine.clone(), ..self.duel };
        Ok(())
    }

    /// Runs the three arms of a benchmark, and keeps them if all went well.
    fn round_of(&mut self, benchmark: usize) -> Result<(), SuiteError> {
        if !self.duel.benchmarks[benchmark].is_whole() {
            return Ok(());
        }
        let mut runs = [None; 3];
        let order = self.orders.draw().to_vec();
        // Also after a failure: whether the other suite has it too is worth knowing.
        for arm in order {
            let thing = THING[arm];
            match self.run_once(thing, benchmark)? {
                Ok(run) => runs[arm] = Some(run),
                Err(why) => self.duel.benchmarks[benchmark].failed[thing] = Some(why),
            }
        }
        if let [Some(a), Some(control), Some(b)] = runs {
            self.duel.benchmarks[benchmark].rounds.push([a, control, b]);
        }
        Ok(())
    }

    /// Runs one benchmark of one suite; inside, why it failed.
    fn run_once(&self, thing: usize, benchmark: usize) -> Result<Result<SuiteRun, String>, SuiteError> {
        let adapter = self.options.framework.adapter();
        let name = &self.duel.benchmarks[benchmark].name;
        let around = |what, steps: &[Command]| match steps.get(thing).map(|command| step(what, command)) {
            Some(Err(_)) if Interrupt::arrived().is_some() => {
                Err(SuiteError::Interrupted { signal: Interrupt::arrived().unwrap_or_default() })
            }
            Some(ran) => Ok(ran?),
            None => Ok(()),
        };
        around("prepare", &self.options.prepare)?;
        let start_ns = monotonic_ns();
        let outcome =
            adapter.run(&self.words[thing], name, &self.folder).run(self.suites[thing], &self.folder);
        around("conclude", &self.options.conclude)?;
        match outcome? {
            Outcome::Exited(0) => {}
            outcome => return Ok(Err(format!("it {}{}", ended(&outcome), said(&last_words(&self.folder))))),
        }
        let low = adapter.samples(&self.folder).and_then(|samples| self.low(&samples));
        Ok(low.map(|low| SuiteRun { start_ns, low }))
    }

    /// The figure of a run.
    fn low(&self, samples: &[Sample]) -> Result<Sample, String> {
        let low = |values: Option<Vec<f64>>| quantile(&values?, self.options.low_share);
        let wall = low(Some(samples.iter().map(|one| one.wall_ns).collect())).ok_or("it has no samples")?;
        Ok(Sample { wall_ns: wall, cpu_ns: low(samples.iter().map(|one| one.cpu_ns).collect()) })
    }
}

impl<F: FnMut(usize)> Executor for Runs<'_, F> {
    type Error = SuiteError;

    fn run(&mut self, turn: Turn) -> Result<(), SuiteError> {
        match self.round_of(turn.arm) {
            // The experiment sees the signal, and ends.
            Err(SuiteError::Interrupted { .. }) => Ok(()),
            ran => ran,
        }
    }

    fn goes_on(&mut self) -> bool {
        self.rounds += 1;
        (self.tick)(self.rounds);
        self.duel.benchmarks.iter().any(Benchmark::is_whole)
    }

    /// None, before there are as many rounds as there must be: they are run however long they take.
    fn spent(&self, began: Instant) -> Duration {
        if self.rounds < self.options.rounds_min { Duration::ZERO } else { began.elapsed() }
    }

    /// The widest of the intervals: all are to be narrow enough.
    fn interval(&self) -> Option<Interval> {
        let whole = self.duel.benchmarks.iter().filter(|benchmark| benchmark.is_whole());
        let ratio = |benchmark| {
            Some(compared(benchmark, self.options.by_cpu, &Options::default()).ok()?.headline.ratio)
        };
        let ratios: Option<Vec<Interval>> = whole.map(ratio).collect();
        ratios?.into_iter().max_by(|a, b| (a.high / a.low).total_cmp(&(b.high / b.low)))
    }
}

/// Some names of a list, and how many more there are.
fn shown(names: &[String]) -> String {
    let first = names[..names.len().min(NAMES_SHOWN)].join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
