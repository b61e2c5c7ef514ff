//! Derives results from a history, for a given S (cost of a fault): the knee, the recommended limit, and the
//! slowdown under smaller limits.
//!
//! In addition to the curve of `vellum-workset`, the verdict takes into account:
//!
//! - *First references* happen under any limit, and do not count against a limit
//!   ([`Watcher::first_references`]).
//! - *Beyond the longest window.* A page touched once a minute is outside most windows of ten seconds. Under
//!   a limit that holds the pages of ten seconds only, each touch would be a fault. While the fault rate f at
//!   the longest window costs more than the agreed slowdown, all memory that the job held is recommended.
//! - *Other memory under a limit*, and the time between looks: [`crate::advice`], [`crate::whole`].
//! - *Bytes.* A page of the curve has [`PAGE_BYTES`] bytes.

use crate::advice::{Held, Known};
use crate::delay::Delay;
use crate::frame::nanos;
use crate::watcher::{PAGE_BYTES, Watcher};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use vellum_kernel::Bytes;
use vellum_workset::{Answer, CAP, Curve, Demand, History, Spread, knee, spread};

/// The seed of the draws behind an interval: the same history has the same interval.
const SEED: u64 = 1;
/// The parts of the advised size at which a slowdown is foretold.
pub const LESS: [f64; 4] = [0.9, 0.8, TWO_THIRDS, 0.5];
/// The limit in metrics, as a part.
const TWO_THIRDS: f64 = 2.0 / 3.0;

/// A limit, and the slowdown expected under it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The limit.
    pub bytes: u64,
    /// The part of its time that is added: 0.02 is 2 %.
    pub slowdown: f64,
    /// The slowdown is at least that: the limit is less than the smallest window holds, and the further cost
    /// was not measured.
    pub at_least: bool,
    /// The least and the most that the slowdown may be, by how the cycles differ; `None` with less than two.
    pub low: Option<f64>,
    /// The most.
    pub high: Option<f64>,
}

/// The way in which the recommended memory was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
    /// By the curve, less memory costs at most the agreed slowdown.
    Curve,
    /// All held memory: a limit smaller by an eighth or more would cost more than was agreed to, or its cost
    /// is uncertain.
    All,
}

/// The kind of a knee.
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

/// The window worth giving, and how sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Its kind.
    pub kind: Kind,
    /// The window, in nanoseconds of user CPU time.
    pub window_ns: f64,
    /// The mean memory in it.
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

/// The meaning of a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The knee, or the reason for its absence.
    pub knee: Knee,
    /// The memory to give.
    pub give: Limit,
    /// On what ground.
    pub ground: Ground,
    /// The part of it that is for files that the job reads again and again.
    #[serde(default)]
    pub files_bytes: u64,
    /// The interval of `give`: the limits for both ends of the cost's uncertainty. `None` if all held memory
    /// is recommended.
    pub give_low_bytes: Option<u64>,
    /// Its upper end.
    pub give_high_bytes: Option<u64>,
    /// True if the job is still becoming larger: it needs at least `give`.
    #[serde(default)]
    pub growing: bool,
    /// The slowdown expected under less.
    pub less: Vec<Limit>,
    /// The longest window that was watched, in nanoseconds of user CPU time.
    pub longest_window_ns: f64,
}

impl Watcher {
    /// The meaning of the history at this S; `None` while there is no curve.
    pub fn verdict(&self, delay: &Delay) -> Option<Verdict> {
        self.with_seen(|seen| Verdict::of(seen, delay))
    }

    /// The recommended memory at this S, and two thirds of it, each with its slowdown: the quick part of the
    /// verdict. `None` while there is no curve.
    pub fn advised(&self, delay: &Delay) -> Option<[Limit; 2]> {
        self.with_seen(|seen| {
            let known = seen.known(&seen.history.mean()?, delay);
            let give = known.least(CAP);
            Some([give, Bytes((give.0 as f64 * TWO_THIRDS) as u64)].map(|bytes| known.at(bytes)))
        })
    }

