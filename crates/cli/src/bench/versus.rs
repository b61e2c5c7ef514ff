//! The benchmark of several programs: compares each with the first.
//!
//! ```text
//! time ├────────── random order ──────────┤── regular order ───┤
//!        A' B A   B A A'   A A' B   …       A A' B   B A' A   …
//! ```
//!
//! A and B are programs; A' is the control, program A once more. In each round, each of the three runs once.
//! A third program C adds a fourth run to each round. Times are divided only by times of the same round: B/A,
//! C/A, and A'/A, which shows the noise.
//!
//! The last sixth of the time is for rounds in a regular order, alternately forwards and backwards. These
//! rounds show if the ratios depend on the order. If there is no time for them, the report has a note
//! instead.

use super::args::{Bench, Metric, TIME_MAX};
use super::causes::subject;
use super::chosen::Chosen;
use super::duel::{Extent, ROUNDS_MIN, all_series, duel, how, program, start, warnings};
use super::report::{Held, Kind, Report, Versus};
use super::steps::Steps;
use super::words::{verdict, with_control};
use crate::failure::Failure;
use std::time::Duration;
use vellum_experiment::process_duel::{ProcessDuel, ProcessDuelError};
use vellum_experiment::{ArmOrder, arm_name};
use vellum_measure::{CompareError, Comparison, Direction, Interval, Options, Unit, percent};
use vellum_process::Interrupt;
use vellum_report::units;

/// The share of the time for the second order.
const ORDER_SHARE: f64 = 1.0 / 6.0;
/// The factor by which the second order may exceed its share of the time.
const ORDER_SLACK: f64 = 2.0;
/// With --rounds, the second order has one round for this many, but at least [`ROUNDS_MIN`].
const ORDER_EVERY: usize = 5;
/// The default size of a difference that matters.
const SIZE: f64 = 0.01;
/// To show a difference in nine runs of ten, half a 95 % width must be smaller than it by this factor. It is
/// the sum of the normal distribution's quantiles at 0.975 and 0.9, divided by the first.
const TELLING: f64 = (1.96 + 1.2816) / 1.96;
/// If the needed time is this many times as long, another metric is suggested.
const LONGER: u32 = 4;

