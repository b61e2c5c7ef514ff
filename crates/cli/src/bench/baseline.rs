//! Baselines: saved, read, compared with.

use super::args::{Bench, Metric};
use super::failure::BenchFailure;
use super::report::{Against, AgainstRow, Held, Kind, Report};
use super::words::verdict;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use vellum_measure::{Baseline, Direction, Interval, Options, Series, Unit};

/// A baseline and where it is.
pub(super) struct Before {
    path: PathBuf,
    baseline: Baseline,
}

/// Reads a baseline.
pub(super) fn read(path: &Path) -> Result<Before, BenchFailure> {
    let failed = |source| BenchFailure::Baseline { path: path.to_path_buf(), source };
    let file = File::open(path).map_err(|error| failed(error.into()))?;
    let baseline = Baseline::read(BufReader::new(file)).map_err(failed)?;
    Ok(Before { path: path.to_path_buf(), baseline })
}

impl Before {
    /// Whether one of these is in it: found out before anything is measured.
    pub(super) fn expect(&self, names: &[String]) -> Result<(), BenchFailure> {
        let mut missing = None;
        for name in names {
            match self.baseline.runs_of(name) {
                Ok(_) => return Ok(()),
                Err(error) => missing = Some(error),
            }
        }
        let failed = |source| BenchFailure::Baseline { path: self.path.clone(), source };
        missing.map_or(Ok(()), |error| Err(failed(error)))
    }
}

/// What was measured, as a baseline of that label.
pub(super) fn saved(report: &Report, label: &str) -> Result<Vec<u8>, BenchFailure> {
    let baseline = Baseline {
        label: label.to_owned(),
        machine: Some(report.machine.clone()),
        series: report.series.clone(),
    };
    let mut text = Vec::new();
    let written = baseline.write(&mut text);
    written.map_err(|source| BenchFailure::Baseline { path: "the new baseline".into(), source })?;
    Ok(text)
}

/// Holds what was measured against a baseline, by the time that decides.
pub(super) fn compare(report: &mut Report, before: &Before, args: &Bench) -> Result<(), BenchFailure> {
    let decides = |series: &Series| match (report.kind, args.metric) {
        (_, Metric::Instructions) => Some(series.clone()).filter(|series| series.unit == Unit::Instructions),
        (Kind::Suite, _) | (_, Metric::Wall) => {
            Some(series.clone()).filter(|series| series.unit != Unit::Instructions)
        }
        (_, Metric::Cpu) => series.select("Cpu"),
    };
    let baseline = Baseline {
        series: before.baseline.series.iter().filter_map(decides).collect(),
        ..before.baseline.clone()
    };
    let options = Options { low_share: args.low, seed: report.how.seed.unwrap_or(1), ..Options::default() };
    let (mut rows, mut weaknesses, mut gates): (Vec<AgainstRow>, Vec<String>, Vec<Held>) = Default::default();
    // The first series of a suite is the time of nothing.
    let skipped = usize::from(report.kind == Kind::Suite);
    for series in report.series.iter().skip(skipped).filter_map(decides) {
        let compared = baseline.compare(&series, Some(&report.machine), &options);
        let found =
            compared.map_err(|source| BenchFailure::Baseline { path: before.path.clone(), source })?;
        for weakness in found.weaknesses.iter().map(ToString::to_string) {
            if !weaknesses.contains(&weakness) {
                weaknesses.push(weakness);
            }
        }
        gates.extend(args.fail_above.map(|allowed| Held {
            name: series.name.clone(),
            gate: found.gate(allowed),
            time_advised_ns: None,
        }));
        let alone = Interval { estimate: 1.0, low: 1.0, high: 1.0 };
        let direction = Direction::of(found.ratio, alone);
        rows.push(AgainstRow {
            verdict: verdict(args.metric, found.ratio, direction, [&baseline.label, &series.name]),
            name: series.name,
            direction,
            ratio: found.ratio,
            then: found.then,
            now: found.now,
            runs: found.runs,
        });
    }
    report.against = Some(Against { label: baseline.label, rows, weaknesses });
    report.gates.extend(gates);
    Ok(())
}
