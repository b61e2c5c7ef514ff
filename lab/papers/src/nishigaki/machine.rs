//! The simulated machine of Nishigaki 1981, section 5, run with each way to choose the jobs' windows, and
//! a comparison of the results.

use super::Run;
use crate::model::Estimation;
use crate::model::sim::{Eviction, FRAMES_2M, FRAMES_3M, Report, Settings, Windows, simulate};
use serde_json::{Value as Json, json};
use vellum_campaign::cells::{RESAMPLES, excess_percent};
use vellum_measure::{Interval, paired_ratio};
use vellum_workset::Criterion;

/// The two memory sizes of the paper, and the frames left for programs.
pub(super) const MEMORIES: [(&str, usize); 2] = [("2 MB", FRAMES_2M), ("3 MB", FRAMES_3M)];

/// A way of choosing windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// One adaptive window for all jobs.
    One(Eviction),
    /// No window: the least recently used page of all jobs is evicted, as in a kernel.
    Lru,
    /// One window for each job.
    Each(Criterion, Estimation, Eviction),
}

/// The ways, in the order of tables: the peers, Vellum's, the paper's.
pub(super) const WAYS: [Way; 14] = {
    use Criterion::{Lifetime as Lt, ProcessorEfficiency as Pe};
    use Estimation::Remembering;
    use Eviction::{AtOnce, WhenNeeded, WhenShort};
    [
        Way::One(AtOnce),
        Way::One(WhenShort),
        Way::One(WhenNeeded),
        Way::Lru,
        Way::Each(Pe, Remembering, WhenShort),
        Way::Each(Lt, Remembering, WhenShort),
        Way::Each(Pe, Remembering, WhenNeeded),
        Way::Each(Lt, Remembering, WhenNeeded),
        Way::Each(Pe, Remembering, AtOnce),
        Way::Each(Lt, Remembering, AtOnce),
        Way::Each(Pe, Estimation::SOURCE, WhenNeeded),
        Way::Each(Lt, Estimation::SOURCE, WhenNeeded),
        Way::Each(Pe, Estimation::SOURCE, AtOnce),
        Way::Each(Lt, Estimation::SOURCE, AtOnce),
    ]
};

impl Way {
    pub(super) fn words(self) -> String {
        let when = |eviction| match eviction {
            Eviction::AtOnce => "at once",
            Eviction::WhenShort => "when short",
            Eviction::WhenNeeded => "when needed",
        };
        match self {
            Self::One(eviction) => format!("one for all, {}", when(eviction)),
            Self::Lru => "LRU of all jobs".to_owned(),
            Self::Each(criterion, by, eviction) => {
                let by = if matches!(by, Estimation::Source { .. }) { " (source's)" } else { "" };
                format!("{} each, {}{by}", criterion.short(), when(eviction))
            }
        }
    }

    /// The way with one window for all jobs that it is compared with, under the same eviction.
    pub(super) fn peer(self) -> Option<Way> {
        match self {
            Self::Each(.., eviction) => Some(Self::One(eviction)),
            Self::One(_) | Self::Lru => None,
        }
    }

    /// Whether it is Vellum's way. Eviction at once is the paper's, for comparison.
    pub(super) fn is_ours(self) -> bool {
        matches!(self, Self::Each(_, Estimation::Remembering, Eviction::WhenShort | Eviction::WhenNeeded))
    }

    fn settings(self, frames: usize, length: u64, seed: u64) -> Settings {
        let (windows, eviction) = match self {
            Self::One(eviction) => (Windows::Adaptive, eviction),
            Self::Lru => (Windows::GlobalLru, Eviction::WhenNeeded),
            Self::Each(criterion, by, eviction) => (Windows::PerJob(criterion, by), eviction),
        };
        Settings { frames, windows, eviction, seed, length }
    }
}

/// The reports of one way, one for each seed.
pub(super) struct Arm {
    pub(super) way: Way,
    pub(super) reports: Vec<Report>,
}

impl Arm {
    /// The mean of a figure over the seeds.
    pub(super) fn mean(&self, of: impl Fn(&Report) -> f64) -> f64 {
        self.reports.iter().map(of).sum::<f64>() / self.reports.len() as f64
    }
}

/// Runs the ways on a machine with `frames` frames for `length` instructions, once for each seed.
pub(super) fn arms(
    run: &mut Run<'_>,
    ways: &[Way],
    frames: usize,
    length: u64,
    done: (usize, usize),
) -> Vec<Arm> {
    let seeds = run.seeds();
    let mut arms = Vec::new();
    for (at, way) in ways.iter().enumerate() {
        run.tell(done.0 + at, done.1, &format!("{frames} frames: {}", way.words()));
        let report = |seed: &u64| simulate(&way.settings(frames, length, *seed));
        arms.push(Arm { way: *way, reports: seeds.iter().map(report).collect() });
    }
    arms
}

/// The additional service of `way` over `peer` in percent, by the same seeds; `None` if one is missing.
pub(super) fn gain(arms: &[Arm], way: Way, peer: Way, seed: u64) -> Option<Interval> {
    let of = |way: Way| arms.iter().find(|arm| arm.way == way);
    let (way, peer) = (of(way)?, of(peer)?);
    percent(way.reports.iter().zip(&peer.reports).map(|(a, b)| (a.service(), b.service())), seed)
}

/// How much the first figure of the pairs is above the second, in percent.
pub(super) fn percent(pairs: impl Iterator<Item = (f64, f64)>, seed: u64) -> Option<Interval> {
    let ratio = paired_ratio(&pairs.collect::<Vec<_>>(), RESAMPLES, seed)?;
    Some(excess_percent(ratio))
}

/// All runs of an arm, for the JSON.
pub(super) fn as_json(cell: &str, arm: &Arm, seeds: &[u64]) -> Vec<Json> {
    let run = |(report, seed): (&Report, &u64)| {
        let job = |job: &crate::model::sim::JobReport| {
            json!({
                "name": job.name, "instructions": job.cpu, "operations": job.operations, "faults": job.faults,
                "ended": job.ended, "pages": job.pages, "window_instructions": job.window,
                "suspended_share": job.suspended,
            })
        };
        json!({
            "cell": cell, "arm": arm.way.words(), "seed": seed,
            "metrics": {
                "service_units": report.service(), "cpu_share": report.cpu, "overhead_share": report.overhead,
                "paging_share": report.paging, "bound_share": report.bound(),
                "multiprogramming": report.multiprogramming, "ready": report.ready, "frames": report.frames,
                "fault_instructions": report.fault_time, "suspensions": report.suspensions,
                "jobs": report.jobs.iter().map(job).collect::<Vec<_>>(),
            },
        })
    };
    arm.reports.iter().zip(seeds).map(run).collect()
}
