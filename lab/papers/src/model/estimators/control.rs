//! Vellum's controller of a job's window (how long unused pages stay). It uses all measurements of a phase.
//!
//! The controller of Nishigaki 1981 ([`Owe`](super::Owe)) averages over about three intervals. A job has
//! at most one fault in that time, so its fault rates are mostly noise, and so is the window of the least
//! product (see [`Estimator`](super::Estimator)). While a job's behaviour stays the same, an average can
//! cover more time. This controller
//!
//! - keeps a [`History`] of the working-set size w at all windows since the phase began, and finds the
//!   [`knee`] of its mean, concave curve;
//! - reviews the curve each time that the history has grown by an eighth: often at first, rarely later.
//!   The job thus pays for the estimation only while there is something to learn (the paper leaves the
//!   cost open);
//! - drops the history when the phase changes ([`Phase`]), because the history is of pages that the job no
//!   longer uses. The window then restarts at its initial length if that is shorter: a long window would
//!   keep those pages for its whole length.
//!
//! ```text
//! w(t, Δ) … w(t, HΔ) ─▶ History ─▶ mean curve ─▶ knee ─▶ window, if it is worth changing
//!            └────────▶ Phase (two windows) ─▶ restart
//! ```
//!
//! Pages are evicted at sample points only. With a window of m intervals, a page stays for m to m + 1
//! intervals, m + ½ on average. The controller sets the window whose average is nearest to the knee.
//!
//! Windows longer than half of the history are not considered, because too little of their past was
//! sampled. The range therefore grows with the history. In the paper it grows by one interval at a time.
//!
//! Source: Nishigaki 1981, section 3, for the product to minimise; the estimation is ours.

use super::{Phase, Quanta};
use vellum_workset::{Curve, Demand, History, Judged, Ticks, knee};

/// The curve is reviewed each time the history has grown by one part in this many.
const REVIEW_PART: u64 = 8;
/// Samples before the first review.
const REVIEW_FIRST: u64 = 8;
/// The window changes only if the product falls by at least this part.
const GAIN_MIN: f64 = 0.002;

/// The controller of a job's window.
#[derive(Debug, Clone)]
pub struct Control {
    demand: Demand,
    delta: Ticks,
    start: Quanta,
    window: Quanta,
    window_max: Quanta,
    history: History,
    phases: [(Quanta, Phase); 2],
    /// The number of samples at the next review.
    next: u64,
    reviews: u64,
}

impl Control {
    /// A controller without a history, with `window` until the first review. Windows are judged, and set, up
    /// to `window_max`.
    #[must_use]
    pub fn new(delta: Ticks, demand: Demand, window: Quanta, window_max: Quanta) -> Self {
        let window_max = window_max.max(Quanta(2));
        // Two more windows are needed: the slope at the largest allowed window needs neighbours.
        let windows = (1..=window_max.0 + 2).map(|m| Quanta(m).of(delta).as_f64()).collect();
        let start = window.clamp(Quanta(1), window_max);
        let watched = [Quanta((window_max.0 / 4).max(1)), window_max];
        Self {
            demand,
            delta,
            start,
            window: start,
            window_max,
            history: History::new(windows, 1.0),
            phases: watched.map(|window| (window, Phase::new(u64::from(window.0)))),
            next: REVIEW_FIRST,
            reviews: 0,
        }
    }

    /// A sample point, one interval after the last. `sets[m − 1]` = w(t, m·Δ) before any eviction, for as
    /// many windows as are available. Returns the new window: evict pages whose counters have at least that
    /// many intervals.
    pub fn observe(&mut self, sets: &[u64]) -> Quanta {
        self.look_for_change(sets);
        let known = sets.len().min(self.history.samples() as usize + 1);
        let pages: Vec<f64> =
            sets[..known].iter().take(self.history.windows().len()).map(|w| *w as f64).collect();
        self.history.push(self.delta.as_f64(), &pages, &[]);
        if self.history.samples() >= self.next {
            self.review();
        }
        self.window
    }

    /// Sets a new measurement of S, in ticks.
    pub fn set_delay(&mut self, delay: f64) {
        self.demand.delay = delay;
    }

    /// The number of reviews in every phase so far.
    #[must_use]
    pub fn reviews(&self) -> u64 {
        self.reviews
    }

