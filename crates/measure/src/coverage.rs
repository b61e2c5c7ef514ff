//! Simulates timings to test whether the stated 95 % intervals contain the true value in 95 of 100 cases.
//!
//! A small simulation runs with the ordinary tests. This command prints the whole table:
//!
//! ```text
//! cargo test --release -p vellum-measure coverage -- --ignored --nocapture
//! ```
//!
//! Each line is a kind of series whose true middle is 0, each column an estimator. A cell shows the share of
//! intervals that contain 0, and their mean width relative to the ideal width: 3.92 standard deviations of
//! the estimator over all trials.

use crate::noise::Noise;
use crate::{Estimator, Interval, Plan, resampled};

const TRIMMED: Estimator = Estimator::Trimmed { floor: 0.0 };

/// Makes a series of log-ratios around 0, of the given length.
type Make = fn(&mut Noise, usize) -> Vec<f64>;

/// The least acceptable coverage of a stated 95 % interval, from 50 pairs on.
const COVERED_MIN: f64 = 0.93;

/// Pairs in the small run.
const SMALL: usize = 60;

/// Kinds of series that reach the tested widths within 100 to 10,000 rounds, and the most rounds that takes.
const UNIT_SCATTER: [&str; 4] = ["independent", "follows 0.3", "follows 0.5", "student 2"];
const ROUNDS_STOPPED_MAX: usize = 20_000;

const KINDS: [(&str, Make); 11] = [
    ("independent", |noise, n| noise.white(n)),
    ("follows 0.3", |noise, n| noise.following(n, 0.3)),
    ("follows 0.5", |noise, n| noise.following(n, 0.5)),
    ("follows 0.8", |noise, n| noise.following(n, 0.8)),
    ("against -0.3", |noise, n| noise.following(n, -0.3)),
    ("student 2", |noise, n| (0..n).map(|_| student_2(noise)).collect()),
    ("one in ten wild", |noise, n| {
        let values = noise.white(n);
        disturbed(noise, values)
    }),
    ("0.5, student 2", |noise, n| {
        let mut level = 0.0;
        let mut next = || {
            level = 0.5 * level + student_2(noise);
            level
        };
        (0..n + 50).map(|_| next()).skip(50).collect()
    }),
    ("0.8, one in ten wild", |noise, n| {
        let values = noise.following(n, 0.8);
        disturbed(noise, values)
    }),
    ("scatter changes", |noise, n| {
        let mut scale = 1.0;
        let mut next = || {
            if noise.unit() < 0.02 {
                scale = 9.0 - scale;
            }
            scale * noise.normal()
        };
        (0..n).map(|_| next()).collect()
    }),
    ("a machine", machine),
];

/// Without a variance: Student's with two degrees of freedom.
fn student_2(noise: &mut Noise) -> f64 {
    noise.normal() / noise.exponential().sqrt()
}

fn disturbed(noise: &mut Noise, mut values: Vec<f64>) -> Vec<f64> {
    for value in &mut values {
        if noise.unit() < 0.1 {
            *value += 1000.0 * (noise.unit() - 0.5);
        }
    }
    values
}

/// Two arms with the same operation in random order, on a machine whose level wanders, and jumps by a third
/// every hundred runs or so. Three runs in a hundred are disturbed, by up to twenty times their length.
fn machine(noise: &mut Noise, n: usize) -> Vec<f64> {
    let (mut level, mut wander) = (0.0, 0.0);
    let mut run = |noise: &mut Noise| {
        if noise.unit() < 0.01 {
            level = 0.3 - level;
        }
        wander = 0.9 * wander + 0.01 * noise.normal();
        let wild = if noise.unit() < 0.03 { 3.0 * noise.unit() } else { 0.0 };
        level + wander + wild + 0.002 * noise.normal()
    };
    let mut round = || {
        let (first, second) = (run(noise), run(noise));
        if noise.unit() < 0.5 { first - second } else { second - first }
    };
    (0..n).map(|_| round()).collect()
}

/// The share of trials whose interval held 0, and their mean width over the ideal interval's.
fn covered(make: Make, n: usize, estimator: Estimator, trials: u64, resamples: usize) -> (f64, f64) {
    let found: Vec<_> = (0..trials)
        .map(|trial| {
            let values = make(&mut Noise::new(trial), n);
            resampled(&values, estimator, resamples, trial).unwrap()
        })
        .collect();
    let mean = |of: &dyn Fn(usize) -> f64| (0..found.len()).map(of).sum::<f64>() / trials as f64;
    let scatter = mean(&|i| found[i].estimate.powi(2)).sqrt();
    let held = mean(&|i| f64::from(u8::from(found[i].contains(0.0))));
    (held, mean(&|i| found[i].high - found[i].low) / (3.92 * scatter))
}

