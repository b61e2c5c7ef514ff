//! The recent states of each job, from which `vellum top` draws its chart.

use std::collections::{BTreeMap, VecDeque};
use vellum_governor::{JobSnapshot, Snapshot};

/// The number of stored states: ten minutes at one state per second.
const STATES_MAX: usize = 600;

/// The data of a job at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) at_seconds: f64,
    pub(super) resident_bytes: u64,
    pub(super) used_bytes: Option<u64>,
    pub(super) knee_bytes: Option<u64>,
}

/// The last states, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    jobs: BTreeMap<String, VecDeque<Point>>,
    stalls: VecDeque<f64>,
}

impl History {
    pub(super) fn learn(&mut self, state: &Snapshot) {
        push(&mut self.stalls, state.stalled.unwrap_or(0.0));
        // A job that left the table cannot be chosen.
        self.jobs.retain(|name, _| state.jobs.iter().any(|job| job.name == *name));
        for job in &state.jobs {
            push(self.jobs.entry(job.name.clone()).or_default(), point(state, job));
        }
    }

    pub(super) fn of(&self, job: &str) -> impl DoubleEndedIterator<Item = &Point> {
        self.jobs.get(job).into_iter().flatten()
    }

    /// The share of each period in which a task stalled on memory; 0 if the kernel does not report it.
    pub(super) fn stalls(&self) -> impl DoubleEndedIterator<Item = f64> {
        self.stalls.iter().copied()
    }
}

fn point(state: &Snapshot, job: &JobSnapshot) -> Point {
    Point {
        at_seconds: state.at_seconds,
        resident_bytes: job.resident_bytes,
        used_bytes: job.source.is_some().then_some(job.referenced_bytes),
        knee_bytes: job.worth_bytes,
    }
}

fn push<T>(list: &mut VecDeque<T>, new: T) {
    if list.len() == STATES_MAX {
        list.pop_front();
    }
    list.push_back(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_bounded_and_drops_removed_jobs() {
        let mut history = History::default();
        let job = |name: &str, resident_bytes| JobSnapshot {
            name: name.into(),
            resident_bytes,
            ..JobSnapshot::default()
        };
        for at in 0..STATES_MAX as u64 + 10 {
            let jobs = vec![job("a", at), job("b", 2 * at)];
            history.learn(&Snapshot { at_seconds: at as f64, jobs, ..Snapshot::default() });
        }
        assert_eq!(history.of("a").count(), STATES_MAX);
        assert_eq!(history.of("b").next().map(|point| point.resident_bytes), Some(20));
        history.learn(&Snapshot { jobs: vec![job("b", 7)], ..Snapshot::default() });
        assert_eq!(history.of("a").count(), 0);
        assert_eq!(history.of("b").next_back().map(|point| point.resident_bytes), Some(7));
        assert_eq!(history.stalls().count(), STATES_MAX);
    }
}