    /// The knee at this S, without the interval around it, which takes longer to find. `None` while there is
    /// no curve.
    pub fn knee(&self, delay: &Delay) -> Option<Knee> {
        self.with_seen(|seen| Some(Knee::new(&knee(&seen.history.mean()?, &seen.demand(delay)), None)))
    }

    /// The cost of a limit of `bytes` at this S; `None` while there is no curve.
    pub fn cost_of(&self, bytes: u64, delay: &Delay) -> Option<Limit> {
        self.with_seen(|seen| Some(seen.known(&seen.history.mean()?, delay).at(Bytes(bytes))))
    }

    /// The limit under which nothing has to leave at this S; `None` while there is no curve.
    pub fn all(&self, delay: &Delay) -> Option<u64> {
        self.with_seen(|seen| Some(seen.known(&seen.history.mean()?, delay).all().0))
    }

    fn with_seen<R>(&self, ask: impl FnOnce(&Seen<'_>) -> R) -> R {
        ask(&Seen {
            history: &self.known(),
            stretches: &self.stretches(),
            first_references: self.first_references(),
            held: self.held_and_moved(),
            growing: self.is_growing(),
            correction: self.correction(),
        })
    }

    fn held_and_moved(&self) -> Held {
        Held {
            watched: self.clock(),
            peak: self.peak(),
            shared: self.latest().shared,
            processes: self.most_processes,
            transferred: self.transferred,
            read_since: self.read_since(),
            files: self.charged.files(),
            kernel: self.charged.kernel(),
        }
    }
}

/// A limit by the memory touched in some wall-clock time: the only figure for a job that hardly runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByAge {
    /// A limit for the memory touched in that time.
    pub bytes: u64,
    /// That time.
    pub touched_within_ns: u64,
}

/// The shortest age for a limit.
const BY_AGE_MIN: Duration = Duration::from_secs(60);

impl Watcher {
    /// The limit by the longest measured age; `None` while none of a minute or more is.
    pub fn give_by_age(&self) -> Option<ByAge> {
        let (age, aged) = self.ages().last().filter(|(age, _)| *age >= BY_AGE_MIN)?;
        let nothing = History::new(Vec::new(), 1.0);
        let known = Known {
            stretches: &nothing,
            cycles: &nothing,
            growing: false,
            correction: 1.0,
            delay_ns: 0.0,
            out_ns: 0.0,
            beyond: 0.0,
            held: self.held_and_moved(),
        };
        let bytes = known.limit(aged.touched.0 as f64 / PAGE_BYTES as f64).0;
        Some(ByAge { bytes, touched_within_ns: nanos(age) })
    }
}

#[derive(Clone, Copy, Debug)]
struct Seen<'a> {
    /// The cycles looked at.
    history: &'a History,
    stretches: &'a History,
    /// A nanosecond, unavoidable.
    first_references: f64,
    held: Held,
    /// True if it still becomes larger.
    growing: bool,
    /// By what the curve was corrected.
    correction: f64,
}

impl<'a> Seen<'a> {
    fn demand(&self, delay: &Delay) -> Demand {
        let noise = 1.0 / (self.held.watched.as_nanos() as f64).max(1.0);
        Demand { noise, unavoidable: self.first_references, ..Demand::new(delay.mean_ns) }
    }

    fn known(&self, curve: &Curve, delay: &Delay) -> Known<'a> {
        Known {
            stretches: self.stretches,
            cycles: self.history,
            growing: self.growing,
            correction: self.correction,
            delay_ns: delay.mean_ns,
            out_ns: delay.out_ns,
            beyond: (curve.last().faults - self.first_references).max(0.0) * delay.mean_ns,
            held: self.held,
        }
    }
}

impl Known<'_> {
    fn at(&self, bytes: Bytes) -> Limit {
        let cost = self.cost(bytes);
        let off = |by: f64| cost.doubt.map(|doubt| (cost.part + by * doubt).max(0.0));
        Limit { bytes: bytes.0, slowdown: cost.part, at_least: cost.at_least, low: off(-1.0), high: off(1.0) }
    }
}

