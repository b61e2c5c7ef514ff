//! Tests of the search, with planted beats (periodic disturbances) and with series that have none.
//!
//! Each series comes from a seed, which a failing test prints. The periods of the planted beats are exact to
//! the nanosecond.

use super::*;
use crate::noise::Noise;

/// A simulated process: operations follow each other, and disturbances lengthen those in which they fall.
struct Machine {
    noise: Noise,
    /// The time of an undisturbed operation, in nanoseconds.
    operation: f64,
    /// The start and length of each disturbance, in nanoseconds.
    disturbances: Vec<(f64, f64)>,
    seconds: f64,
}

impl Machine {
    fn new(seed: u64, operation_us: f64, seconds: f64) -> Self {
        Self { noise: Noise::new(seed), operation: operation_us * 1e3, disturbances: Vec::new(), seconds }
    }

    /// Adds disturbances with a frequency, from a random phase on, each a little late by chance, of random
    /// length.
    fn beat(mut self, hz: f64, jitter_us: f64, span_us: (f64, f64)) -> Self {
        let phase = self.noise.unit();
        self.beat_from(phase, hz, jitter_us, span_us)
    }

    /// Adds such disturbances from a given phase on (0 to 1).
    fn beat_from(mut self, phase: f64, hz: f64, jitter_us: f64, span_us: (f64, f64)) -> Self {
        for i in 0..(self.seconds * hz) as u32 {
            let at = (f64::from(i) + phase) / hz * 1e9 + jitter_us * 1e3 * self.noise.unit();
            let span = span_us.0 + (span_us.1 - span_us.0) * self.noise.unit();
            self.disturbances.push((at, span * 1e3));
        }
        self
    }

    /// Adds disturbances at random times of heavy-tailed length (at least `span_us`, Pareto with index 1.1 up
    /// to 10 ms).
    fn random(mut self, per_second: f64, span_us: f64) -> Self {
        let mut at = 0.0;
        loop {
            at += self.noise.exponential() / per_second * 1e9;
            if at >= self.seconds * 1e9 {
                return self;
            }
            self.disturbances.push((at, (span_us * self.noise.pareto(1.1)).min(1e4) * 1e3));
        }
    }

    /// Starts and walls of the operations: their own time is log-normal with the given deviation.
    fn run(mut self, deviation: f64) -> (Vec<u64>, Vec<f64>) {
        self.disturbances.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut pending = self.disturbances.iter().peekable();
        let (mut starts, mut walls, mut now) = (Vec::new(), Vec::new(), 0.0);
        while now < self.seconds * 1e9 {
            let mut wall = self.operation * (deviation * self.noise.normal()).exp();
            while let Some((_, span)) = pending.next_if(|(at, _)| *at < now + wall) {
                wall += span;
            }
            starts.push(1_000_000_007 + now as u64);
            walls.push(wall);
            now += wall + 100.0;
        }
        (starts, walls)
    }
}

fn spectrum((starts, walls): &(Vec<u64>, Vec<f64>)) -> Spectrum {
    Spectrum::of(starts, walls, &[Known::tick(250)]).unwrap()
}

fn within(got: f64, want: f64, share: f64) -> bool {
    (got / want - 1.0).abs() <= share
}

#[test]
fn two_beats_of_one_frequency_are_not_one_of_twice_that() {
    // The slices of a collector beside the kernel's tick: if events are counted, the line is at a multiple.
    for (seed, apart) in [(1, 1.0 / 2.0), (2, 1.0 / 3.0), (3, 0.48), (4, 2.0 / 3.0)] {
        let machine = Machine::new(seed, 60.0, 1.0)
            .beat_from(0.1, 250.0, 10.0, (20.0, 30.0))
            .beat_from(0.1 + apart, 250.0, 10.0, (110.0, 120.0))
            .random(200.0, 5.0);
        let found = spectrum(&machine.run(0.001));
        let frequencies: Vec<f64> = found.periods.iter().map(|period| period.frequency).collect();
        assert!(
            frequencies.first().is_some_and(|hz| within(*hz, 250.0, 0.01)),
            "{apart} apart, seed {seed}: {frequencies:?}"
        );
    }
}

