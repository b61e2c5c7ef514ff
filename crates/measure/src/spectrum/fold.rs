//! Folding: finds the events that belong to a beat (a periodic disturbance), by their phase.
//!
//! Phases (times modulo the period) lie on a circle. The phases of events on the beat fall into one arc, all
//! other phases anywhere. The chosen arc has the largest surplus of events over an even spread. Inside the
//! arc, events are denser than on average; at the ends of the arc, the density falls to the average. The
//! largest surplus, divided by n, is Kuiper's statistic, computed in one pass over the sorted phases.
//!
//! ```text
//!         ·  ·        ·      ·····×××××××××·····    ·      ·        phase 0 to 1
//!                               └── the arc ──┘
//! ```
//!
//! The beat of a sleeping thread drifts: each period ends a little late, and the next starts from there. Over
//! seconds the phase turns through the whole circle, but over a few periods it hardly moves. The span is
//! therefore also cut into windows, each with its own arc. Several numbers of windows are tried. From
//! the surplus of each, the surplus that the same number of arcs has by chance is subtracted. The number with
//! the largest remainder is chosen.

use super::disturbance::Disturbance;

/// The numbers of windows that are tried.
const WINDOWS: [usize; 4] = [1, 4, 16, 64];

/// The least number of events in a window, on average, and of cycles.
const WINDOW_EVENTS_MIN: usize = 16;
const WINDOW_CYCLES_MIN: f64 = 8.0;

/// The surplus of an arc among n events by chance, over √n: the mean of Kuiper's statistic, √(π/2).
const CHANCE: f64 = 1.253_314_137_315_5;

/// More windows are preferred only if they explain this many times as much.
const WINDOWS_GAIN: f64 = 1.25;

/// An arc that leaves less than half of the circle encloses a gap, not a beat.
const ARC_MAX: f64 = 0.5;

/// A shell outside the range of the search is on the beat if its surplus exceeds this many deviations …
const SHELL_DEVIATIONS: f64 = 4.0;

/// … and it has this many events on the beat.
const SHELL_EVENTS_MIN: f64 = 4.0;

/// The arc of the circle with a window's events on the beat.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Arc {
    /// The phase where it begins, 0 to 1.
    start: f64,
    /// The share of the circle it spans, 0 to 1.
    width: f64,
}

/// A beat and the phases of its events.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    frequency: f64,
    /// The length of a window; each window has an arc, in order.
    window: f64,
    arcs: Vec<Arc>,
}

/// The disturbances on a beat.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Kept {
    /// The shells on the beat.
    pub(super) shells: Vec<usize>,
    /// The places, among all disturbances, of the events in the arcs.
    pub(super) events: Vec<usize>,
    /// The number of these events expected by chance.
    pub(super) by_chance: f64,
    /// Their loss, less the loss expected from random events in as much time.
    pub(super) lost: f64,
}

impl Fold {
    /// Folds the events, which are in order over `span`, with a frequency.
    pub(super) fn new(events: &[f64], frequency: f64, span: f64) -> Self {
        let fits = |windows: &usize| {
            *windows == 1
                || (events.len() >= WINDOW_EVENTS_MIN * windows
                    && span * frequency >= WINDOW_CYCLES_MIN * *windows as f64)
        };
        let tries = WINDOWS.into_iter().filter(fits).map(|windows| {
            let window = span / windows as f64;
            let mut surplus = 0.0;
            let arcs = (0..windows).map(|number| {
                let first = events.partition_point(|at| *at < window * number as f64);
                let last =
                    events.partition_point(|at| number + 1 == windows || *at < window * (number + 1) as f64);
                let phases = events[first..last].iter().map(|at| (at * frequency).fract()).collect();
                let (arc, beyond) = densest(phases);
                surplus += beyond - CHANCE * ((last - first) as f64).sqrt();
                arc
            });
            let arcs: Vec<Arc> = arcs.collect();
            (surplus, Self { frequency, window, arcs })
        });
        // A single window always fits, and explains more than −∞.
        let none = (f64::NEG_INFINITY, Self { frequency, window: span, arcs: Vec::new() });
        tries
            .fold(none, |best, new| {
                let gain = if best.1.arcs.is_empty() { 1.0 } else { WINDOWS_GAIN };
                if new.0 > best.0 * gain { new } else { best }
            })
            .1
    }

