//! Chooses the simulated jobs' windows (how long unused pages stay), and when pages outside them are evicted.

use super::settings::{INTERVAL, WINDOW_MAX, WINDOW_START};
use crate::model::estimators::{Counters, Quanta, Step};
use crate::model::trial::{Estimation, Manager};
use vellum_workset::Criterion;

/// One window for all jobs, one each, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Windows {
    /// One for all jobs, wider if the paging device is overloaded and narrower if it is underloaded.
    Adaptive,
    /// One for each job, by its own knee.
    PerJob(Criterion, Estimation),
    /// No windows and no load control: the least recently used page of all jobs is evicted.
    GlobalLru,
}

/// The time when pages outside the window are evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// At the job's next sample point, as in the paper.
    AtOnce,
    /// While frames are short, at the job's next sample point: a governor, too, reclaims nothing while all
    /// jobs fit. Also when a frame is needed, oldest first.
    WhenShort,
    /// When a frame is needed, oldest first.
    WhenNeeded,
}

/// The load of the paging device above which the common window grows, and below which it shrinks: the 50 %
/// rule, with a margin.
const LOAD_HIGH: f64 = 0.6;
const LOAD_LOW: f64 = 0.4;

#[derive(Debug)]
pub(super) enum Chooser {
    Common,
    Own(Manager),
}

impl Chooser {
    pub(super) fn new(windows: Windows, delay: f64) -> Self {
        match windows {
            Windows::PerJob(criterion, by) => {
                Self::Own(by.manager(criterion, INTERVAL, delay, WINDOW_START, WINDOW_MAX))
            }
            Windows::Adaptive | Windows::GlobalLru => Self::Common,
        }
    }

    /// The window from this sample point on, and whether to evict.
    pub(super) fn step(&mut self, common: Quanta, counters: &Counters, delay: f64) -> Step {
        match self {
            Self::Common => Step { window: common, replace: true },
            Self::Own(manager) => {
                manager.set_delay(delay);
                manager.step(counters)
            }
        }
    }
}

/// The common window after a period in which the device was busy for the part `load` of the time.
pub(super) fn adjusted(window: Quanta, load: f64) -> Quanta {
    let next = if load > LOAD_HIGH {
        window.0 + 1
    } else if load < LOAD_LOW {
        window.0.saturating_sub(1)
    } else {
        window.0
    };
    Quanta(next.clamp(1, WINDOW_MAX.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_window_follows_the_load_within_its_limits() {
        let next = |window, load| adjusted(Quanta(window), load).0;
        assert_eq!([next(10, 0.9), next(10, 0.5), next(10, 0.1)], [11, 10, 9]);
        assert_eq!([next(40, 0.9), next(1, 0.1)], [40, 1]);
    }
}
