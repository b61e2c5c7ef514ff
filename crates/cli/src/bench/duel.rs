//! Runs a *duel* for `single.rs` and `versus.rs`: in each round the first program runs twice, others once.

use super::args::{Bench, Metric};
use super::chosen::Chosen;
use super::report::{How, Program, Start};
use super::steps::Steps;
use crate::failure::Failure;
use crate::progress::Progress;
use std::ops::Range;
use std::time::{Duration, Instant};
use vellum_experiment::ArmOrder;
use vellum_experiment::process_duel::{
    CountError, Counter, ProcessDuel, ProcessDuelError, ProcessMetric, ProcessOptions, process_duel,
};
use vellum_kernel::Pid;
use vellum_measure::{Series, TELLING_FROM, median};
use vellum_process::Command;
use vellum_report::units::many;
use vellum_timing::load::{BUSY_FROM, Waited};

/// The fewest rounds, however long they take, unless --rounds gives fewer.
pub(super) const ROUNDS_MIN: usize = 10;
/// The fewest rounds for instruction counts, which hardly vary. Fewer rounds cannot show a difference.
pub(super) const ROUNDS_MIN_COUNTED: usize = TELLING_FROM;
/// Counting ends when the ratios are this precise: half the interval's width, as a logarithm. Programs whose
/// instructions vary, by addresses or the seeds of hash tables, get more rounds.
const COUNTED_WELL: f64 = 0.001;
/// A program that is off the processor for more than this share of its fastest run is waiting; its CPU time
/// hides that.
const OFF_SHARE: f64 = 0.5;
/// The program that counts instructions if the processor cannot.
const VALGRIND: &str = "valgrind";

/// The number of rounds and the time for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) time: Duration,
    /// The exact number of rounds, regardless of time.
    pub(super) rounds: Option<usize>,
    /// End earlier, once the ratios are this precise: half the interval's width, as a logarithm.
    pub(super) until: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Timed {
    pub(super) duel: ProcessDuel,
    pub(super) took: Duration,
    /// The share of time in which a task of the machine waited for a processor, if the kernel reports it.
    pub(super) busy: Option<f64>,
}

/// Runs a duel, with a progress line on the terminal.
pub(super) fn duel(
    args: &Bench,
    programs: &[&Chosen],
    steps: &Steps,
    extent: Extent,
    order: ArmOrder,
    seed: u64,
    what: &str,
) -> Result<Timed, Failure> {
    let defaults = ProcessOptions::default();
    let counted = args.metric == Metric::Instructions;
    let until = extent.until.or((counted && extent.rounds.is_none()).then_some(COUNTED_WELL));
    let options = ProcessOptions {
        clock: args.clock,
        time: extent.time,
        rounds_min: extent.rounds.unwrap_or(if counted { ROUNDS_MIN_COUNTED } else { ROUNDS_MIN }),
        rounds_max: extent.rounds.unwrap_or(defaults.rounds_max),
        warm_up: args.warm_up.map_or(defaults.warm_up, |rounds| rounds as usize),
        order,
        seed,
        output: args.output.into(),
        input: args.input.clone(),
        ignore_failure: args.ignore_failure,
        subtract_nothing: args.subtract_start,
        prepare: steps.each(args.prepare.as_deref(), programs.len()),
        conclude: steps.each(args.conclude.as_deref(), programs.len()),
        until: until.map(|half_width| (args.metric.of_process(), half_width)),
        counter: counter(args)?,
    };
    let commands: Vec<&Command> = programs.iter().map(|program| &program.command).collect();
    let long = match extent.rounds {
        Some(rounds) => format!("{rounds} rounds"),
        None => format!("{} s", extent.time.as_secs_f64().ceil()),
    };
    let line = Progress::start(what, &long);
    let (began, before) = (Instant::now(), Waited::now());
    let duel = process_duel(&commands, &options);
    let (took, busy) = (began.elapsed(), before.and_then(Waited::share_since));
    drop(line);
    Ok(Timed { duel: duel.map_err(failed)?, took, busy })
}

/// The counter of the programs' instructions, if they are counted.
fn counter(args: &Bench) -> Result<Option<Counter>, Failure> {
    if args.metric != Metric::Instructions {
        return Ok(None);
    }
    if !args.under_valgrind() {
        return Ok(Some(Counter::Hardware));
    }
    Counter::valgrind().map(Some).map_err(|error| {
        Failure::because(format!(
            "--counter valgrind: {error}; install valgrind, or use the processor's counter (--counter hardware)"
        ))
    })
}

/// The failure of a duel or of a step.
pub(super) fn failed(error: ProcessDuelError) -> Failure {
    match error {
        // The exit status shows why a program could not be started.
        ProcessDuelError::Spawn(error) => error.into(),
        ProcessDuelError::Count(error @ (CountError::Hardware { .. } | CountError::Shared { .. })) => {
            Failure::because(format!(
                "{error}; --counter valgrind counts instructions wherever valgrind is installed, 4 to 30 times as slowly"
            ))
        }
        other => other.into(),
    }
}

impl Metric {
    pub(super) fn of_process(self) -> ProcessMetric {
        match self {
            Metric::Cpu => ProcessMetric::Cpu,
            Metric::Wall => ProcessMetric::Wall,
            Metric::Instructions => ProcessMetric::Instructions,
        }
    }
}