/// Compares every program with the first.
pub(super) fn run(args: &Bench, programs: &[Chosen], steps: &Steps) -> Result<Report, Failure> {
    let seed = args.seed_or_fresh();
    let names = names(args, programs);
    let what = match &names[..] {
        [a, b] => format!("{b} against {a}"),
        all => format!("{} programs", all.len()),
    };
    let chosen: Vec<&Chosen> = programs.iter().collect();
    let time = args.time_or_default();
    let whole = Extent { time, rounds: args.rounds.map(|rounds| rounds as usize), until: args.until };
    let check_time = time.mul_f64(ORDER_SHARE);
    let checked = args.order_unchecked().is_none();
    let main = if checked { Extent { time: time - check_time, ..whole } } else { whole };
    let timed = duel(args, &chosen, steps, main, ArmOrder::Random, seed, &what)?;
    let (first, took) = (&timed.duel, timed.took);

    let second = match order_extent(args, whole, check_time, took, first.rounds.len()) {
        Ok(extent) => {
            let what = format!("{what}, in a second order");
            match duel(args, &chosen, steps, extent, ArmOrder::Mirrored, seed, &what) {
                Ok(second) => Ok(second.duel),
                Err(failure) if matches!(failure.error(), Some(ProcessDuelError::Interrupted(_))) => {
                    Err("the order was not checked: it was stopped before".to_owned())
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(why) => Err(why),
    };

    let mut report = Report::new(Kind::Versus, how(args, first, seed, took));
    report.how.order_check =
        Some(second.as_ref().map_or_else(Clone::clone, |_| "a second order was run".to_owned()));
    report.start = start(args, first);
    report.programs.push(program(args, arm_name(0), &names[0], &programs[0].command, first, &[0, 1]));
    for (arm, (name, chosen)) in (2..).zip(names.iter().zip(programs).skip(1)) {
        report.programs.push(program(args, arm_name(arm), name, &chosen.command, first, &[arm]));
    }
    for &metric in args.metrics() {
        for (arm, name) in (2..).zip(&names[1..]) {
            let compared = match (compare(args, first, metric, arm, seed), metric == args.metric) {
                (Err(error), true) => return Err(error.into()),
                // Metrics that decide nothing may be missing, as the CPU time of a program that uses none.
                (Err(error), false) => {
                    report.warnings.push(error.to_string());
                    continue;
                }
                (Ok(compared), _) => compared,
            };
            let second =
                second.as_ref().ok().and_then(|second| compare(args, second, metric, arm, seed).ok());
            let comparison = match second {
                Some(second) => compared.with_second_order(&second),
                None => compared,
            };
            let direction = comparison.direction();
            if metric == args.metric {
                for warning in comparison.warnings().iter().map(ToString::to_string) {
                    if !report.warnings.contains(&warning) {
                        report.warnings.push(warning);
                    }
                }
                let gate = args.fail_above.map(|allowed| comparison.gate(allowed));
                report.gates.extend(gate.map(|gate| Held {
                    name: name.clone(),
                    time_advised_ns:
                        gate.rounds_advised().map(|more| time_of(more, first.rounds.len(), took)),
                    gate,
                }));
            }
            let verdict = verdict(metric, &comparison.headline, direction, [&names[0], name]);
            report.versus.push(Versus { arm: arm_name(arm), metric, comparison, direction, verdict });
        }
    }
    report.advice = advice(args, &report, first.rounds.len(), took);
    report.warnings.extend(warnings(&report.programs, args, &timed));
    let arms = programs.len() + 1;
    report.series = all_series(args, first, 0..arms, |arm| names[arm.saturating_sub(1)].clone());
    for (_, series) in report.series.iter().enumerate().filter(|(place, _)| place % arms != 1) {
        let metric = if series.unit == Unit::Instructions { Metric::Instructions } else { Metric::Wall };
        report.subjects.extend(subject(series, metric, args.low, seed));
    }
    Ok(report)
}

/// The time needed to see a difference that matters, if the intervals are wider than it.
fn advice(args: &Bench, report: &Report, rounds: usize, took: Duration) -> Option<String> {
    let size = args.until.map_or(SIZE, f64::exp_m1);
    let not_shown = |row: &&Versus| row.metric == args.metric && row.direction == Direction::NotShown;
    let widest =
        report.versus.iter().filter(not_shown).map(|row| half_width(with_control(&row.comparison.headline)));
    let widest = widest.max_by(f64::total_cmp)?;
    let more = rounds as f64 * (widest * TELLING / size.ln_1p()).powi(2);
    if more <= rounds as f64 {
        return None;
    }
    let needed = Duration::from_nanos(time_of(more.ceil() as usize, rounds, took));
    let mut option = if needed <= TIME_MAX {
        format!("--time {}s", needed.as_secs_f64().ceil())
    } else {
        "more than a run can have".to_owned()
    };
    if args.metric == Metric::Cpu && needed > took * LONGER {
        option += "; --metric instructions needs fewer rounds";
    }
    let (size, time) = (percent(1.0 + size), units::time(needed));
    Some(format!(
        "to see a difference of {} in nine runs of ten takes about {time} here: {option}",
        size.trim_start_matches('+')
    ))
}

fn half_width(ratio: Interval) -> f64 {
    (ratio.high / ratio.low).ln() / 2.0
}

/// The names of the programs: their commands, with their letters if two are the same.
fn names(args: &Bench, programs: &[Chosen]) -> Vec<String> {
    let letter = |place: usize| arm_name(if place == 0 { 0 } else { place + 1 });
    let named = |(place, program): (usize, &Chosen)| match &args.name {
        Some(name) => format!("{name} {}", letter(place)),
        None => {
            let same = programs.iter().filter(|other| other.name == program.name).count();
            let name = program.name.clone();
            if same > 1 { format!("{} ({name})", letter(place)) } else { name }
        }
    };
    programs.iter().enumerate().map(named).collect()
}

/// The extent of the second order, or the reason why it is not run.
fn order_extent(
    args: &Bench,
    whole: Extent,
    time: Duration,
    took: Duration,
    rounds: usize,
) -> Result<Extent, String> {
    if Interrupt::arrived().is_some() {
        return Err("the order was not checked: it was stopped before".to_owned());
    }
    if let Some(why) = args.order_unchecked() {
        return Err(why.to_owned());
    }
    if let Some(rounds) = whole.rounds {
        let fewer = (rounds / ORDER_EVERY).max(ROUNDS_MIN).min(rounds);
        return Ok(Extent { time, rounds: Some(fewer), until: None });
    }
    let needed = took.div_f64(rounds.max(1) as f64).mul_f64(ROUNDS_MIN as f64);
    if needed > time.mul_f64(ORDER_SLACK) {
        let seconds = (needed.as_secs_f64() / ORDER_SHARE).ceil();
        return Err(format!(
            "the order was not checked: there was no time for it; --time {seconds}s gives it some"
        ));
    }
    Ok(Extent { time, rounds: None, until: None })
}

/// The value for --time, in nanoseconds, that gives `more` rounds, as `rounds` took this long. It includes
/// the share of the second order.
fn time_of(more: usize, rounds: usize, took: Duration) -> u64 {
    let ns = took.as_nanos() as f64 / rounds.max(1) as f64 * more as f64;
    (ns / (1.0 - ORDER_SHARE)) as u64
}

fn compare(
    args: &Bench,
    duel: &ProcessDuel,
    metric: Metric,
    arm: usize,
    seed: u64,
) -> Result<Comparison, CompareError> {
    duel.compare(metric.of_process(), arm, &Options { seed, low_share: args.low, ..Options::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command as Word};
    use clap::Parser;

    fn args(line: &[&str]) -> Box<Bench> {
        let words = ["vellum", "bench"].iter().chain(line).copied();
        match Args::try_parse_from(words).unwrap().command {
            Word::Bench(bench) => bench,
            other => panic!("not a benchmark: {other:?}"),
        }
    }

    #[test]
    fn second_order_runs_if_time_allows() {
        let args = args(&["true", "--vs", "true"]);
        let seconds = Duration::from_secs;
        let whole = Extent { time: seconds(6), rounds: None, until: None };
        let extent = order_extent(&args, whole, seconds(1), seconds(5), 100).unwrap();
        assert_eq!((extent.time, extent.rounds), (seconds(1), None));
        let why = order_extent(&args, whole, seconds(1), seconds(20), 10).unwrap_err();
        assert!(why.contains("--time 120s"), "{why}");
        let counted = Extent { rounds: Some(100), ..whole };
        assert_eq!(order_extent(&args, counted, seconds(1), seconds(5), 100).unwrap().rounds, Some(20));
        let few = Extent { rounds: Some(4), ..whole };
        assert_eq!(order_extent(&args, few, seconds(1), seconds(5), 4).unwrap().rounds, Some(4));
    }

    #[test]
    fn report_gives_the_time_of_needed_rounds() {
        // 100 rounds in 5 s; 500 take 25 s, and the second order a sixth of 30 s.
        let ns = time_of(500, 100, Duration::from_secs(5));
        assert_eq!(ns, 30_000_000_000);
        let ratio = Interval { estimate: 1.03, low: 1.01, high: 1.05 };
        let control = Interval { estimate: 1.0, low: 1.0, high: 1.0 };
        let gate = vellum_measure::Gate::of(ratio, control, 100, 1.02);
        let held = Held { name: "new".into(), gate, time_advised_ns: Some(ns) };
        let said = held.words();
        assert!(said.ends_with("are needed; here that takes about 30.00 s: --time 30s"), "{said}");
    }

    #[test]
    fn options_after_the_first_program_belong_to_it() {
        let args = args(&["--seed", "3", "./old", "--time", "x", "--vs", "./new", "-q"]);
        assert_eq!((args.seed, args.time, args.quiet), (Some(3), None, false));
        assert_eq!(args.command, ["./old", "--time", "x", "--vs", "./new", "-q"]);
    }
}
