//! A *frame*: the state and results of a watch at one moment, to be shown, written as JSON, and read back.
//!
//! Field names are those of the JSON that `vellum watch` and `vellum run` write (docs/watch.md). A field
//! never changes its meaning.

use crate::advice::CYCLES_MIN;
use crate::budget::MARGIN;
use crate::delay::Delay;
use crate::verdict::{ByAge, Verdict};
use crate::watcher::{Grain, PAGE_BYTES, Watcher};
use serde::{Deserialize, Serialize};

/// A window of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its length in nanoseconds of user CPU time.
    pub window_ns: u64,
    /// The mean memory referenced in it.
    pub bytes: u64,
    /// Pages that leave the window and come back, for each second of user CPU time.
    pub faults_per_second: f64,
}

/// The cost of the watch so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// CPU time of the watcher, the kernel's on its behalf included.
    pub cpu_ns: u64,
    /// CPU time that the job itself lost, by count of pages.
    pub imposed_ns: u64,
    /// The longest time that a process could not change its mappings.
    pub longest_stall_ns: u64,
    /// All of it as a part of the job's user CPU time.
    pub share: f64,
    /// All of it as a part of one processor.
    #[serde(default)]
    pub of_processor: f64,
    /// The part of it that the first cycles have taken ahead of the budget, and that is not repaid.
    #[serde(default)]
    pub ahead_ns: u64,
}

/// Memory that was not touched for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Age {
    /// For at least this much wall-clock time.
    pub untouched_ns: u64,
    /// How much.
    pub bytes: u64,
}

/// The time that a recommendation still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanting {
    /// User CPU time of the job.
    pub cpu_ns: u64,
    /// Wall-clock time, at the rate at which it has run.
    pub wall_ns: u64,
}

/// A moment of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Wall-clock time since the watch began.
    pub at_ns: u64,
    /// The job's user CPU time since then.
    pub clock_ns: u64,
    /// Processes of the job.
    pub processes: u64,
    /// Resident at the last look; pages that several processes share count in each.
    pub resident_bytes: u64,
    /// Swapped out at the last look.
    pub swapped_bytes: u64,
    /// Program text and libraries shared with others, left out of the curve.
    pub shared_bytes: u64,
    /// The most that was resident and swapped at any look.
    pub peak_bytes: u64,
    /// In which pages the answer is.
    pub grain: Grain,
    /// Cycles in the curve; 0 for a curve of the first cycle while it runs.
    pub cycles: u64,
    /// The working-set curve; empty at first.
    pub curve: Vec<Window>,
    /// Its meaning; `None` without a curve or S.
    pub verdict: Option<Verdict>,
    /// Resident memory by the time for which it was not touched, by rising times. Ages not measured yet are
    /// left out.
    #[serde(default)]
    pub ages: Vec<Age>,
    /// The limit by the longest measured age, if that is long enough.
    pub give_by_age: Option<ByAge>,
    /// The time that a recommendation still needs while there is no curve.
    pub curve_in: Option<Wanting>,
    /// User CPU time of a run that is long enough for a recommendation.
    #[serde(default)]
    pub enough_ns: u64,
    /// By what the curve was corrected after a proof, in the verdict; 1 if it was not.
    #[serde(default = "uncorrected")]
    pub correction: f64,
    /// The cost of the watch.
    pub cost: Disturbance,
    /// Wall-clock time until there was a curve.
    pub first_curve_ns: Option<u64>,
    /// The part of the curve that is not reliable on this machine.
    pub caveat: Option<String>,
}

/// The value in records without a correction.
fn uncorrected() -> f64 {
    1.0
}

/// A curve's windows, in bytes and seconds.
pub fn windows(curve: &vellum_workset::Curve) -> Vec<Window> {
    let window = |point: &vellum_workset::Point| Window {
        window_ns: point.window as u64,
        bytes: (point.pages * PAGE_BYTES as f64) as u64,
        faults_per_second: point.faults * 1e9,
    };
    curve.points().iter().map(window).collect()
}

pub(crate) fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Frame {
    /// True if the watch has been long enough for a recommendation.
    pub fn is_enough(&self) -> bool {
        self.cycles >= CYCLES_MIN && self.clock_ns as f64 * MARGIN >= self.enough_ns as f64
    }
}

impl Watcher {
    /// The state of the watch, with its meaning at `delay`, if there is an S.
    pub fn frame(&self, delay: Option<&Delay>) -> Frame {
        let latest = self.latest();
        let windows = self.curve().as_ref().map(windows);
        let left = self.enough().saturating_sub(self.clock());
        let wanting = Wanting { cpu_ns: nanos(left), wall_ns: nanos(self.wall(left)) };
        let curve_in = windows.is_none().then_some(wanting);
        let ages = self.ages();
        let ages = ages.map(|(age, found)| Age { untouched_ns: nanos(age), bytes: found.untouched.0 });
        Frame {
            at_ns: nanos(self.elapsed()),
            clock_ns: nanos(self.clock()),
            processes: self.processes().count() as u64,
            resident_bytes: self.resident().0,
            swapped_bytes: latest.swapped.0,
            shared_bytes: latest.shared.0,
            peak_bytes: self.peak().0,
            grain: self.grain(),
            cycles: self.history().samples(),
            curve: windows.unwrap_or_default(),
            verdict: delay.and_then(|delay| self.verdict(delay)),
            ages: ages.collect(),
            give_by_age: self.give_by_age(),
            curve_in,
            enough_ns: nanos(self.enough()),
            correction: self.correction(),
            cost: self.cost(),
            first_curve_ns: self.first_curve().map(nanos),
            caveat: self.caveat().map(str::to_owned),
        }
    }
}