#[test]
fn time_off_the_processor_is_searched_separately() {
    // Another thread gets the processor 47 times a second for 5 ms, while a beat of 97 Hz continues.
    let (starts, mut walls) =
        Machine::new(3, 60.0, 2.0).beat(97.0, 10.0, (100.0, 100.0)).random(100.0, 5.0).run(0.001);
    let mut switches = vec![0; walls.len()];
    for turn in 0..90u64 {
        let at = starts.partition_point(|start| *start < 1_003_000_007 + turn * 21_276_596) - 1;
        walls[at] += 5e6;
        switches[at] = 1;
    }
    let observation = |place: usize| crate::Observation {
        start_ns: starts[place],
        wall_ns: walls[place],
        involuntary: switches[place],
        ..crate::Observation::default()
    };
    let series = Series { observations: (0..walls.len()).map(observation).collect(), ..Series::default() };
    let found = Spectrum::of_series(&series, &[Known::tick(250)]).unwrap();
    let beat = |off: bool| found.periods.iter().find(|period| period.off_processor == off).unwrap();
    assert!(within(beat(false).frequency, 97.0, 0.01), "{}", beat(false).frequency);
    assert!(within(beat(true).frequency, 47.0, 0.01), "{}", beat(true).frequency);
    assert_eq!(beat(true).whose().as_deref(), Some("switches"));
    assert!(found.periods.iter().map(|period| period.share).sum::<f64>() <= 1.0);
    assert!(beat(true).share > beat(false).share && beat(false).share > 0.0);
    let plain = Series { observations: vec![], ..series };
    assert!(Spectrum::of_series(&plain, &[]).is_none());
}

#[test]
fn a_beat_of_all_sizes_is_one_beat() {
    for seed in 1..=10 {
        let machine = Machine::new(seed, 30.0, 1.0).beat(500.0, 10.0, (20.0, 1000.0)).random(100.0, 5.0);
        let found = spectrum(&machine.run(0.001));
        let first = found.periods.first().map(|period| period.frequency);
        assert!(first.is_some_and(|hz| within(hz, 500.0, 0.01)), "seed {seed}: {first:?}");
    }
}

/// The only beat of a machine, which must be this one.
fn only_beat(machine: Machine, deviation: f64, hz: f64, tolerance: f64, what: &str) -> Period {
    let mut found = spectrum(&machine.run(deviation)).periods;
    assert_eq!(found.len(), 1, "{what}: {found:?}");
    let period = found.remove(0);
    assert!(within(period.frequency, hz, tolerance), "{what}: {period:?}");
    period
}

#[test]
fn a_planted_beat_is_found_within_a_hundredth() {
    let mut seed = 0;
    for hz in [97.0, 250.0] {
        for operation_us in [3.0, 30.0, 100.0] {
            for span_us in [(20.0, 20.0), (20.0, 1000.0), (1000.0, 1000.0)] {
                seed += 1;
                let machine =
                    Machine::new(seed, operation_us, 1.0).beat(hz, 10.0, span_us).random(100.0, 5.0);
                let what = format!("{hz} Hz in {operation_us} µs by {span_us:?} (seed {seed})");
                let period = only_beat(machine, 0.02, hz, 0.002, &what);
                assert!(within(period.period, 1.0 / hz, 0.002) && period.steady, "{what}: {period:?}");
                let off = (period.frequency - hz).abs();
                assert!(off < 5.0 * period.frequency_error + 0.05, "{what}: {period:?}");
                let source = period.source.map(|source| source.to_string());
                assert_eq!(source.as_deref(), (hz == 250.0).then_some("kernel tick"), "{what}");
            }
        }
    }
}

#[test]
fn short_operations_and_long_series_give_the_beat() {
    for (seed, hz) in [(40, 97.0), (41, 250.0)] {
        let machine = Machine::new(seed, 1.5, 1.0).beat(hz, 3.0, (20.0, 25.0)).random(2000.0, 0.2);
        only_beat(machine, 0.05, hz, 0.002, &format!("an operation of 1.5 µs (seed {seed})"));
    }
    let machine = Machine::new(50, 100.0, 10.0).beat(97.0, 10.0, (20.0, 1000.0)).random(100.0, 20.0);
    only_beat(machine, 0.02, 97.0, 1e-4, "ten seconds (seed 50)");
}

#[test]
fn a_period_reports_its_loss() {
    // 194 disturbances of 200 to 300 µs in 2 s, and otherwise only noise.
    let series = Machine::new(60, 20.0, 2.0).beat(97.0, 10.0, (200.0, 300.0)).run(0.01);
    let got = spectrum(&series);
    let period = &got.periods[0];
    assert!((194..=200).contains(&period.disturbances) && period.by_chance < 4.0, "{period:?}");
    assert!(within(period.typical, 250e3, 0.1) && within(period.lost, 194.0 * 250e3, 0.05), "{period:?}");
    assert!(period.share > 0.95 && period.beats > 0.98, "{period:?}");
    assert!(period.false_alarm < 1e-20 && period.strength > got.threshold, "{period:?}");
    assert_eq!(period.members.iter().filter(|place| series.1[**place] > 150e3).count(), 194);
    assert!(period.members.is_sorted());
}

