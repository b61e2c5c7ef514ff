//! The benchmark of one program: its time without disturbances by the machine, and those disturbances.
//!
//! In each round the program runs three times, in place of the runs A, A' and B of a comparison
//! (`versus.rs`). It is thus timed in the same way as in a comparison. All runs together form one series.

use super::args::{Bench, Metric};
use super::causes::subject;
use super::chosen::Chosen;
use super::duel::{Extent, duel, how, program, start, warnings};
use super::report::{Kind, Report};
use super::steps::Steps;
use crate::failure::Failure;
use vellum_experiment::process_duel::ProcessDuel;
use vellum_experiment::{ARMS, ArmOrder, arm_name};
use vellum_measure::{Observation, Series};

pub(super) fn run(args: &Bench, chosen: &Chosen, steps: &Steps) -> Result<Report, Failure> {
    let seed = args.seed_or_fresh();
    let called = args.name.clone().unwrap_or_else(|| chosen.name.clone());
    let runs = args.rounds.map(|runs| runs as usize);
    let rounds = runs.map(|runs| runs.div_ceil(ARMS.len()));
    let extent = Extent { time: args.time_or_default(), rounds, until: args.until };
    let timed = duel(args, &[chosen, chosen], steps, extent, ArmOrder::Random, seed, &called)?;
    let duel = &timed.duel;

    let mut report = Report::new(Kind::Program, how(args, duel, seed, timed.took));
    report.start = start(args, duel);
    report.programs = vec![program(args, arm_name(0), &called, &chosen.command, duel, &[0, 1, 2])];
    report.warnings = warnings(&report.programs, args, &timed);
    if args.metric == Metric::Instructions {
        let series = joined(Metric::Instructions, duel, &called, runs);
        report.subjects.extend(subject(&series, Metric::Instructions, args.low, seed));
        report.series.push(series);
    }
    if !args.under_valgrind() {
        let series = joined(Metric::Wall, duel, &called, runs);
        report
            .subjects
            .extend(series.select("Cpu").and_then(|cpu| subject(&cpu, Metric::Cpu, args.low, seed)));
        report.subjects.extend(subject(&series, Metric::Wall, args.low, seed));
        report.series.push(series);
    }
    Ok(report)
}

/// All runs in the order in which they were made, but not more than `most`.
fn joined(metric: Metric, duel: &ProcessDuel, name: &str, most: Option<usize>) -> Series {
    let metric = metric.of_process();
    let arms: Vec<Series> = (0..ARMS.len()).map(|arm| duel.series(metric, name, arm)).collect();
    let mut all: Vec<Observation> = arms.iter().flat_map(|arm| arm.observations.iter().copied()).collect();
    all.sort_by_key(|one| one.start_ns);
    all.truncate(most.unwrap_or(usize::MAX));
    let first = arms.into_iter().next().unwrap_or_default();
    Series { observations: all, labels: Vec::new(), ..first }
}