    fn look_for_change(&mut self, sets: &[u64]) {
        let mut changed = false;
        for (window, phase) in &mut self.phases {
            if let Some(w) = sets.get(window.0 as usize - 1) {
                changed |= phase.changed(*w as f64);
            }
        }
        if changed {
            self.history.restart();
            self.phases.iter_mut().for_each(|(window, phase)| *phase = Phase::new(u64::from(window.0)));
            self.window = self.window.min(self.start);
            self.next = REVIEW_FIRST;
        }
    }

    fn review(&mut self) {
        let samples = self.history.samples();
        self.next = samples + (samples / REVIEW_PART).max(1);
        let Some(curve) = self.judged_part() else { return };
        self.reviews += 1;
        let watched = self.delta.as_f64() * samples as f64;
        let demand = Demand { noise: self.demand.noise.max(1.0 / watched), ..self.demand };
        let choice = knee(&curve, &demand).choice();
        let now = curve.at(self.middle(self.window));
        if now.is_none_or(|now| worth_changing(&demand, now.window, &curve, choice)) {
            let quanta = choice.point.window / self.delta.as_f64() - 0.5;
            self.window = Quanta((quanta.round() as u32).clamp(1, self.window_max.0));
        }
    }

    /// The mean curve up to half of the watch and to the largest allowed window.
    fn judged_part(&self) -> Option<Curve> {
        let half = self.delta.as_f64() * self.history.samples() as f64 / 2.0;
        self.history.mean()?.up_to(half.min(self.middle(self.window_max) + 0.5 * self.delta.as_f64()))
    }

    /// The average time that a page stays.
    fn middle(&self, window: Quanta) -> f64 {
        window.of(self.delta).as_f64() + self.delta.as_f64() / 2.0
    }
}

fn worth_changing(demand: &Demand, window: f64, curve: &Curve, choice: Judged) -> bool {
    let Some(now) = curve.at(window).map(|point| demand.judge(point)) else { return true };
    let within_cap = demand.cap.is_none_or(|cap| now.waiting <= cap);
    !within_cap || choice.product < now.product * (1.0 - GAIN_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_workset::Criterion;

    const DELTA: Ticks = Ticks(1000);

    fn control(delay: f64) -> Control {
        let demand = Demand::uncapped(Criterion::ProcessorEfficiency, delay);
        Control::new(DELTA, demand, Quanta(3), Quanta(20))
    }

    /// n pages, each referenced at random at this rate a tick.
    fn sets(n: f64, rate: f64) -> Vec<u64> {
        (1..=22).map(|m| (n * (1.0 - (-rate * f64::from(m) * 1000.0).exp())).round() as u64).collect()
    }

    #[test]
    fn a_stationary_job_is_reviewed_less_and_less_often() {
        let mut control = control(5000.0);
        let sets = sets(2000.0, 1e-3);
        for _ in 0..10_000 {
            control.observe(&sets);
        }
        assert!((30..120).contains(&control.reviews()), "{} reviews", control.reviews());
        assert_eq!(control.history.samples(), 10_000, "no change of phase");
        // By hand: X = 2000·(1 − u)·(1 + 10⁴·u) with u = e^(−T/1000) still falls at 10 intervals.
        assert!((9..=16).contains(&control.window.0), "{:?}", control.window);
    }

    #[test]
    fn the_window_holds_until_a_review_and_follows_a_change() {
        let mut control = control(5000.0);
        for _ in 0..REVIEW_FIRST - 1 {
            assert_eq!(control.observe(&sets(2000.0, 1e-3)), Quanta(3));
        }
        for _ in 0..200 {
            control.observe(&sets(2000.0, 1e-3));
        }
        // A scan: a hundred new pages an interval, never referenced again. The smallest window is best.
        let walk: Vec<u64> = (1..=22).map(|m| m * 100).collect();
        for _ in 0..200 {
            control.observe(&walk);
        }
        assert_eq!(control.window, Quanta(1));
        assert!(control.history.samples() < 200, "one change of phase");
    }

    #[test]
    fn with_only_resident_pages_the_window_widens() {
        let mut control = control(5.0);
        let all = sets(2e6, 1e-3);
        for _ in 0..400 {
            let known = control.window.0 as usize + 1;
            control.observe(&all[..known]);
        }
        assert!(control.window.0 >= 9, "{:?}", control.window);
    }
}
