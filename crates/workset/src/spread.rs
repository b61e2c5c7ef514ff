//! Computes the confidence interval of a knee, by resampling the history (bootstrap).
//!
//! A [`History`] has batches of neighbouring samples. Each of many drawings takes as many batches as there
//! are, with replacement. The mean curve of a drawing has a knee; the interval holds nearly all of these
//! knees (Efron 1979). Neighbouring samples resemble each other, so batches are drawn and not single samples.
//!
//! With fewer than [`BATCHES_MIN`] batches there is no result, because these do not show the spread.

use serde::{Deserialize, Serialize};

use crate::history::History;
use crate::knee::{Answer, Demand, knee};
use vellum_random::Rng;

/// The fewest batches for an interval.
pub const BATCHES_MIN: usize = 8;
/// The number of drawings of the history.
pub const DRAWS: usize = 200;
/// The part of the drawings inside the interval.
pub const CONFIDENCE: f64 = 0.95;

/// An interval that includes both ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The confidence interval of a knee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The window, in ticks.
    pub window: Range,
    /// The pages it holds.
    pub pages: Range,
    /// The wait for a tick of work.
    pub waiting: Range,
    /// The part of the drawings with a result of the same kind as the whole history's.
    pub agreement: f64,
}

/// The spread of the knee under `demand`; `None` with fewer than [`BATCHES_MIN`] batches.
#[must_use]
pub fn spread(history: &History, demand: &Demand, seed: u64) -> Option<Spread> {
    let batches = history.batches();
    if batches < BATCHES_MIN {
        return None;
    }
    let kind = |answer: &Answer| std::mem::discriminant(answer);
    let whole = kind(&knee(&history.mean()?, demand));
    let mut random = Rng::new(seed);
    let draws: Vec<Answer> = (0..DRAWS)
        .filter_map(|_| {
            let mut drawn = vec![0.0; batches];
            (0..batches).for_each(|_| drawn[random.index(batches)] += 1.0);
            Some(knee(&history.weighted(&drawn)?, demand))
        })
        .collect();
    let same = draws.iter().filter(|answer| kind(answer) == whole).count();
    Some(Spread {
        window: range(draws.iter().map(|answer| answer.choice().point.window))?,
        pages: range(draws.iter().map(|answer| answer.choice().point.pages))?,
        waiting: range(draws.iter().map(|answer| answer.choice().waiting))?,
        agreement: same as f64 / draws.len() as f64,
    })
}

fn range(values: impl Iterator<Item = f64>) -> Option<Range> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let beyond = (values.len() as f64 * (1.0 - CONFIDENCE) / 2.0) as usize;
    Some(Range { low: *values.get(beyond)?, high: values[values.len() - 1 - beyond] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::Criterion;

    /// Batches with a locality of about 100 pages.
    fn history(noise: f64) -> History {
        let windows: Vec<f64> = (0..24).map(|i| 2f64.powf(f64::from(i) / 2.0) * 100.0).collect();
        let (mut history, mut random) = (History::new(windows.clone(), 1.0), Rng::new(3));
        for _ in 0..40 {
            let n = 100.0 + noise * (random.unit() - 0.5);
            let pages: Vec<f64> = windows
                .iter()
                .map(|w| n * (1.0 - (-w * 1e-3).exp()) + 500.0 * (1.0 - (-w * 1e-8).exp()))
                .collect();
            history.push(1.0, &pages, &[]);
        }
        history
    }

    #[test]
    fn more_noise_gives_more_spread_around_the_knee() {
        let demand = Demand::uncapped(Criterion::ProcessorEfficiency, 1e4);
        let [quiet, loud] = [2.0, 40.0].map(|noise| {
            let history = history(noise);
            let at = knee(&history.mean().unwrap(), &demand).choice();
            let spread = spread(&history, &demand, 9).unwrap();
            assert!((spread.pages.low..=spread.pages.high).contains(&at.point.pages), "{spread:?} {at:?}");
            spread
        });
        assert!(loud.pages.high - loud.pages.low > 3.0 * (quiet.pages.high - quiet.pages.low));
        assert!(quiet.pages.low > 98.0 && quiet.pages.high < 104.0 && quiet.agreement > 0.95, "{quiet:?}");
    }

    #[test]
    fn few_batches_have_no_spread() {
        let mut history = History::new(vec![1.0, 2.0], 1.0);
        (0..BATCHES_MIN - 1).for_each(|_| history.push(1.0, &[1.0, 2.0], &[]));
        assert_eq!(spread(&history, &Demand::new(1.0), 1), None);
    }
}
