//! Targets: bounds for the ratio of Vellum's figure to another figure, with a verdict for each line.
//!
//! `vellum-campaign` has bounds and verdicts; this file computes a line's ratio from the medians over the
//! rounds. The interval beside it comes from the ratios of single rounds (see `vellum-measure`). Controls
//! are the ratios of two arms that run the *same* allocator; a smaller difference is no result.

use crate::{Sheet, peer};
pub use vellum_campaign::cells::twin;
use vellum_campaign::cells::{paired, ratio};
use vellum_campaign::{Bound, Verdict};
use vellum_measure::{Interval, median};

/// With fewer rounds than this, intervals and controls are unreliable, …
const TELLING_ROUNDS: usize = 3;
/// … so differences up to this ratio count as noise, …
const NOISE_OF_FEW: f64 = 1.10;
/// … or up to this multiple of the difference between the controls, which have only one or two rounds.
const DOUBT_OF_FEW: f64 = 2.0;

/// The figure that Vellum's is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Against {
    /// One arm of the same cell.
    Arm(&'static str),
    /// The arm with the smallest median of these.
    Least(&'static [&'static str]),
    /// The judged arm in another cell.
    Cell(String),
    /// Another figure of the judged arm, plus a constant.
    Figure(&'static str, f64),
    /// Nothing: the figure itself is judged.
    Itself,
}

/// A target of one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The judged arm: Vellum, unless set by [`Target::of`].
    pub own: &'static str,
    /// The figure compared with.
    pub against: Against,
    /// The bound of the ratio. `AtMost` bounds the judged arm's figure over the other; `AtLeast` bounds the
    /// other figure over the judged arm's.
    pub bound: Bound,
    /// For `AtMost`: the target is also met at most this far above the other figure, in its unit.
    pub plus: f64,
}

impl Target {
    /// At most `times` the figure of `against`.
    #[must_use]
    pub fn at_most(times: f64, against: Against) -> Self {
        Self { own: peer::VELLUM, against, bound: Bound::AtMost(times), plus: 0.0 }
    }

    /// At least `times` faster than `against`.
    #[must_use]
    pub fn faster(times: f64, against: Against) -> Self {
        Self { own: peer::VELLUM, against, bound: Bound::AtLeast(times), plus: 0.0 }
    }

    /// The same target for `arm` instead of Vellum.
    #[must_use]
    pub fn of(mut self, arm: &'static str) -> Self {
        self.own = arm;
        self
    }

    /// Also met when at most `plus` above the other figure.
    #[must_use]
    pub fn or_within(mut self, plus: f64) -> Self {
        self.plus = plus;
        self
    }
}

/// A target compared with the figures.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The arm or cell compared with; empty when the figure itself is judged.
    pub against: String,
    /// The judged arm over the other, or the other over it when the target is to be faster.
    pub ratio: Option<f64>,
    /// Its interval from the pairs of each round, when there are pairs.
    pub interval: Option<Interval>,
    /// The bound of the ratio, after adding the slack of [`Target::plus`].
    pub bound: Bound,
    /// The verdict.
    pub verdict: Verdict,
}

/// The difference of two arms of the same allocator: the paired ratio of the second to the first.
#[must_use]
pub fn control(sheet: &Sheet, arm: &str, metric: &str, seed: u64) -> Option<Interval> {
    ratio(sheet, (&twin(arm), metric), (arm, metric), seed)
}