impl Verdict {
    fn of(seen: &Seen<'_>, delay: &Delay) -> Option<Verdict> {
        let curve = seen.history.mean()?;
        let demand = seen.demand(delay);
        let known = seen.known(&curve, delay);
        let limit = |bytes: Bytes| known.at(bytes);
        let give = known.least(CAP);
        let interval = known.interval(CAP);
        let ground = if give < known.all() { Ground::Curve } else { Ground::All };
        Some(Verdict {
            knee: Knee::new(&knee(&curve, &demand), spread(seen.history, &demand, SEED).as_ref()),
            give: limit(give),
            ground,
            files_bytes: known.cache(),
            give_low_bytes: interval.map(|[low, _]| low.0),
            give_high_bytes: interval.map(|[_, high]| high.0),
            growing: seen.growing,
            less: LESS.iter().map(|part| limit(Bytes((give.0 as f64 * part) as u64))).collect(),
            longest_window_ns: curve.last().window,
        })
    }
}

/// A mean of pages as bytes, rounded up to whole pages; rounding errors add no page.
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

    const PEAK: Bytes = Bytes(10_000 * PAGE_BYTES);

    /// Of a job of which all was seen in cycles, on a device that takes out for nothing.
    fn verdict(pages: &[f64], delay_ns: f64, first: f64) -> Verdict {
        let history = history(pages);
        let delay = Delay { out_ns: 0.0, ..Delay::given(Duration::from_nanos(delay_ns as u64)) };
        let seen = Seen {
            history: &history,
            stretches: &history,
            first_references: first,
            held: Held { watched: Duration::from_secs(16), peak: PEAK, processes: 1, ..Held::default() },
            growing: false,
            correction: 1.0,
        };
        Verdict::of(&seen, &delay).unwrap()
    }

    fn pages_under(limit: &Limit) -> f64 {
        let kernel = PEAK.0 / 256 + (192 << 10);
        (limit.bytes - kernel) as f64 / PAGE_BYTES as f64 / (1.0 + crate::RESERVE)
    }

    #[test]
    fn what_is_flat_is_given_as_it_is() {
        let flat = verdict(&[1000.0, 1000.0, 1000.0, 1000.0], 1e5, 0.0);
        assert_eq!(flat.ground, Ground::Curve);
        assert!((999.0..1002.0).contains(&pages_under(&flat.give)), "{flat:?}");
        assert_eq!(flat.knee.kind, Kind::NeedsNothingMore);
        assert!(flat.less.iter().all(|limit| limit.at_least), "below the smallest window it is a bound");
        // Missing pages must come back within 100 ms: 1,000 pages are 10 faults a millisecond, all of the
        // time at 100 µs.
        let missing = 1.0 - pages_under(&flat.less[3]) / 1000.0;
        assert!((flat.less[3].slowdown - missing).abs() < 1e-3, "{flat:?}");
    }

    #[test]
    fn what_still_rises_is_given_all() {
        // 1,000 pages more in the last 400 ms: 2.5 faults a millisecond, a quarter of the time at 100 µs.
        let rising = verdict(&[1000.0, 2000.0, 3000.0, 4000.0], 1e5, 0.0);
        assert_eq!(rising.ground, Ground::All);
        assert!(rising.give.bytes > PEAK.0 && rising.give.slowdown == 0.0);
        // First references alone are not counted against the limit.
        let fresh = verdict(&[1000.0, 2000.0, 3000.0, 4000.0], 1e5, 0.01);
        assert_eq!(fresh.ground, Ground::Curve);
    }

    #[test]
    fn a_curve_that_bends_is_cut_where_faults_cost_what_was_agreed_to() {
        let bent = verdict(&[1000.0, 1900.0, 2000.0, 2001.0], 1e5, 0.0);
        assert_eq!(bent.ground, Ground::Curve);
        assert!((1900.0..2002.0).contains(&pages_under(&bent.give)), "{bent:?}");
        assert!(bent.give.slowdown <= CAP + 1e-6);
        assert!(bent.less[3].slowdown > 10.0 * CAP, "{bent:?}");
    }
}
