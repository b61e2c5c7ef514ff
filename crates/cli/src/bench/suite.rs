//! `vellum bench` without a program: times Vellum's own operations in this process.

use super::args::{Bench, Metric};
use super::causes::subject;
use super::report::{How, Kind, Report};
use crate::failure::Failure;
use std::time::{Duration, Instant};
use vellum_timing::bench::Options;
use vellum_timing::record::Detail;
use vellum_timing::suites;

pub(super) fn run(args: &Bench) -> Result<Report, Failure> {
    let mut suite = suites::memory();
    if let Some(only) = &args.only
        && !suite.names().iter().any(|case| case.contains(only.as_str()))
    {
        let (suite, names) = (suite.name(), suite.names().join(", "));
        return Err(Failure::because(format!(
            "no case of the suite {suite} has {only:?} in its name; there are: {names}"
        )));
    }
    let defaults = Options::default();
    let options = Options {
        clock: args.clock,
        detail: Detail::Full,
        observations: args.rounds.map_or(defaults.observations, |rounds| rounds as usize),
        // With --rounds, all rounds are made, however long they take.
        time: args.time.unwrap_or(if args.rounds.is_some() { Duration::MAX } else { defaults.time }),
        warm_up: args.warm_up.map_or(defaults.warm_up, |ms| Duration::from_millis(ms.into())),
        batching: args.batch,
        only: args.only.clone(),
        hold_collectors: args.hold_collectors,
    };
    let began = Instant::now();
    let ran = suite.run(&options)?;
    let base = ran.base.base.clone();
    let how = How {
        clock: ran.base.clock.clone().unwrap_or_default(),
        step_ns: base.as_ref().map_or(0.0, |base| base.step),
        took_ns: began.elapsed().as_nanos() as u64,
        low_share: args.low,
        suite: Some(suite.name().to_owned()),
        ..How::default()
    };
    let mut report = Report::new(Kind::Suite, how);
    report.base = base;
    let seed = args.seed_or_fresh();
    report.subjects =
        ran.series().filter_map(|series| subject(series, Metric::Wall, args.low, seed)).collect();
    report.refused = ran.refused().map(ToString::to_string).collect();
    report.series = std::iter::once(&ran.base).chain(ran.series()).cloned().collect();
    Ok(report)
}
