//! Two programs against each other.
//!
//! ```text
//! time ├────────── random order ──────────┤── a second order ──┤
//!        A' B A   B A A'   A A' B   …       A A' B   B A' A   …
//! ```
//!
//! The second order takes a sixth of the time. It is left out, with a note, where a round is too long for it.

use super::args::{Bench, Metric};
use super::causes::subject;
use super::duel::{Extent, ROUNDS_MIN, duel, how, name, program, start, warnings};
use super::failure::BenchFailure;
use super::report::{Held, Kind, Report, Versus};
use super::words::verdict;
use crate::failure::Failure;
use std::time::Duration;
use vellum_experiment::ArmOrder;
use vellum_experiment::process_duel::{ProcessDuel, ProcessDuelError, ProcessTime};
use vellum_measure::{CompareError, Comparison, Options, Series};
use vellum_process::{Command, Interrupt};

/// The share of the time that the second order gets …
const ORDER_SHARE: f64 = 1.0 / 6.0;
/// … and how far it may exceed that.
const ORDER_SLACK: f64 = 2.0;
/// Where rounds are counted, the second order has one for every this many, at least [`ROUNDS_MIN`].
const ORDER_EVERY: usize = 5;

/// Compares `b` with `a`.
pub(super) fn run(args: &Bench, a: &Command, b: &Command) -> Result<Report, Failure> {
    if args.save.is_some() || args.baseline.is_some() {
        const STRONGER: &str = "--save and --baseline are for one program or a suite; --vs runs both side by side, which tells more";
        return Err(BenchFailure::Options(STRONGER).into());
    }
    let seed = args.seed_or_fresh();
    let names = names(args, a, b);
    let what = format!("{} against {}", names[1], names[0]);
    let time = args.time_or_default();
    let whole = Extent { time, rounds: args.rounds.map(|rounds| rounds as usize) };
    let check_time = time.mul_f64(ORDER_SHARE);
    let main = if args.no_order_check { whole } else { Extent { time: time - check_time, ..whole } };
    let timed = duel(args, [a, b], main, ArmOrder::Random, seed, &what)?;
    let (first, took) = (&timed.duel, timed.took);

    let second = match order_extent(args, whole, check_time, took, first.rounds.len()) {
        Ok(extent) => {
            let what = format!("{what}, in a second order");
            match duel(args, [a, b], extent, ArmOrder::Mirrored, seed, &what) {
                Ok(second) => Ok(second.duel),
                Err(BenchFailure::Duel(ProcessDuelError::Interrupted { .. })) => {
                    Err("the order was not checked: it was stopped before".to_owned())
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(why) => Err(why),
    };

    let mut report = Report::new(Kind::Versus, how(args, first, seed, took));
    report.how.order_check =
        Some(second.as_ref().map_or_else(Clone::clone, |_| "a second order was run".to_owned()));
    report.start = Some(start(args, first));
    report.programs =
        vec![program("A", &names[0], a, first, &[0, 1]), program("B", &names[1], b, first, &[2])];
    let other = if args.metric == Metric::Cpu { Metric::Wall } else { Metric::Cpu };
    for metric in [args.metric, other] {
        let compared = compare(args, first, metric, seed);
        let compared = match (compared, metric == args.metric) {
            (Err(error), true) => return Err(BenchFailure::Compare(error).into()),
            // What decides nothing may be missing, as the CPU time of a program that uses none.
            (Err(error), false) => {
                report.warnings.push(error.to_string());
                continue;
            }
            (Ok(compared), _) => compared,
        };
        let second = second.as_ref().ok().and_then(|second| compare(args, second, metric, seed).ok());
        let comparison = match second {
            Some(second) => compared.with_second_order(&second),
            None => compared,
        };
        let ratio = comparison.headline.ratio;
        let direction = comparison.direction();
        if metric == args.metric {
            report.warnings.extend(comparison.warnings().iter().map(ToString::to_string));
            let gate = args.fail_above.map(|allowed| comparison.gate(allowed));
            report.gates.extend(gate.map(|gate| Held {
                name: names[1].clone(),
                time_advised_ns: gate.rounds_advised().map(|more| time_of(more, first.rounds.len(), took)),
                gate,
            }));
        }
        let verdict = verdict(ratio, direction, &names[0], &names[1]);
        report.versus.push(Versus { metric, comparison, direction, verdict });
    }
    report.warnings.extend(warnings(&report.programs, args, &timed));
    let series: Vec<Series> = (0..3).map(|arm| first.series(&names[usize::from(arm == 2)], arm)).collect();
    for arm in [0, 2] {
        report.subjects.extend(subject(&series[arm], Metric::Wall, args.low, seed));
    }
    report.series = series;
    Ok(report)
}

/// What the two are called: by their commands, or by their letters where these are the same.
fn names(args: &Bench, a: &Command, b: &Command) -> [String; 2] {
    let [a, b] = [name(a), name(b)];
    match &args.name {
        Some(name) => [format!("{name} A"), format!("{name} B")],
        None if a == b => [format!("A ({a})"), format!("B ({b})")],
        None => [a, b],
    }
}

/// How long the second order may run, or why it is not run.
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
    if args.no_order_check {
        return Err("the order was not checked (--no-order-check)".to_owned());
    }
    if let Some(rounds) = whole.rounds {
        let fewer = (rounds / ORDER_EVERY).max(ROUNDS_MIN).min(rounds);
        return Ok(Extent { time, rounds: Some(fewer) });
    }
    let needed = took.div_f64(rounds.max(1) as f64).mul_f64(ROUNDS_MIN as f64);
    if needed > time.mul_f64(ORDER_SLACK) {
        let seconds = (needed.as_secs_f64() / ORDER_SHARE).ceil();
        return Err(format!(
            "the order was not checked: there was no time for it; --time {seconds}s gives it some"
        ));
    }
    Ok(Extent { time, rounds: None })
}

/// The time to ask for, in nanoseconds, to have `more` rounds, where `rounds` took this long. The second
/// order has its share of it.
fn time_of(more: usize, rounds: usize, took: Duration) -> u64 {
    let ns = took.as_nanos() as f64 / rounds.max(1) as f64 * more as f64;
    (ns / (1.0 - ORDER_SHARE)) as u64
}

fn compare(args: &Bench, duel: &ProcessDuel, metric: Metric, seed: u64) -> Result<Comparison, CompareError> {
    let time = if metric == Metric::Cpu { ProcessTime::Cpu } else { ProcessTime::Wall };
    duel.compare(time, &Options { seed, low_share: args.low, ..Options::default() })
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
    fn a_second_order_is_run_where_there_is_time() {
        let args = args(&["true", "--vs", "true"]);
        let seconds = Duration::from_secs;
        let whole = Extent { time: seconds(6), rounds: None };
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
    fn rounds_that_would_tell_have_a_time() {
        // 100 rounds in 5 s; 500 take 25 s, and the second order a sixth of 30 s.
        let ns = time_of(500, 100, Duration::from_secs(5));
        assert_eq!(ns, 30_000_000_000);
        let ratio = vellum_measure::Interval { estimate: 1.03, low: 1.01, high: 1.05 };
        let gate = vellum_measure::Gate::of(ratio, None, Some(100), 1.02);
        let held = Held { name: "new".into(), gate, time_advised_ns: Some(ns) };
        let said = held.words();
        assert!(said.ends_with("would tell; here that takes about 30.00 s: --time 30s"), "{said}");
    }

    #[test]
    fn what_follows_the_first_program_is_not_ours() {
        let args = args(&["--seed", "3", "./old", "--time", "x", "--vs", "./new", "-q"]);
        assert_eq!((args.seed, args.time, args.quiet), (Some(3), None, false));
        assert_eq!(args.command, ["./old", "--time", "x", "--vs", "./new", "-q"]);
    }
}
