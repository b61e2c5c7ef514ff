//! Finds the knee of a working-set curve, if any: the window of the least space-time product X (or Y).
//!
//! ```text
//!  X ┤╲                      ╲                        ╲                      ╱
//!    ┤ ╲      __╱             ╲                        ╲__________        ╱
//!    ┤  ╲__╱╲╱                 ╲_____                             ╲____╱
//!    └───────────▶ T          └──────────▶ T            └────────────▶  └─────▶ T
//!      a knee                  needs nothing more:       takes all it is given:
//!                              the whole program is in   still gaining   or never gaining
//! ```
//!
//! The rule, with S the delay of a fault and a cap ε on S·f (the time waited for each tick of work):
//!
//! 1. Among the windows with S·f(T) ≤ ε, the window of the least product.
//! 2. If no window meets the cap, the rightmost real dip of the product (a local minimum, deeper than
//!    [`DIP_MIN`] on both sides).
//! 3. If there is no such minimum, the program uses any amount of memory.
//!
//! Without a cap this is the rule of Nishigaki 1981, which degenerates if S is small. At 20 µs per fault, a
//! program that runs well in 64 MiB can have the least product at almost no memory, where it thrashes. Its
//! owner would reject this. The cap is the wait that the owner accepts. The lifetime criterion degenerates
//! the other way: Y is 0 at any window without a fault. Fault rates below `noise` are therefore replaced by
//! `noise`.
//!
//! If two products hardly differ ([`SAME`]), the smaller window wins.
//!
//! Source: Nishigaki 1981, section 2; the cap, the dip and the two answers without a knee are ours.

use serde::{Deserialize, Serialize};

use crate::criterion::Criterion;
use crate::curve::{Curve, Point};

/// The usual cap on S·f: 2 % slower than with all memory.
pub const CAP: f64 = 0.02;
/// A local minimum counts if the product rises by this part on both sides.
pub const DIP_MIN: f64 = 0.01;
/// Products that differ by at most this part count as equal.
pub const SAME: f64 = 1e-4;
/// The whole program is resident if the largest window holds at most this part more …
pub const EVERYTHING: f64 = 0.02;
/// … and, without a cap, the wait for a tick of work is at most this.
pub const NO_WAITING: f64 = 1e-3;

/// The approximate number of windows that are compared.
const LOOKED_AT: usize = 512;

/// The parameters of a search for the knee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// The product to minimise.
    pub criterion: Criterion,
    /// S: the delay of a fault, in the curve's ticks. It should be measured for the job and the device.
    pub delay: f64,
    /// ε: the longest accepted wait for a tick of work; `None` for the source's rule alone.
    pub cap: Option<f64>,
    /// Fault rates below this (faults a tick) cannot be distinguished from none, such as one fault over the
    /// time watched.
    pub noise: f64,
    /// Faults a tick that come at any memory size, and do not count: the first references of a program
    /// watched from its start. If the watch began later, first references count, because they may be to
    /// evicted pages.
    pub unavoidable: f64,
}

impl Demand {
    /// The PE-knee under the usual [`CAP`], with exact fault rates.
    #[must_use]
    pub fn new(delay: f64) -> Self {
        Self {
            criterion: Criterion::ProcessorEfficiency,
            delay,
            cap: Some(CAP),
            noise: 0.0,
            unavoidable: 0.0,
        }
    }

    /// The source's rule alone: the least product, however long the wait.
    #[must_use]
    pub fn uncapped(criterion: Criterion, delay: f64) -> Self {
        Self { criterion, delay, cap: None, noise: 0.0, unavoidable: 0.0 }
    }

    /// The cost of a point of the curve.
    #[must_use]
    pub fn judge(&self, point: Point) -> Judged {
        let faults = (point.faults - self.unavoidable).max(0.0);
        Judged {
            point,
            product: self.criterion.product(point.pages, faults.max(self.noise), self.delay),
            waiting: self.delay * faults,
        }
    }
}

/// A window with its cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The window, its pages and its fault rate.
    pub point: Point,
    /// X or Y there, in pages.
    pub product: f64,
    /// S·f there, less the unavoidable faults: ticks of waiting for a tick of work.
    pub waiting: f64,
}

/// The result of the search for a knee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "answer")]
pub enum Answer {
    /// A window is better than smaller and larger ones.
    Knee(Judged),
    /// The window holds all pages that the program references: more memory would change nothing.
    NeedsNothingMore(Judged),
    /// No knee in the range of windows: either all are equally good, or each larger one is better.
    TakesAll {
        /// The smallest window of the range.
        least: Judged,
        /// The largest window of the range.
        most: Judged,
        /// True if the product still falls at the largest window. If not, the smallest window is the best.
        gaining: bool,
    },
}

