//! The governor's state as `vellum top`, metrics and JSON show it. The name of each figure contains its unit.

use crate::policy::Limit;
use serde::{Deserialize, Serialize};

/// The name and version of this form in JSON.
pub const SCHEMA: &str = "vellum.govern/1";

/// The state at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: String,
    /// Time since the governor began.
    pub at_seconds: f64,
    /// The budget of all jobs, as configured.
    pub budget_bytes: u64,
    /// The budget in force, with the machine's available memory.
    pub effective_budget_bytes: u64,
    /// The memory that all jobs hold.
    pub resident_bytes: u64,
    /// The machine's available memory.
    pub available_bytes: u64,
    /// Free swap.
    pub swap_free_bytes: u64,
    /// True if memory is short.
    pub squeezed: bool,
    /// True if stalls keep anything from being taken.
    pub braked: bool,
    /// The limit on the number of running jobs.
    pub limit: Limit,
    /// The part of the last period that some task stalled on memory; `None` where the kernel does not count
    /// it.
    pub stalled: Option<f64>,
    /// The governor's own CPU time.
    pub cpu_seconds: f64,
    /// The jobs, in the table's order.
    pub jobs: Vec<JobSnapshot>,
}

/// A job's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It runs.
    Running,
    /// The whole job is suspended.
    Suspended,
    /// The job will be started again.
    Waiting,
    /// The job has ended.
    #[default]
    Ended,
}

impl State {
    /// Every state.
    pub const ALL: [State; 4] = [State::Running, State::Suspended, State::Waiting, State::Ended];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Suspended => "suspended",
            State::Waiting => "waiting",
            State::Ended => "ended",
        }
    }
}

/// Memory that was not touched for some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Untouched {
    /// For at least this much wall-clock time.
    pub seconds: u64,
    /// How much.
    pub bytes: u64,
}

/// A job at that moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSnapshot {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Its urgency.
    pub priority: u8,
    /// Its living processes.
    pub processes: usize,
    /// Their resident memory.
    pub resident_bytes: u64,
    /// Their memory in swap, at the last sample.
    pub swapped_bytes: u64,
    /// The memory referenced at the last sample.
    pub referenced_bytes: u64,
    /// The state of its worth, in words; `None` as long as nothing is.
    pub answer: Option<String>,
    /// T: its window, in user CPU time.
    pub window_seconds: Option<f64>,
    /// z(T): its working set at that window.
    pub worth_bytes: Option<u64>,
    /// S·f(T): its waiting time for a unit of work.
    pub waiting: Option<f64>,
    /// The memory limit that should cost at most 2 % of its time, as `vellum watch` advises it.
    pub advised_bytes: Option<u64>,
    /// The slowdown under two thirds of that, as a part of its time; it may be more.
    pub slowdown_two_thirds: Option<f64>,
    /// Its untouched memory, by rising times. Times not measured yet are left out.
    #[serde(default)]
    pub untouched: Vec<Untouched>,
    /// S: what a fault costs.
    pub delay_seconds: f64,
    /// True if S was measured with this job, or with the device alone.
    pub delay_measured: bool,
    /// Its target.
    pub target_bytes: u64,
    /// Faults that had to read, a second.
    pub major_faults_per_second: f64,
    /// Other faults, a second.
    pub minor_faults_per_second: f64,
    /// Its CPU time since it is governed.
    pub cpu_seconds: f64,
    /// The bytes reclaimed from it since its start.
    pub taken_bytes: u64,
    /// The number of its suspensions.
    pub suspensions: u64,
    /// The sum of its suspensions.
    pub suspended_seconds: f64,
    /// The longest of its suspensions, in seconds.
    #[serde(default)]
    pub suspended_longest_seconds: f64,
    /// The number of its restarts.
    pub restarts: u64,
    /// By what means memory can be taken from it.
    pub means: String,
    /// The source that it is watched by; `None` if it is not.
    pub source: Option<String>,
    /// The cost of watching it, as a part of its user CPU time.
    pub watch_share: f64,
    /// Processes that are connected for advice.
    pub clients: usize,
}