/// Compares the judged arm's `metric` in `sheet` with `target`. `other` finds the sheet of another cell.
#[must_use]
pub fn judge<'a>(
    target: &Target,
    metric: &str,
    sheet: &'a Sheet,
    other: impl Fn(&str) -> Option<&'a Sheet>,
    seed: u64,
) -> Judgement {
    let own = sheet.by_round(target.own, metric);
    let (name, theirs) = rival(target, metric, sheet, other);
    let of = |rounds: &[Option<f64>]| median(&rounds.iter().copied().flatten().collect::<Vec<_>>());
    let (mine, base) = (of(&own), of(&theirs));

    let (ratio, interval, bound) = match target.bound {
        Bound::AtMost(times) => {
            let slack = base.filter(|_| target.plus > 0.0).map_or(0.0, |base| (base + target.plus) / base);
            let ratio = mine.zip(base).map(|(mine, base)| mine / base);
            (ratio, paired(&own, &theirs, seed), Bound::AtMost(times.max(slack)))
        }
        Bound::AtLeast(_) => {
            let ratio = mine.zip(base).map(|(mine, base)| base / mine);
            (ratio, paired(&theirs, &own, seed), target.bound)
        }
    };
    let noise = [peer::GLIBC, peer::VELLUM, name.as_str(), target.own]
        .iter()
        .filter_map(|arm| control(sheet, arm, metric, seed))
        .map(|control| control.estimate.ln().abs())
        .fold(0.0, f64::max);
    let few = own.len() < TELLING_ROUNDS;
    let noise = if few { NOISE_OF_FEW.ln().max(DOUBT_OF_FEW * noise) } else { noise };
    let verdict = ratio.map_or(Verdict::NoData, |ratio| Verdict::of(bound, ratio, interval, Some(noise)));
    Judgement { against: name, ratio, interval, bound, verdict }
}