    /// True if the phase is constant over the whole span.
    pub(super) fn is_steady(&self) -> bool {
        self.arcs.len() == 1
    }

    /// True if events come on the whole circle except in a gap.
    pub(super) fn is_gap(&self) -> bool {
        self.arcs.iter().map(|arc| arc.width).sum::<f64>() > ARC_MAX * self.arcs.len() as f64
    }

    /// True if a disturbance at this time would be on the beat.
    fn holds(&self, at: f64) -> bool {
        let arc = self.arc_at(at);
        // The tolerance is for rounding: the arc begins and ends on events.
        (at * self.frequency - arc.start + 1e-9).rem_euclid(1.0) <= arc.width + 2e-9
    }

    fn arc_at(&self, at: f64) -> Arc {
        self.arcs[((at / self.window) as usize).min(self.arcs.len() - 1)]
    }

    /// The events on the beat: of the shells of the search, and of other shells that are clearly on it.
    pub(super) fn kept(&self, events: &[Disturbance], found_in: std::ops::RangeInclusive<usize>) -> Kept {
        let shells = events.iter().map(|event| event.shell).max().map_or(0, |largest| largest + 1);
        let mut kept = Kept::default();
        for shell in 0..shells {
            let all = || events.iter().enumerate().filter(|(_, event)| event.shell == shell);
            let (inside, outside): (Vec<_>, Vec<_>) = all().partition(|(_, event)| self.holds(event.at));
            let width = all().map(|(_, event)| self.arc_at(event.at).width).sum::<f64>()
                / all().count().max(1) as f64;
            let n = (inside.len() + outside.len()) as f64;
            let surplus = inside.len() as f64 - n * width;
            let visible = surplus > SHELL_DEVIATIONS * (n * width * (1.0 - width)).sqrt();
            if !(found_in.contains(&shell) || (visible && inside.len() as f64 >= SHELL_EVENTS_MIN)) {
                continue;
            }
            let odds = if width < 1.0 { width / (1.0 - width) } else { 0.0 };
            kept.by_chance += outside.len() as f64 * odds;
            kept.lost += inside.iter().map(|(_, event)| event.lost).sum::<f64>();
            kept.lost -= odds * outside.iter().map(|(_, event)| event.lost).sum::<f64>();
            kept.events.extend(inside.iter().map(|(place, _)| *place));
            kept.shells.push(shell);
        }
        kept.events.sort_unstable();
        kept.lost = kept.lost.max(0.0);
        kept
    }

    /// The number of different cycles that these times fall into.
    pub(super) fn beats(&self, at: impl Iterator<Item = f64>) -> usize {
        let mut beats: Vec<i64> =
            at.map(|at| (at * self.frequency - self.arc_at(at).start).floor() as i64).collect();
        beats.sort_unstable();
        beats.dedup();
        beats.len()
    }
}