/// The share of trials that held 0, with each measured only until its interval was narrow, and the looks a
/// trial took. The tested widths are reached at about 100 to 400 rounds.
fn covered_when_stopped(make: Make, estimator: Estimator, trials: u64, resamples: usize) -> (f64, f64) {
    let (mut held, mut looks) = (0.0, 0.0);
    for trial in 0..trials {
        let plan = Plan::new([0.1, 0.15, 0.2][trial as usize % 3], u64::MAX);
        // The whole series is made at once; the loop below sees only the rounds measured so far.
        let values = make(&mut Noise::new(trial), ROUNDS_STOPPED_MAX);
        let (mut rounds, mut found) = (0, None);
        while let Some(more) = plan.next(rounds, rounds as u64, || {
            looks += 1.0;
            found = resampled(&values[..rounds], estimator, resamples, trial).map(Interval::exp);
            found
        }) {
            rounds += more;
        }
        held += f64::from(u8::from(found.is_some_and(|found| found.contains(1.0))));
    }
    (held / trials as f64, looks / trials as f64)
}

/// Two standard deviations of a share of `trials` trials.
fn doubt(trials: u64) -> f64 {
    2.0 * (COVERED_MIN * (1.0 - COVERED_MIN) / trials as f64).sqrt()
}

#[test]
fn stated_intervals_cover() {
    let trials = 150;
    for (name, make) in KINDS {
        for estimator in [Estimator::MEDIAN, TRIMMED] {
            let (held, wide) = covered(make, SMALL, estimator, trials, 200);
            let least = COVERED_MIN - doubt(trials);
            assert!(held >= least, "{name}, {estimator:?}: {held} (seeds 0..{trials})");
            // Sometimes a drawing of a few dozen values holds mostly wild values, which makes the interval as
            // wide.
            let most = if name.contains("wild") { f64::INFINITY } else { 1.6 };
            assert!(wide < most, "{name}, {estimator:?}: {wide} times as wide as needed");
        }
    }
}

#[test]
fn stopping_at_a_width_costs_little_coverage() {
    let (name, make) = KINDS[0];
    let (held, looks) = covered_when_stopped(make, Estimator::MEDIAN, 100, 200);
    assert!(looks > 2.0, "{looks} looks a trial: this must be a test of several");
    assert!(held >= COVERED_MIN - doubt(100), "{name}: {held} (seeds 0..100)");
}

#[test]
#[ignore = "takes minutes: the whole table, for people"]
fn table() {
    println!("{:22} {:>6}  {:>13}  {:>13}", "covered / width", "pairs", "median", "trimmed");
    let mut below = Vec::new();
    for (name, make) in KINDS {
        for (n, trials) in
            [(20, 4000), (50, 4000), (100, 4000), (200, 2000), (1000, 1000), (5000, 400), (20_000, 200)]
        {
            let cells =
                [Estimator::MEDIAN, TRIMMED].map(|estimator| covered(make, n, estimator, trials, 500));
            let text = cells.map(|(held, wide)| format!("{:5.1} % / {wide:4.2}", 100.0 * held));
            println!("{name:22} {n:>6}  {:>13}  {:>13}  (seeds 0..{trials})", text[0], text[1]);
            let low = n >= 50 && cells.iter().any(|(held, _)| *held < COVERED_MIN - doubt(trials));
            below.extend(low.then(|| format!("{name}, {n} pairs")));
        }
    }
    for (name, make) in KINDS.into_iter().filter(|(name, _)| UNIT_SCATTER.contains(name)) {
        let trials = 1000;
        let cells =
            [Estimator::MEDIAN, TRIMMED].map(|estimator| covered_when_stopped(make, estimator, trials, 500));
        let text = cells.map(|(held, looks)| format!("{:5.1} % / {looks:4.2}", 100.0 * held));
        println!("{name:22} {:>6}  {:>13}  {:>13}  (/ looks)", "stops", text[0], text[1]);
        below.extend(
            cells
                .iter()
                .any(|(held, _)| *held < COVERED_MIN - doubt(trials))
                .then(|| format!("{name}, stopped")),
        );
    }
    assert!(below.is_empty(), "below 93 %: {below:?}");
}