impl Answer {
    /// The window to set: the knee. Without a knee, the largest window of the range if the product still
    /// falls there, else the smallest.
    #[must_use]
    pub fn choice(&self) -> Judged {
        match *self {
            Self::Knee(judged) | Self::NeedsNothingMore(judged) => judged,
            Self::TakesAll { most, gaining: true, .. } => most,
            Self::TakesAll { least, .. } => least,
        }
    }

    /// A few words for a report.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self {
            Self::Knee(_) => "knee",
            Self::NeedsNothingMore(_) => "needs nothing more",
            Self::TakesAll { .. } => "takes all it is given",
        }
    }
}

/// Finds the knee of the curve under `demand`.
#[must_use]
pub fn knee(curve: &Curve, demand: &Demand) -> Answer {
    let more = LOOKED_AT / curve.points().len();
    let judged: Vec<Judged> = curve.refined(more).map(|point| demand.judge(point)).collect();
    let (first, last) = (judged[0], judged[judged.len() - 1]);
    let all_in = |at: Judged| {
        last.point.pages <= at.point.pages * (1.0 + EVERYTHING)
            && last.waiting <= demand.cap.unwrap_or(NO_WAITING)
    };
    let found = match demand.cap {
        Some(cap) => least(judged.iter().filter(|at| at.waiting <= cap)).or_else(|| rightmost_dip(&judged)),
        // At an end of the range, the least product is not a knee.
        None => least(judged.iter()).filter(|at| all_in(*at) || (*at != first && *at != last)),
    };
    match found {
        Some(at) if all_in(at) => Answer::NeedsNothingMore(at),
        Some(at) => Answer::Knee(at),
        None => Answer::TakesAll { least: first, most: last, gaining: last.product < first.product },
    }
}

/// The least product; of equal ones, the smallest window.
fn least<'a>(judged: impl Iterator<Item = &'a Judged> + Clone) -> Option<Judged> {
    let least = judged.clone().map(|at| at.product).reduce(f64::min)?;
    judged.into_iter().find(|at| at.product <= least * (1.0 + SAME)).copied()
}