#[test]
fn several_beats_of_different_sizes_are_found() {
    let machine = Machine::new(70, 10.0, 4.0).beat(250.0, 3.0, (5.0, 9.0)).beat(97.0, 3.0, (100.0, 200.0));
    let machine =
        machine.beat(33.3, 100.0, (50.0, 1000.0)).beat(7.0, 3.0, (1000.0, 2000.0)).random(300.0, 5.0);
    let got = spectrum(&machine.run(0.02));
    let mut found: Vec<f64> = got.periods.iter().map(|period| period.frequency).collect();
    found.sort_by(f64::total_cmp);
    assert_eq!(found.len(), 4, "{found:?} (seed 70)");
    for (found, planted) in found.iter().zip([7.0, 33.3, 97.0, 250.0]) {
        assert!(within(*found, planted, 0.001), "{found} for {planted} (seed 70)");
    }
    let tick: Vec<_> = got.periods.iter().filter(|period| period.source.is_some()).collect();
    assert_eq!(tick.len(), 1);
    assert_eq!(got.on_tick(), tick[0].members);
}

#[test]
fn a_beat_that_hides_the_small_is_not_taken_for_their_gap() {
    // A millisecond of every four is one long disturbance. Small disturbances in it are not seen, so their
    // absence has a beat.
    let machine = Machine::new(80, 10.0, 1.0).beat(250.0, 5.0, (900.0, 1000.0)).random(5000.0, 2.0);
    let period = only_beat(machine, 0.02, 250.0, 0.001, "seed 80");
    assert!(period.typical > 800e3, "{period:?} (seed 80)");
}

#[test]
fn a_beat_that_wanders_is_still_a_beat() {
    // Each period begins when the last has ended, after 10 ms and up to half a millisecond: 97.6 Hz with a
    // drifting phase.
    let mut machine = Machine::new(90, 30.0, 5.0);
    let mut at = 0.0;
    while at < 5e9 {
        machine.disturbances.push((at, 100e3));
        at += 10e6 + 0.5e6 * machine.noise.unit();
    }
    let period = only_beat(machine.random(100.0, 20.0), 0.02, 1e3 / 10.25, 0.01, "seed 90");
    assert!(period.disturbances as f64 - period.by_chance > 300.0, "{period:?} (seed 90)");
}

#[test]
fn the_collectors_marks_name_their_beat() {
    let series = Machine::new(110, 30.0, 2.0).beat(40.0, 10.0, (300.0, 500.0)).run(0.02);
    let marks: Vec<crate::Mark> = (0..80u64)
        .map(|i| i * 25_000_000)
        .map(|start_ns| crate::Mark { start_ns, end_ns: start_ns + 400_000, cause: crate::MarkCause::Minor })
        .collect();
    let got = Spectrum::of(&series.0, &series.1, &Known::from_marks(&marks)).unwrap();
    assert_eq!(got.periods[0].source.as_ref().unwrap().to_string(), "minor collection");
    assert!(got.on_tick().is_empty());
}

#[test]
fn a_beat_too_slow_for_the_series_is_not_reported() {
    // 15 cycles of bursts: too few, however regular; their multiples must not appear either.
    let mut machine = Machine::new(120, 30.0, 1.0);
    for burst in 0..15 {
        for i in 0..20 {
            machine.disturbances.push((f64::from(burst) / 15.0 * 1e9 + f64::from(i) * 250e3, 50e3));
        }
    }
    let got = spectrum(&machine.run(0.02));
    assert!(got.periods.iter().all(|period| !within(period.frequency % 15.0, 0.0, 0.1)), "{:?}", got.periods);
    assert!(got.periods.iter().all(|period| period.frequency > 1000.0), "{:?} (seed 120)", got.periods);
}

