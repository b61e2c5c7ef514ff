//! Suites of a framework against each other: a row a benchmark.
//!
//! `A` and `B` are the command before and behind `--vs`, or one command in two revisions of its sources. A
//! command that is `cargo bench` stands for the executable that cargo builds of it.

use super::args::{Bench, Metric};
use super::cargo;
use super::duel::{Extent, ROUNDS_MIN, line};
use super::failure::BenchFailure;
use super::parameters::settings;
use super::programs::{Chosen, found, split};
use super::report::{Apart, FailedBenchmark, Held, How, Kind, Program, Report, Versus};
use super::revision::Revision;
use super::steps::Steps;
use super::words::verdict;
use crate::failure::Failure;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vellum_experiment::suite_duel::{Benchmark, Framework, SuiteDuel, SuiteOptions, suite_duel};
use vellum_experiment::{ARMS, ArmOrder, arm_name};
use vellum_measure::{Comparison, Options, Unit};

/// Rounds kept at most.
const ROUNDS_MAX: usize = 100_000;
/// B's place among the arms.
const B: usize = 2;

/// Compares the suites' benchmarks.
pub(super) fn run(args: &Bench, framework: Framework) -> Result<Report, Failure> {
    if args.metric == Metric::Instructions {
        const WHY: &str =
            "--framework compares the times that the framework measures; leave --metric instructions out";
        return Err(BenchFailure::Options(WHY).into());
    }
    let mut settings = settings(&[], args.command.iter().map(OsString::as_os_str))?;
    let lines = split(&args.command, &args.separator)?;
    let mut programs: Vec<Chosen> =
        lines.iter().map(|line| found(line, &settings[0])).collect::<Result<_, _>>()?;
    let mut folders: Vec<Option<PathBuf>> = vec![None; programs.len()];
    // Kept until the end, when what it built is removed.
    let revision =
        args.vs_ref.as_deref().map(|name| Revision::build(name, args.build.as_deref())).transpose()?;
    match (&revision, &programs[..]) {
        (Some(revision), [here]) => {
            let (there, folder) = revision.suite(here)?;
            programs.insert(0, there);
            folders.insert(0, Some(folder));
        }
        (None, [_, _]) => {}
        _ => {
            const TWO: &str =
                "--framework compares two suites: add one other behind --vs, or a revision with --vs-ref";
            return Err(BenchFailure::Options(TWO).into());
        }
    }
    settings.resize(2, settings[0].clone());
    let suites = cargo::resolved(framework, &programs, folders)?;
    let steps = Steps::begin(args, settings)?;
    let seed = args.seed_or_fresh();
    let rounds = args.rounds.map(|rounds| rounds as usize);
    let extent = Extent { time: args.time_or_default(), rounds, until: args.until };
    let metric = if framework.gives_cpu() { args.metric } else { Metric::Wall };
    let options = SuiteOptions {
        framework,
        only: args.only.clone(),
        by_cpu: metric == Metric::Cpu,
        low_share: args.low,
        time: extent.time,
        rounds_min: rounds.unwrap_or(ROUNDS_MIN),
        rounds_max: rounds.unwrap_or(ROUNDS_MAX),
        warm_up: args.warm_up.unwrap_or(0) as usize,
        seed,
        until: args.until,
        prepare: steps.prepare(2),
        conclude: steps.conclude(2),
    };
    let line = line("listing benchmarks", extent);
    let began = Instant::now();
    let pair = [&suites[0], &suites[1]];
    let duel = suite_duel(pair, &options, |rounds| line.set_message(format!("round {}", rounds + 1)));
    let took = began.elapsed();
    line.finish_and_clear();
    let duel = duel.map_err(BenchFailure::Suites)?;

    let most = duel.benchmarks.iter().map(|benchmark| benchmark.rounds.len()).max().unwrap_or(0);
    let how = How {
        seed: Some(seed),
        order: Some(ArmOrder::Random.name()),
        rounds: Some(most),
        took_ns: took.as_nanos() as u64,
        low_share: args.low,
        metric: Some(metric.name()),
        unit: Some(Unit::Nanoseconds),
        framework: Some(framework.to_string()),
        ..How::default()
    };
    let mut report = Report::new(Kind::Framework, how);
    report.programs =
        [0, B].into_iter().zip(&programs).map(|(arm, chosen)| program(arm, chosen, most)).collect();
    report.fill(args, &duel, metric, seed, took);
    Ok(report)
}

/// A suite as the report has it.
fn program(arm: usize, chosen: &Chosen, rounds: usize) -> Program {
    Program {
        arm: arm_name(arm),
        name: chosen.name.clone(),
        path: chosen.command.program.display().to_string(),
        command: chosen.command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        peak_bytes: None,
        peak_is_bound: false,
        faults: None,
        failures: 0,
        runs: if arm == 0 { 2 * rounds } else { rounds },
    }
}

impl Report {
    /// Enters what came of every benchmark.
    fn fill(&mut self, args: &Bench, duel: &SuiteDuel, metric: Metric, seed: u64, took: Duration) {
        let options = Options { seed, low_share: args.low, ..Options::default() };
        let mut warned: Vec<(String, Vec<&str>)> = Vec::new();
        let (whole, failed): (Vec<&Benchmark>, Vec<&Benchmark>) =
            duel.benchmarks.iter().partition(|benchmark| benchmark.is_whole());
        for benchmark in whole {
            // One that a signal left without a round has nothing to compare.
            let Ok(comparison) = duel.compare(benchmark, &options) else { continue };
            for warning in comparison.warnings().iter().map(ToString::to_string) {
                match warned.iter_mut().find(|(known, _)| *known == warning) {
                    Some((_, names)) => names.push(&benchmark.name),
                    None => warned.push((warning, vec![&benchmark.name])),
                }
            }
            self.gates.extend(args.fail_above.map(|allowed| held(benchmark, &comparison, allowed, took)));
            let direction = comparison.direction();
            let called = [String::from("in A"), format!("{} in B", benchmark.name)];
            let said =
                verdict(metric, comparison.headline.ratio, direction, called.each_ref().map(String::as_str));
            self.versus.push(Versus {
                arm: arm_name(B),
                benchmark: Some(benchmark.name.clone()),
                metric,
                comparison,
                direction,
                verdict: said,
            });
            self.series.extend((0..ARMS.len()).map(|arm| duel.series(benchmark, arm)));
        }
        let all = self.versus.len();
        self.warnings = warned
            .into_iter()
            .map(
                |(warning, names)| {
                    if names.len() == all { warning } else { format!("{}: {warning}", names.join(", ")) }
                },
            )
            .collect();
        let told = |benchmark: &&Benchmark| {
            let words = benchmark.failure()?;
            let [a, b] = benchmark.failed.clone();
            Some(FailedBenchmark { name: benchmark.name.clone(), a, b, words })
        };
        let failed: Vec<FailedBenchmark> = failed.iter().filter_map(told).collect();
        self.apart = Some(Apart { removed: duel.removed.clone(), added: duel.added.clone(), failed });
    }
}

fn held(benchmark: &Benchmark, comparison: &Comparison, allowed: f64, took: Duration) -> Held {
    let gate = comparison.gate(allowed);
    let rounds = comparison.rounds.max(1) as f64;
    let time_of = |more: usize| (took.as_nanos() as f64 / rounds * more as f64) as u64;
    Held { name: benchmark.name.clone(), time_advised_ns: gate.rounds_advised().map(time_of), gate }
}