fn rightmost_dip(judged: &[Judged]) -> Option<Judged> {
    let mut highest_after = f64::NEG_INFINITY;
    for at in (0..judged.len()).rev() {
        let product = judged[at].product;
        let deep = product * (1.0 + DIP_MIN);
        // A minimum of everything from the last rise on: before it, the product must first climb before it
        // falls lower.
        let before = judged[..at].iter().rev().map(|other| other.product);
        let climbs = before.take_while(|other| *other >= product).any(|other| other > deep);
        if highest_after > deep && climbs {
            return Some(judged[at]);
        }
        highest_after = highest_after.max(product);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of pages in groups, each page referenced at random at its group's rate.
    fn program(groups: &[(f64, f64)], windows: std::ops::Range<i32>) -> Curve {
        let windows: Vec<f64> = windows.map(|i| 2f64.powf(f64::from(i) / 4.0)).collect();
        let sum = |of: &dyn Fn(f64, f64, f64) -> f64| -> Vec<f64> {
            windows.iter().map(|w| groups.iter().map(|(n, rate)| of(*n, *rate, *w)).sum()).collect()
        };
        let pages = sum(&|n, rate, w| n * (1.0 - (-rate * w).exp()));
        let faults = sum(&|n, rate, w| n * rate * (-rate * w).exp());
        Curve::of_counts(&windows, &pages, &faults).unwrap()
    }

    #[test]
    fn a_locality_with_a_cold_rest_has_its_knee_at_the_locality() {
        // 100 hot pages, and 1,000 touched every 10⁷ ticks: at S = 100 the rest costs 1 % and stays out.
        let curve = program(&[(100.0, 1e-3), (1000.0, 1e-7)], 20..70);
        for demand in [Demand::new(100.0), Demand { cap: Some(0.05), ..Demand::new(100.0) }] {
            let Answer::Knee(at) = knee(&curve, &demand) else { panic!("{:?}", knee(&curve, &demand)) };
            assert!((95.0..115.0).contains(&at.point.pages), "{at:?}");
            assert!(at.waiting <= demand.cap.unwrap());
        }
    }

    #[test]
    fn the_least_product_alone_degenerates_where_a_fault_is_cheap() {
        // S·f is 2 with no pages held, so the least product is at a page or two, at three times the time.
        let curve = program(&[(100.0, 2e-4), (1000.0, 1e-9)], 4..80);
        let plain = knee(&curve, &Demand::uncapped(Criterion::ProcessorEfficiency, 100.0));
        assert!(plain.choice().point.pages < 1.0, "{plain:?}");
        let capped = knee(&curve, &Demand::new(100.0));
        assert!((95.0..115.0).contains(&capped.choice().point.pages), "{capped:?}");
    }

    #[test]
    fn where_no_window_meets_the_cap_a_dip_is_taken() {
        // The hot pages' dip is real; the cold pages cost 10 % at any window of the range.
        let curve = program(&[(100.0, 1e-3), (1000.0, 1e-8)], 20..80);
        let demand = Demand { cap: Some(0.02), ..Demand::new(10_000.0) };
        let Answer::Knee(at) = knee(&curve, &demand) else { panic!("{:?}", knee(&curve, &demand)) };
        assert!((98.0..105.0).contains(&at.point.pages) && at.waiting > 0.02, "{at:?}");
    }

    #[test]
    fn a_program_that_is_all_in_needs_nothing_more() {
        let curve = program(&[(100.0, 1e-3)], 20..70);
        for demand in [Demand::new(100.0), Demand::uncapped(Criterion::Lifetime, 1e6)] {
            let answer = knee(&curve, &demand);
            assert!(matches!(answer, Answer::NeedsNothingMore(at) if at.point.pages > 98.0), "{answer:?}");
        }
        // Even the smallest window holds all pages.
        let answer = knee(&program(&[(100.0, 1e-1)], 40..60), &Demand::new(100.0));
        assert!(matches!(answer, Answer::NeedsNothingMore(at) if at.point.window == 1024.0), "{answer:?}");
    }

    #[test]
    fn a_scan_has_no_knee_and_the_smallest_window_is_best() {
        let windows: Vec<f64> = (1..50).map(|m| f64::from(m) * 1000.0).collect();
        let pages: Vec<f64> = windows.iter().map(|w| w / 100.0).collect();
        let curve = Curve::of_sets(&windows, &pages).unwrap();
        for demand in [Demand::new(1000.0), Demand::uncapped(Criterion::Lifetime, 1000.0)] {
            let answer = knee(&curve, &demand);
            assert!(matches!(answer, Answer::TakesAll { gaining: false, .. }), "{answer:?}");
            assert_eq!(answer.choice().point.window, 1000.0);
        }
    }

    #[test]
    fn a_program_larger_than_the_range_takes_all() {
        // The range has only the steep beginning.
        let curve = program(&[(10_000.0, 1e-5)], 60..72);
        let answer = knee(&curve, &Demand::new(1000.0));
        assert!(matches!(answer, Answer::TakesAll { gaining: true, .. }), "{answer:?}");
        assert_eq!(answer.choice().point, curve.last());
    }

    #[test]
    fn first_references_of_a_program_watched_from_its_start_are_no_waiting() {
        // A hundred hot pages, and a new one every thousand ticks that is never referenced again.
        let windows: Vec<f64> = (20..70).map(|i| 2f64.powf(f64::from(i) / 4.0)).collect();
        let hot = |w: f64| 100.0 * (1.0 - (-1e-2 * w).exp());
        let pages: Vec<f64> = windows.iter().map(|w| hot(*w) + 1e-3 * w).collect();
        let faults: Vec<f64> = windows.iter().map(|w| 100.0 * 1e-2 * (-1e-2 * w).exp() + 1e-3).collect();
        let curve = Curve::of_counts(&windows, &pages, &faults).unwrap();
        let from_start = Demand { unavoidable: 1e-3, ..Demand::new(1000.0) };
        let Answer::Knee(at) = knee(&curve, &from_start) else { panic!("{:?}", knee(&curve, &from_start)) };
        assert!((99.0..103.0).contains(&at.point.pages) && at.waiting <= CAP, "{at:?}");
        let midway = knee(&curve, &Demand::new(1000.0)).choice();
        assert!(midway.waiting > 0.9, "a page that was touched before costs S each time: {midway:?}");
    }

    #[test]
    fn faults_below_noise_do_not_move_the_lifetime_knee() {
        let curve = program(&[(100.0, 1e-3), (50.0, 1e-8)], 20..80);
        let demand = Demand { noise: 1e-6, ..Demand::uncapped(Criterion::Lifetime, 1000.0) };
        let at = knee(&curve, &demand).choice();
        assert!((99.0..102.0).contains(&at.point.pages), "{at:?}");
    }
}
