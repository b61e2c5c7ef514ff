//! What a history means at a given S: the knee, the memory to give, and what less of it would cost.
//!
//! Four things are added to what `vellum-workset` says of a curve:
//!
//! - *First references* come whatever the memory and are not counted against a limit ([`Watcher::first_references`]).
//! - *What lies beyond the longest window.* A page that is touched every minute is not in a window of ten seconds, and a limit at
//!   that window would fault it in each time. As long as f at the longest window still costs more than was agreed to, nothing smaller
//!   than all can be promised, and all is what is advised.
//! - *What lies below the smallest window.* How f rises there was not seen, but z is concave: pages that are missing and that a window of
//!   Δ holds are faulted in at least once each Δ. That bound is given as one.
//! - *Bytes.* Pages of the curve are of [`PAGE_BYTES`].

use super::watcher::{PAGE_BYTES, Watcher};
use crate::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use vellum_workset::{Answer, CAP, Demand, History, Spread, knee, spread};

/// The seed of the draws behind an interval: the same history has the same interval.
const SEED: u64 = 1;
/// The parts of the advised size at which a slowdown is foretold.
pub const LESS: [f64; 4] = [0.9, 0.8, 2.0 / 3.0, 0.5];

/// A limit, and the slowdown expected under it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The limit.
    pub bytes: u64,
    /// The part of its time that is added: 0.02 is 2 %.
    pub slowdown: f64,
    /// It is at least that: the limit is less than the smallest window holds, and how much more it costs was not seen.
    pub at_least: bool,
}

/// How the memory to give was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// The curve says that less would do no harm beyond what was agreed to.
    Curve,
    /// The curve still rises too much at the longest window that was watched: all that was resident.
    All,
}

/// What kind of answer the curve gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// There is a window worth more than smaller and larger ones.
    Knee,
    /// The window holds all that is ever referenced.
    NeedsNothingMore,
    /// No window seen is worth more than the others.
    TakesAll,
}

impl Kind {
    /// In a few words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Kind::Knee => "knee",
            Kind::NeedsNothingMore => "needs nothing more",
            Kind::TakesAll => "takes all it is given",
        }
    }
}

/// The window worth giving, and how sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// What kind of answer it is.
    pub kind: Kind,
    /// The window, in nanoseconds of user CPU time.
    pub window_ns: f64,
    /// What it holds on average.
    pub bytes: u64,
    /// S·f there: waiting as a part of the job's time.
    pub waiting: f64,
    /// The interval that 95 % of draws of the history lie in; `None` while too little was seen.
    pub low_bytes: Option<u64>,
    /// Its upper end.
    pub high_bytes: Option<u64>,
}

impl Knee {
    fn new(answer: &Answer, spread: Option<&Spread>) -> Knee {
        let choice = answer.choice();
        Knee {
            kind: match answer {
                Answer::Knee(_) => Kind::Knee,
                Answer::NeedsNothingMore(_) => Kind::NeedsNothingMore,
                Answer::TakesAll { .. } => Kind::TakesAll,
            },
            window_ns: choice.point.window,
            bytes: bytes(choice.point.pages),
            waiting: choice.waiting,
            low_bytes: spread.map(|spread| bytes(spread.pages.low)),
            high_bytes: spread.map(|spread| bytes(spread.pages.high)),
        }
    }
}

/// What there is to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The knee, or why there is none.
    pub knee: Knee,
    /// The memory to give.
    pub give: Limit,
    /// On what ground.
    pub ground: Ground,
    /// The slowdown expected under less.
    pub less: Vec<Limit>,
    /// The longest window that was watched, in nanoseconds of user CPU time.
    pub longest_window_ns: f64,
}

impl Watcher {
    /// What the history so far means at `delay_ns`, the cost of a fault; `None` while there is no curve.
    #[must_use]
    pub fn verdict(&self, delay_ns: f64) -> Option<Verdict> {
        let watched = self.clock();
        Verdict::of(&self.known(), delay_ns, self.first_references(), watched, self.peak())
    }
}

