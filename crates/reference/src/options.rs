//! The options of a watch, their bounds, and the errors that prevent a watch.

use crate::source::SourceKind;
use std::time::Duration;

/// The default sampling interval.
pub const DELTA: Duration = Duration::from_millis(100);
/// Below this, more than one page in a hundred is missed because its translation is still in the TLB.
pub const DELTA_MIN: Duration = Duration::from_millis(50);
/// The longest sampling interval.
pub const DELTA_MAX: Duration = Duration::from_secs(3600);
/// Part of the job's CPU time that watching may cost …
pub const BUDGET: f64 = 0.01;
/// … or of one processor, if that is more: a job that hardly runs is watched by that.
pub const IDLE_BUDGET: f64 = 0.0005;
/// CPU time that the first two cycles may take ahead of both; the rest of the watch repays it.
pub const BURST: Duration = Duration::from_millis(60);
/// The default number of windows: Δ, 2Δ, … 2048Δ.
pub const WINDOWS: u32 = 12;
/// The most windows.
pub const WINDOWS_MAX: u32 = 24;
/// Looks in the first cycle.
pub const FIRST_LOOKS: u32 = 4;

/// Options of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Δ, of the job's user CPU time: the smallest window.
    pub delta: Duration,
    /// Windows, each twice the one before.
    pub windows: u32,
    /// The part of the job's CPU time that watching may cost.
    pub budget: f64,
    /// The part of one processor that it may cost, if that is more.
    pub idle_budget: f64,
    /// The CPU time that the first two cycles may take ahead of the budget.
    pub burst: Duration,
    /// α: the weight of the past from sample to sample; 1 keeps all.
    pub alpha: f64,
    /// The source; `None` takes the cheapest usable source.
    pub source: Option<SourceKind>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            delta: DELTA,
            windows: WINDOWS,
            budget: BUDGET,
            idle_budget: IDLE_BUDGET,
            burst: BURST,
            alpha: 1.0,
            source: None,
        }
    }
}

/// There can be no watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// Δ is out of bounds.
    #[error("interval {0:?}: it must be from {DELTA_MIN:?} to {DELTA_MAX:?} (of the job's user CPU time)")]
    Delta(Duration),
    /// The number of windows is.
    #[error("{0} windows: from {FIRST_LOOKS} to {WINDOWS_MAX} can be watched")]
    Windows(u32),
    /// The budget is.
    #[error("a budget of {0}: it is a part of the job's CPU time, above 0 and at most 1")]
    Budget(f64),
    /// The idle budget is.
    #[error("an idle budget of {0}: it is a part of one processor, from 0 to 1")]
    IdleBudget(f64),
    /// α is.
    #[error("alpha {0}: it is above 0 and at most 1")]
    Alpha(f64),
    /// The source cannot be used here.
    #[error(
        "the source {kind}: {why}; leave the choice to us, or take one of those that `vellum watch --sources` shows as usable"
    )]
    Source {
        /// Which.
        kind: SourceKind,
        /// Why.
        why: String,
    },
    /// No process of the job can be looked into.
    #[error("{0}")]
    Blind(String),
}

impl Options {
    /// Checks the bounds of all options.
    pub fn check(&self) -> Result<(), WatchError> {
        let part = |part: f64| part > 0.0 && part <= 1.0;
        if !(DELTA_MIN..=DELTA_MAX).contains(&self.delta) {
            return Err(WatchError::Delta(self.delta));
        }
        if !(FIRST_LOOKS..=WINDOWS_MAX).contains(&self.windows) {
            return Err(WatchError::Windows(self.windows));
        }
        if !part(self.budget) {
            return Err(WatchError::Budget(self.budget));
        }
        if !(0.0..=1.0).contains(&self.idle_budget) {
            return Err(WatchError::IdleBudget(self.idle_budget));
        }
        if !part(self.alpha) {
            return Err(WatchError::Alpha(self.alpha));
        }
        Ok(())
    }
}