/// The name and the rounds of the arm or cell compared with.
fn rival<'a>(
    target: &Target,
    metric: &str,
    sheet: &'a Sheet,
    other: impl Fn(&str) -> Option<&'a Sheet>,
) -> (String, Vec<Option<f64>>) {
    match &target.against {
        Against::Arm(arm) => ((*arm).to_owned(), sheet.by_round(arm, metric)),
        Against::Least(arms) => {
            let medians = arms.iter().filter_map(|arm| Some((*arm, median(&sheet.values(arm, metric))?)));
            let least = medians.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(arm, _)| arm);
            least.map_or_else(Default::default, |arm| (arm.to_owned(), sheet.by_round(arm, metric)))
        }
        Against::Cell(cell) => {
            let rounds = other(cell).map(|sheet| sheet.by_round(target.own, metric));
            (cell.clone(), rounds.unwrap_or_default())
        }
        Against::Figure(figure, plus) => {
            let rounds = sheet.by_round(target.own, figure);
            ((*figure).to_owned(), rounds.into_iter().map(|value| Some(value? + plus)).collect())
        }
        Against::Itself => (String::new(), vec![Some(1.0); sheet.by_round(target.own, metric).len()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metrics, Run};

    fn sheet(cell: &str, arms: &[(&str, &[f64])]) -> Sheet {
        let run = |(round, value): (usize, &f64)| {
            let mut metrics = Metrics::new();
            metrics.set("ns", *value);
            Run { round, place: 0, result: Ok(metrics) }
        };
        let runs = |values: &[f64]| values.iter().enumerate().map(run).collect();
        Sheet {
            cell: cell.to_owned(),
            arms: arms.iter().map(|(label, values)| ((*label).to_owned(), runs(values))).collect(),
        }
    }

    fn decide(target: &Target, sheet: &Sheet) -> Judgement {
        judge(target, "ns", sheet, |_| None, 1)
    }

    const STEADY: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.5];

    #[test]
    fn clear_results_are_met_or_missed() {
        let half: Vec<f64> = STEADY.iter().map(|v| v / 2.0).collect();
        let sheet =
            sheet("cell", &[("glibc", STEADY), ("glibc'", STEADY), ("vellum", &half), ("vellum'", &half)]);
        let judged = decide(&Target::at_most(1.02, Against::Arm("glibc")), &sheet);
        assert_eq!((judged.verdict, judged.ratio), (Verdict::Met, Some(0.5)));
        assert_eq!(decide(&Target::faster(1.5, Against::Arm("glibc")), &sheet).verdict, Verdict::Met);
        assert_eq!(decide(&Target::faster(3.0, Against::Arm("glibc")), &sheet).verdict, Verdict::Missed);
        assert_eq!(decide(&Target::at_most(0.4, Against::Arm("glibc")), &sheet).verdict, Verdict::Missed);
        assert_eq!(decide(&Target::at_most(60.0, Against::Itself), &sheet).verdict, Verdict::Met);
    }

    #[test]
    fn differences_within_the_control_are_noise() {
        // Two arms of glibc differ by 10 %, so a figure closer than that to the limit is within noise.
        let off: Vec<f64> = STEADY.iter().map(|v| v * 1.1).collect();
        let near: Vec<f64> = STEADY.iter().map(|v| v * 1.05).collect();
        let sheet = sheet("cell", &[("glibc", STEADY), ("glibc'", &off), ("vellum", &near)]);
        assert_eq!(
            decide(&Target::at_most(1.02, Against::Arm("glibc")), &sheet).verdict,
            Verdict::MissedWithinNoise
        );
        assert_eq!(
            decide(&Target::at_most(1.08, Against::Arm("glibc")), &sheet).verdict,
            Verdict::MetWithinNoise
        );
    }

    #[test]
    fn the_least_arm_is_chosen_among_arms_with_figures() {
        let target = Target::at_most(1.0, Against::Least(&["absent", "b", "c"]));
        let judged = decide(&target, &sheet("cell", &[("b", &[3.0]), ("c", &[2.0]), ("vellum", &[1.0])]));
        assert_eq!(judged.verdict, Verdict::Met);
        assert_eq!((judged.against.as_str(), judged.ratio), ("c", Some(0.5)));
        assert_eq!(decide(&target, &sheet("cell", &[("vellum", &[1.0])])).verdict, Verdict::NoData);
        assert_eq!(decide(&target, &sheet("cell", &[("b", &[3.0])])).verdict, Verdict::NoData);
    }

    #[test]
    fn slack_counts_for_small_figures() {
        let small = sheet("cell", &[("glibc", &[10.0]), ("vellum", &[12.0])]);
        let target = Target::at_most(1.05, Against::Arm("glibc"));
        assert_eq!(decide(&target, &small).verdict, Verdict::Missed);
        let judged = decide(&target.or_within(4.0), &small);
        assert_eq!(judged.verdict, Verdict::Met);
        assert!((judged.bound.limit() - 1.4).abs() < 1e-12);
    }

    #[test]
    fn a_single_round_shows_only_large_differences() {
        let single = sheet("cell", &[("glibc", &[1.0]), ("vellum", &[1.05])]);
        assert_eq!(
            decide(&Target::at_most(1.02, Against::Arm("glibc")), &single).verdict,
            Verdict::MissedWithinNoise
        );
        assert_eq!(decide(&Target::at_most(0.80, Against::Arm("glibc")), &single).verdict, Verdict::Missed);
        let unsteady =
            sheet("cell", &[("glibc", &[1.0]), ("glibc'", &[0.8]), ("vellum", &[1.3]), ("vellum'", &[1.3])]);
        let judged = decide(&Target::at_most(1.02, Against::Arm("glibc")), &unsteady);
        assert_eq!(
            judged.verdict,
            Verdict::MissedWithinNoise,
            "1.3 / 1.02 is more than 1 / 0.8 but not its square"
        );
    }

    #[test]
    fn another_arm_can_be_judged_against_its_own_figures() {
        let both = sheet("cell", &[("libgc", &[10.0]), ("mark_sweep", &[4.0])]);
        let target = Target::at_most(0.5, Against::Arm("libgc")).of("mark_sweep");
        assert_eq!((decide(&target, &both).verdict, decide(&target, &both).ratio), (Verdict::Met, Some(0.4)));
        let target = Target::at_most(1.2, Against::Figure("ns", 1.0)).of("mark_sweep");
        assert_eq!(decide(&target, &both).ratio, Some(0.8));
        assert_eq!(decide(&Target::at_most(1.0, Against::Arm("libgc")), &both).verdict, Verdict::NoData);
    }

    #[test]
    fn a_target_can_compare_with_another_cell() {
        let (big, small) = (sheet("big", &[("vellum", &[30.0])]), sheet("small", &[("vellum", &[20.0])]));
        let target = Target::at_most(2.0, Against::Cell("small".to_owned()));
        let judged = judge(&target, "ns", &big, |name| (name == "small").then_some(&small), 1);
        assert_eq!((judged.verdict, judged.ratio), (Verdict::Met, Some(1.5)));
    }
}