impl Verdict {
    /// What a history means. `first_references` a nanosecond are unavoidable; `watched` is the user CPU time behind it, and `peak` all that
    /// was ever resident.
    #[must_use]
    pub fn of(
        history: &History,
        delay_ns: f64,
        first_references: f64,
        watched: Duration,
        peak: Bytes,
    ) -> Option<Verdict> {
        let curve = history.mean()?;
        let noise = 1.0 / (watched.as_nanos() as f64).max(1.0);
        let demand = Demand { noise, unavoidable: first_references, ..Demand::new(delay_ns) };
        let beyond = (curve.last().faults - first_references).max(0.0);
        let waiting = beyond * delay_ns;
        let advice = (waiting < CAP).then(|| history.advice(delay_ns, CAP - waiting)).flatten();
        let (give, ground) = match advice {
            Some(advice) => {
                let slowdown = advice.slowdown.part + waiting;
                (Limit { bytes: bytes(advice.pages), slowdown, at_least: false }, Ground::Curve)
            }
            None => (Limit { bytes: peak.0, slowdown: 0.0, at_least: false }, Ground::All),
        };
        let (first, floor) = (curve.first(), curve.last().faults.max(first_references));
        let less = LESS.iter().map(|part| {
            let limit = (give.bytes as f64 * part) as u64;
            let pages = limit as f64 / PAGE_BYTES as f64;
            let found = history.slowdown(pages, delay_ns);
            // z is concave: on the way from a smaller window to the first, f is nowhere below the slope between the two.
            let steeper = ((first.pages - pages) / first.window - floor).max(0.0) * delay_ns;
            Limit { bytes: limit, slowdown: (found.part + waiting).max(steeper), at_least: found.at_least }
        });
        Some(Verdict {
            knee: Knee::new(&knee(&curve, &demand), spread(history, &demand, SEED).as_ref()),
            give,
            ground,
            less: less.collect(),
            longest_window_ns: curve.last().window,
        })
    }
}

/// A mean of pages as bytes, rounded up to whole pages; what arithmetic has added to a whole number is no page.
fn bytes(pages: f64) -> u64 {
    const NOTHING: f64 = 1e-3;
    (pages - NOTHING).ceil().max(0.0) as u64 * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    fn history(pages: &[f64]) -> History {
        let windows = vellum_workset::cycle::doubling_windows(100.0 * MS, pages.len() as u32);
        let mut history = History::new(windows, 1.0);
        for _ in 0..16 {
            history.push(1000.0 * MS, pages, &[]);
        }
        history
    }

    fn verdict(pages: &[f64], delay_ns: f64, first: f64) -> Verdict {
        Verdict::of(&history(pages), delay_ns, first, Duration::from_secs(16), Bytes(10_000 * PAGE_BYTES))
            .unwrap()
    }

    #[test]
    fn what_is_flat_is_given_as_it_is() {
        let flat = verdict(&[1000.0, 1000.0, 1000.0, 1000.0], 1e5, 0.0);
        assert_eq!((flat.ground, flat.give.bytes), (Ground::Curve, 1000 * PAGE_BYTES));
        assert_eq!(flat.knee.kind, Kind::NeedsNothingMore);
        assert!(
            flat.less.iter().all(|limit| limit.at_least),
            "below the smallest window only a bound is known"
        );
        // 500 pages less must come back within 100 ms: at least 5 faults a millisecond, half of the time at 100 µs.
        assert!((flat.less[3].slowdown - 0.5).abs() < 1e-3, "{flat:?}");
    }

    #[test]
    fn what_still_rises_is_given_all() {
        // 1,000 pages more in the last 400 ms: 2.5 faults a millisecond, a quarter of the time at 100 µs.
        let rising = verdict(&[1000.0, 2000.0, 3000.0, 4000.0], 1e5, 0.0);
        assert_eq!((rising.ground, rising.give.bytes), (Ground::All, 10_000 * PAGE_BYTES));
        // The same from first references alone is nobody's fault.
        let fresh = verdict(&[1000.0, 2000.0, 3000.0, 4000.0], 1e5, 0.01);
        assert_eq!(fresh.ground, Ground::Curve);
    }

    #[test]
    fn a_curve_that_bends_is_cut_where_faults_cost_what_was_agreed_to() {
        let bent = verdict(&[1000.0, 1900.0, 2000.0, 2001.0], 1e5, 0.0);
        assert_eq!(bent.ground, Ground::Curve);
        assert!((1900..=2001).contains(&(bent.give.bytes / PAGE_BYTES)), "{bent:?}");
        assert!(bent.give.slowdown <= CAP + 1e-6);
        assert!(bent.less[3].slowdown > 10.0 * CAP, "{bent:?}");
    }
}
