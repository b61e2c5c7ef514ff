//! The measurements of Bates 1999: BASE (the time between two stamps, a thousand times) for each kind of
//! stamp (a way to read the time). The kinds take turns in random order, round after round.

use super::stamp::{FILE, SlowStamp};
use crate::{Progress, Scale};
use vellum_experiment::{ArmOrder, Experiment, Stop, Turn};
use vellum_measure::{Base, Interval, Sample, Series, median};
use vellum_timing::clock::{Clock, ClockError, ClockKind, measure_base_on};
use vellum_timing::machine;
use vellum_timing::marks;
use vellum_timing::record::{Detail, RecordError, Recorder};

/// The paper's number of empty timings.
pub(super) const COUNT: usize = 1000;
/// Slow stamps before the measured ones.
const WARM_UP: usize = 100;

/// The way a stamp is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// By a system call and a conversion from text.
    Slow,
    Builtin(ClockKind),
    /// By the best clock, with all collectors of the process held off.
    Held,
}

impl Path {
    /// Its name in tables and labels.
    pub(super) fn name(self) -> &'static str {
        match self {
            Path::Slow => "slow",
            Path::Builtin(kind) => kind.name(),
            Path::Held => "held",
        }
    }
}

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum BasesError {
    /// There is no usable clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A recorder could not be made.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// All rounds of one kind of stamp.
#[derive(Debug)]
pub(super) struct Rounds {
    pub(super) path: Path,
    /// A thousand empty timings for each round; those of the slow stamp with the events during each.
    pub(super) series: Vec<Series>,
}

/// All rounds of all kinds of stamp.
#[derive(Debug)]
pub(super) struct Bases {
    /// The clock for parts that need only one.
    pub(super) best: Clock,
    pub(super) rounds: Vec<Rounds>,
    /// The kind of stamp that cannot be made here, with the reason.
    pub(super) missing: Option<String>,
}

impl Bases {
    /// Measures all rounds.
    pub(super) fn measure(
        scale: Scale,
        seed: u64,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Bases, BasesError> {
        let best = Clock::best()?;
        let count = scale.pick(COUNT, COUNT, 50);
        let times = scale.pick(20, 5, 1);
        let stamp = SlowStamp::open();
        let missing = stamp.as_ref().err().map(|error| format!("the slow stamp, {FILE}: {error}"));
        let stamp = stamp.ok();
        let mut rounds: Vec<Rounds> = [Path::Slow, Path::Builtin(best.kind()), Path::Held]
            .into_iter()
            .filter(|path| *path != Path::Slow || stamp.is_some())
            .map(|path| Rounds { path, series: Vec::new() })
            .collect();
        let kinds = rounds.len();
        let mut executor = |Turn { round, place, arm }: Turn| -> Result<(), BasesError> {
            let Rounds { path, series: all } = &mut rounds[arm];
            let done = round * kinds + place;
            progress(Progress { experiment: "BASE", done, total: kinds * times, what: path.name() });
            let _held = (*path == Path::Held).then(marks::hold);
            let mut series = match &stamp {
                Some(stamp) if *path == Path::Slow => slow_stamps(stamp, &best, count)?,
                _ => measure_base_on(&best, count)?,
            };
            series.labels = vec![path.name().to_owned(), format!("round={}", round + 1)];
            series.machine = Some(machine::read());
            all.push(series);
            Ok(())
        };
        Experiment::new(ArmOrder::Random, kinds, seed).run(&Stop::rounds(times), &mut executor)?;
        Ok(Bases { best, rounds, missing })
    }

    /// The rounds of one kind; empty if it cannot be made here.
    pub(super) fn of(&self, path: Path) -> &[Series] {
        self.rounds.iter().find(|rounds| rounds.path == path).map_or(&[], |rounds| &rounds.series)
    }

    /// All series, ordered by kind.
    pub(super) fn into_series(self) -> Vec<Series> {
        self.rounds.into_iter().flat_map(|rounds| rounds.series).collect()
    }
}

/// `count` slow stamps in a row, each timed by `clock`, with the events during each.
pub(super) fn slow_stamps(stamp: &SlowStamp, clock: &Clock, count: usize) -> Result<Series, RecordError> {
    let mut recorder = Recorder::new(*clock, Detail::Full, count)?;
    recorder.repeat(WARM_UP.min(count), || stamp.now());
    recorder.forget();
    recorder.repeat(count, || stamp.now());
    Ok(recorder.finish("BASE"))
}

/// The clock's readings in nanoseconds and in order, without subtracting the clock's own BASE.
pub(super) fn raw(series: &Series) -> Vec<f64> {
    series.observations.iter().map(|one| one.wall_ns).collect()
}

/// The figures of one round: mean, minimum, maximum, standard deviation, share at the mode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) std: f64,
    /// The share at the mode, within a step of the clock; `None` for a series without a base.
    pub(super) at_mode: Option<f64>,
}

/// The figures of one round; `None` for an empty one.
pub(super) fn figures(series: &Series) -> Option<Figures> {
    let sample: Sample = raw(series).into();
    let stat = sample.stat()?;
    let at_mode = series.base.as_ref().and_then(|base: &Base| base.mode_share(&sample, 1));
    Some(Figures { mean: stat.mean, min: stat.min, max: stat.max, std: stat.std, at_mode })
}

/// The median over rounds of one figure.
pub(super) fn middle(rounds: &[Series], of: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = rounds.iter().filter_map(figures).filter_map(|figures| of(&figures)).collect();
    median(&values)
}

/// The median of the rounds' values, with the smallest and the largest value as its interval.
pub(super) fn span(values: &[f64]) -> Option<Interval> {
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    median(values).map(|estimate| Interval { estimate, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_reaches_over_all_rounds() {
        let found = span(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((found.low, found.estimate, found.high), (1.0, 2.0, 3.0));
        assert_eq!(span(&[]), None);
    }
}