#[test]
fn invalid_series_have_no_spectrum() {
    assert_eq!(Spectrum::of(&[], &[], &[]), None);
    assert_eq!(Spectrum::of(&[1], &[1.0], &[]), None);
    assert_eq!(Spectrum::of(&[1, 2, 3], &[1.0, 2.0], &[]), None);
    assert_eq!(Spectrum::of(&[3, 2, 4], &[1.0; 3], &[]), None, "time goes backwards");
    assert_eq!(Spectrum::of(&[5, 5, 5], &[1.0; 3], &[]), None, "no time passes");
    assert_eq!(Spectrum::of(&[1, 2, 3], &[1.0, f64::NAN, 1.0], &[]), None);
    let quiet = Spectrum::of(&[10, 20, 30, 40], &[1.0; 4], &[]).unwrap();
    assert_eq!((quiet.disturbances, quiet.periods.len(), quiet.lost), (0, 0, 0.0));
    let few = Spectrum::of(&[0, 1_000_000_000], &[1.0, 2.0], &[]).unwrap();
    assert_eq!((few.span, few.periods.len()), (2.0, 0));
}

/// At the stated rate one in a hundred series without a beat reports one; five or more do once in three
/// hundred times.
const ALARMS_MAX: usize = 4;

/// The beats reported in a hundred series, with their seeds.
fn alarms(series: impl Fn(u64) -> (Vec<u64>, Vec<f64>)) -> Vec<(u64, f64)> {
    let alarm = |seed: u64| spectrum(&series(seed)).periods.first().map(|period| (seed, period.frequency));
    (1000..1100).filter_map(alarm).collect()
}

/// Values as the walls of observations that follow each other.
fn in_time(values: Vec<f64>) -> (Vec<u64>, Vec<f64>) {
    let mut now = 5_000.0;
    let starts = values.iter().map(|wall| {
        now += wall;
        (now - wall) as u64
    });
    (starts.collect(), values)
}

/// The number of observations of 100 µs in the quiet series.
const QUIET: usize = 3000;

type Starts = (Vec<u64>, Vec<f64>);

#[test]
fn series_without_a_beat_have_none() {
    let around = |noise: Vec<f64>| in_time(noise.iter().map(|z| 1e5 + 5e3 * z).collect());
    let each = |seed, next: &mut dyn FnMut(&mut Noise) -> f64| {
        let mut noise = Noise::new(seed);
        in_time((0..QUIET).map(|_| next(&mut noise)).collect())
    };
    let quiet: [(&str, &dyn Fn(u64) -> Starts); 9] = [
        ("white", &|seed| around(Noise::new(seed).white(QUIET))),
        ("heavy-tailed", &|seed| each(seed, &mut |noise| 1e5 + 1e3 * noise.pareto(1.1).min(1e5))),
        ("follows 0.5", &|seed| around(Noise::new(seed).following(QUIET, 0.5))),
        ("follows 0.95", &|seed| around(Noise::new(seed).following(QUIET, 0.95))),
        ("follows 0.999", &|seed| around(Noise::new(seed).following(QUIET, 0.999))),
        ("disturbances", &|seed| {
            Machine::new(seed, 100.0, 0.5).random(1000.0, 20.0).random(50.0, 1000.0).run(0.02)
        }),
        ("bursts", &|seed| {
            let mut machine = Machine::new(seed, 100.0, 0.5);
            let mut at = 0.0;
            while at < 0.5e9 {
                at += 2e7 * machine.noise.exponential();
                for _ in 0..(20.0 * machine.noise.exponential()) as u32 {
                    let (when, span) = (at + 5e6 * machine.noise.unit(), 2e4 * machine.noise.pareto(1.5));
                    machine.disturbances.push((when, span));
                }
            }
            machine.run(0.02)
        }),
        ("a level that jumps", &|seed| {
            let mut level = 0.0;
            each(seed, &mut |noise| {
                if noise.unit() < 0.003 {
                    level = 0.3 * noise.normal();
                }
                1e5 * (1.0 + level + 0.05 * noise.normal()).max(0.1)
            })
        }),
        ("a level that walks", &|seed| {
            let mut level = 0.0;
            each(seed, &mut |noise| {
                level += 0.005 * noise.normal();
                1e5 * (level + 0.05 * noise.normal()).exp()
            })
        }),
    ];
    for (what, series) in quiet {
        let alarms = alarms(series);
        assert!(alarms.len() <= ALARMS_MAX, "{what}, (seed, hertz): {alarms:?}");
    }
}

#[test]
fn the_search_finds_weak_beats() {
    // The search on the same noise finds a barely strong enough beat in more than half of the series.
    let machine = |seed| Machine::new(seed, 100.0, 0.5).beat(97.0, 10.0, (30.0, 40.0)).random(100.0, 20.0);
    let found = alarms(|seed| machine(seed).run(0.02));
    let right = found.iter().filter(|(_, hz)| within(*hz, 97.0, 0.01)).count();
    assert!(found.len() > 50 && right + ALARMS_MAX >= found.len(), "(seed, hertz): {found:?}");
}
