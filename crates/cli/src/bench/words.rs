//! Writes the verdict of a comparison as a sentence: which program is slower, and by how much.

use super::args::Metric;
use vellum_measure::{Direction, Interval, Ratios, percent};

/// From this factor on, "times as long" is easier to read than a percentage.
const TIMES_FROM: f64 = 1.5;

/// The verdict in one sentence: which program is slower or does more, by how much, and whether that is shown.
///
/// `found` has the ratio of b to a. If only the control prevents a result, the interval includes the control.
pub(super) fn verdict(metric: Metric, found: &Ratios, direction: Direction, [a, b]: [&str; 2]) -> String {
    let ratio = found.ratio;
    if metric == Metric::Instructions && direction != Direction::NotShown {
        let (word, near, far) = match direction {
            Direction::More => ("more", ratio.low, ratio.high),
            _ => ("fewer", ratio.high, ratio.low),
        };
        return if ratio.estimate >= TIMES_FROM {
            format!("{b} executes {} as many instructions as {a}: shown", times(ratio))
        } else {
            let (size, span) = (unsigned(ratio.estimate), span(near, far));
            format!("{b} executes {size} {word} instructions than {a} ({span}): shown")
        };
    }
    match direction {
        Direction::NotShown => {
            let estimate = percent(ratio.estimate);
            let apart = ratio.low > 1.0 || ratio.high < 1.0;
            let all = with_control(found);
            let (range, why) = match (apart, all.contains(1.0)) {
                (false, _) => (range(ratio), String::new()),
                (true, true) => (range(all), format!(", counting what {a} shows against itself")),
                (true, false) => (range(ratio), " from too few rounds".to_owned()),
            };
            format!("no difference between {b} and {a} is shown: {estimate} ({range}{why})")
        }
        Direction::More if ratio.estimate >= TIMES_FROM => {
            format!("{b} takes {} as long as {a}: shown", times(ratio))
        }
        Direction::Less if 1.0 / ratio.estimate >= TIMES_FROM => {
            let inverse =
                Interval { estimate: 1.0 / ratio.estimate, low: 1.0 / ratio.high, high: 1.0 / ratio.low };
            format!("{b} is {} as fast as {a}: shown", times(inverse))
        }
        Direction::More => {
            let (size, span) = (unsigned(ratio.estimate), span(ratio.low, ratio.high));
            format!("{b} is {size} slower than {a} ({span}): shown")
        }
        Direction::Less => {
            let (size, span) = (unsigned(ratio.estimate), span(ratio.high, ratio.low));
            format!("{b} takes {size} less time than {a} ({span}): shown")
        }
    }
}

/// The interval of the ratio of b to a, widened by the control.
pub(super) fn with_control(found: &Ratios) -> Interval {
    let (ratio, control) = (found.ratio, found.control);
    Interval { low: ratio.low / control.high.max(1.0), high: ratio.high / control.low.min(1.0), ..ratio }
}

/// An interval as text: "-0.5 to +1.1 %".
pub(super) fn range(ratio: Interval) -> String {
    let low = percent(ratio.low);
    format!("{} to {}", low.trim_end_matches(" %"), percent(ratio.high))
}

/// An interval as text, the smaller change first: "0.8 to 1.2 %".
fn span(near: f64, far: f64) -> String {
    format!("{} to {}", unsigned(near).trim_end_matches(" %"), unsigned(far))
}

/// The distance of a ratio from one, without its sign: "1.0 %".
fn unsigned(ratio: f64) -> String {
    percent(ratio).trim_start_matches(['+', '-']).to_owned()
}

/// A ratio as text: "2.00 times (1.98 to 2.02)".
fn times(ratio: Interval) -> String {
    let digits = |value: f64| if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") };
    format!("{} times ({} to {})", digits(ratio.estimate), digits(ratio.low), digits(ratio.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Estimator;

    #[test]
    fn every_verdict_has_a_sentence() {
        use Direction::{Less, More, NotShown};
        use Metric::{Cpu, Instructions};
        let control = Interval { estimate: 1.0, low: 0.996, high: 1.006 };
        for (metric, [estimate, low, high], direction, expected) in [
            (Cpu, [1.00995, 1.008, 1.012], More, "new is 0.995 % slower than old (0.800 to 1.20 %): shown"),
            (Cpu, [0.85, 0.83, 0.87], Less, "new takes 15.0 % less time than old (13.0 to 17.0 %): shown"),
            (Cpu, [2.0, 1.98, 2.02], More, "new takes 2.00 times (1.98 to 2.02) as long as old: shown"),
            (Cpu, [0.5, 0.25, 0.625], Less, "new is 2.00 times (1.60 to 4.00) as fast as old: shown"),
            (
                Cpu,
                [1.003, 0.995, 1.011],
                NotShown,
                "no difference between new and old is shown: +0.300 % (-0.500 to +1.10 %)",
            ),
            (
                Cpu,
                [1.0088, 1.0041, 1.0164],
                NotShown,
                "no difference between new and old is shown: +0.880 % (-0.189 to +2.05 %, counting what old shows against itself)",
            ),
            (
                Cpu,
                [1.5, 1.4, 1.6],
                NotShown,
                "no difference between new and old is shown: +50.0 % (+40.0 to +60.0 % from too few rounds)",
            ),
            (
                Instructions,
                [1.01, 1.008, 1.012],
                More,
                "new executes 1.00 % more instructions than old (0.800 to 1.20 %): shown",
            ),
            (
                Instructions,
                [0.5, 0.4, 0.6],
                Less,
                "new executes 50.0 % fewer instructions than old (40.0 to 60.0 %): shown",
            ),
            (
                Instructions,
                [2.0, 1.98, 2.02],
                More,
                "new executes 2.00 times (1.98 to 2.02) as many instructions as old: shown",
            ),
        ] {
            let ratio = Interval { estimate, low, high };
            let found = Ratios { estimator: Estimator::Quantile(0.1), ratio, control };
            assert_eq!(verdict(metric, &found, direction, ["old", "new"]), expected);
        }
    }
}