/// The arc with the largest surplus over its share of the circle, and that surplus.
fn densest(mut phases: Vec<f64>) -> (Arc, f64) {
    let n = phases.len() as f64;
    phases.sort_unstable_by(f64::total_cmp);
    // The surplus of events below each phase: just before the event there, and just after.
    let before = phases.iter().enumerate().map(|(i, phase)| i as f64 - n * phase);
    let lowest = before.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    let Some((first, before)) = lowest else { return (Arc { start: 0.0, width: 0.0 }, 0.0) };
    let after = phases.iter().enumerate().map(|(i, phase)| (i + 1) as f64 - n * phase);
    let highest = after.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    let (last, after) = highest.unwrap_or((first, before));
    let width = (phases[last] - phases[first]).rem_euclid(1.0);
    (Arc { start: phases[first], width }, after - before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;
    use proptest::prelude::*;

    fn event(at: f64, lost: f64, shell: usize) -> Disturbance {
        Disturbance { places: 0..1, at, lost, shell }
    }

    #[test]
    fn events_on_the_beat_are_separated() {
        // 100 beats a second, jittering by 2 % of the period, among as many events at random, over 4 s.
        let mut noise = Noise::new(6);
        let mut events: Vec<Disturbance> =
            (0..400).map(|i| event(0.004 + f64::from(i) * 0.01 + 2e-4 * noise.unit(), 50.0, 3)).collect();
        events.extend((0..400).map(|_| event(4.0 * noise.unit(), 50.0, 3)));
        events.sort_by(|a, b| a.at.total_cmp(&b.at));
        let times: Vec<f64> = events.iter().map(|one| one.at).collect();
        let fold = Fold::new(&times, 100.0, 4.0);
        assert!(fold.is_steady());
        let kept = fold.kept(&events, 3..=3);
        // 400 on the beat and 2 % of the 400 others, which is 8, give or take six deviations (and a little
        // more arc).
        assert!((400..=430).contains(&kept.events.len()), "{} (seed 6)", kept.events.len());
        assert!((3.0..20.0).contains(&kept.by_chance), "{} (seed 6)", kept.by_chance);
        assert!((kept.lost / 20_000.0 - 1.0).abs() < 0.05, "{} (seed 6)", kept.lost);
        let beats = fold.beats(kept.events.iter().map(|place| events[*place].at));
        assert_eq!(beats, 400);
    }

    #[test]
    fn a_wandering_beat_is_followed() {
        // Each period is 10 ms plus up to 10 %: after 2000 periods the phase can have any value.
        let mut noise = Noise::new(2);
        let mut at = 0.0;
        let mut events: Vec<Disturbance> = Vec::new();
        while at < 20.0 {
            at += 0.01 * (0.9 + 0.2 * noise.unit());
            events.push(event(at.min(20.0), 5.0, 1));
        }
        let times: Vec<f64> = events.iter().map(|one| one.at).collect();
        let fold = Fold::new(&times, 100.0, 20.0);
        assert!(!fold.is_steady());
        let kept = fold.kept(&events, 1..=1);
        let surplus = kept.events.len() as f64 - kept.by_chance;
        assert!(surplus > 0.5 * events.len() as f64, "{surplus} of {} (seed 2)", events.len());
    }

    #[test]
    fn other_shells_join_only_if_they_keep_the_beat() {
        let mut noise = Noise::new(5);
        let mut events: Vec<Disturbance> =
            (0..100).map(|i| event(f64::from(i) * 0.01 + 0.002, 10.0, 2)).collect();
        events.extend((0..20).map(|i| event(f64::from(i) * 0.05 + 0.002, 90.0, 5)));
        events.extend((0..200).map(|_| event(noise.unit(), 1e6, 9)));
        events.sort_by(|a, b| a.at.total_cmp(&b.at));
        let times: Vec<f64> = events.iter().filter(|one| one.shell == 2).map(|one| one.at).collect();
        let kept = Fold::new(&times, 100.0, 1.0).kept(&events, 2..=2);
        assert_eq!(kept.shells, [2, 5]);
        assert_eq!((kept.events.len(), kept.lost), (120, 2800.0));
    }

    #[test]
    fn no_events_give_no_beat() {
        let fold = Fold::new(&[], 10.0, 1.0);
        assert_eq!(fold.kept(&[], 0..=3), Kept::default());
    }

    #[test]
    fn the_surplus_is_kuipers_statistic_as_astropy_has_it() {
        for events in crate::vectors::load().events {
            let n = events.times.len() as f64;
            let (_, surplus) = densest(events.times.iter().map(|at| (at * 97.0).fract()).collect());
            let want = n * events.kuiper_at_97;
            assert!((surplus - want).abs() < 1e-6, "{}: {surplus}, expected {want}", events.name);
        }
    }

    proptest! {
        #[test]
        fn no_arc_between_events_holds_more(
            phases in proptest::collection::vec((0u32..10_000).prop_map(|p| f64::from(p) / 1e4), 1..40),
        ) {
            let (arc, surplus) = densest(phases.clone());
            let n = phases.len() as f64;
            let holds = |start: f64, width: f64| {
                phases.iter().filter(|p| (*p - start + 1e-9).rem_euclid(1.0) <= width + 2e-9).count() as f64 - n * width
            };
            prop_assert!((holds(arc.start, arc.width) - surplus).abs() < 1e-6, "{} {}", holds(arc.start, arc.width), surplus);
            for start in &phases {
                for end in &phases {
                    prop_assert!(holds(*start, (end - start).rem_euclid(1.0)) <= surplus + 1e-6);
                }
            }
        }
    }
}