/// The observations of all arms, by metric; `name` gives the name of an arm.
pub(super) fn all_series(
    args: &Bench,
    duel: &ProcessDuel,
    arms: Range<usize>,
    name: impl Fn(usize) -> String,
) -> Vec<Series> {
    let kinds = args.metrics().iter().filter(|metric| **metric != Metric::Cpu);
    kinds
        .flat_map(|metric| arms.clone().map(|arm| duel.series(metric.of_process(), &name(arm), arm)))
        .collect()
}

/// The conditions under which a duel was run.
pub(super) fn how(args: &Bench, duel: &ProcessDuel, seed: u64, took: Duration) -> How {
    How {
        clock: duel.clock.kind().name().to_owned(),
        step_ns: duel.nothing.wall.step,
        seed: Some(seed),
        rounds: Some(duel.rounds.len()),
        took_ns: took.as_nanos() as u64,
        low_share: args.low,
        order: Some(duel.order.name()),
        metric: Some(args.metric.name()),
        unit: Some(args.metric.unit()),
        counter: (args.metric == Metric::Instructions)
            .then(|| if args.under_valgrind() { VALGRIND } else { "hardware" }),
        ..How::default()
    }
}

/// The cost of starting a process; `None` without times.
pub(super) fn start(args: &Bench, duel: &ProcessDuel) -> Option<Start> {
    let nothing = Some(duel.nothing.clone()).filter(|_| !args.under_valgrind())?;
    let subtracted = args.subtract_start;
    Some(Start { what: nothing.what, wall: nothing.wall, cpu: nothing.cpu, subtracted })
}

/// The report's entry of a program; `arms` are its positions in a round.
pub(super) fn program(
    args: &Bench,
    arm: String,
    name: &str,
    command: &Command,
    duel: &ProcessDuel,
    arms: &[usize],
) -> Program {
    let usages = || duel.rounds.iter().flat_map(|round| arms.iter().map(|arm| round[*arm].usage));
    let middle = |of: &dyn Fn(vellum_process::Usage) -> u64| {
        median(&usages().map(|usage| of(usage) as f64).collect::<Vec<_>>()).unwrap_or_default()
    };
    // Under valgrind the usage includes valgrind's own.
    let own = |value: f64| Some(value).filter(|_| !args.under_valgrind());
    let peak_bytes = middle(&|usage| usage.largest_process.0);
    Program {
        arm,
        name: name.to_owned(),
        path: command.program.display().to_string(),
        command: command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        peak_bytes: own(peak_bytes),
        peak_is_bound: peak_bytes <= own_peak_bytes(),
        faults: own(middle(&|usage| usage.minor_faults + usage.major_faults)),
        failures: arms.iter().map(|arm| duel.failures[*arm]).sum(),
        runs: duel.rounds.len() * arms.len(),
    }
}

pub(super) fn warnings(programs: &[Program], args: &Bench, timed: &Timed) -> Vec<String> {
    let failed = programs.iter().filter(|program| program.failures > 0).map(|program| {
        let runs = many(program.runs as u64, "run");
        format!("{} failed in {} of {runs}, which count like others", program.name, program.failures)
    });
    let runs = timed.duel.rounds.iter().flatten();
    // Other programs make runs longer; the fastest run shows the program's own waiting.
    let quickest = runs.min_by(|a, b| a.wall_ns.total_cmp(&b.wall_ns));
    let off = quickest.map_or(0.0, |run| 1.0 - run.cpu_ns() / run.wall_ns);
    failed.chain(off_processor(args.metric, off, timed.busy)).collect()
}

/// A warning about programs that were off the processor for this share of their fastest run: either they
/// wait, or the machine was busy.
fn off_processor(metric: Metric, off: f64, busy: Option<f64>) -> Option<String> {
    if off <= OFF_SHARE || metric == Metric::Instructions {
        return None;
    }
    let percent = off * 100.0;
    let even =
        format!("even in the quickest run the program was off the processor for {percent:.0} % of the time");
    match (busy.filter(|share| *share >= BUSY_FROM), metric) {
        (Some(share), _) => Some(format!(
            "{even}, and other tasks waited for a processor in {:.0} % of the time: repeat it on an idle machine",
            share * 100.0
        )),
        (None, Metric::Cpu) => {
            Some(format!("{even}, which CPU time does not show; --metric wall compares the whole"))
        }
        (None, _) => None,
    }
}

/// The peak resident memory of this process.
fn own_peak_bytes() -> f64 {
    let status = Pid::me().status().unwrap_or_default();
    status.peak.unwrap_or_default().0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_programs_get_a_hint_to_wall_time_unless_the_machine_is_busy() {
        let said = |metric, off, busy| off_processor(metric, off, busy).unwrap_or_default();
        for quiet in [None, Some(0.01)] {
            assert!(said(Metric::Cpu, 0.9, quiet).contains("--metric wall"));
            assert_eq!(said(Metric::Wall, 0.9, quiet), "");
        }
        let loaded = said(Metric::Cpu, 0.9, Some(0.97));
        assert!(loaded.contains("97 %") && !loaded.contains("--metric"), "{loaded}");
        assert_eq!(said(Metric::Cpu, 0.2, Some(0.97)), "");
        assert_eq!(said(Metric::Instructions, 0.9, Some(0.97)), "", "waiting executes nothing");
    }
}
