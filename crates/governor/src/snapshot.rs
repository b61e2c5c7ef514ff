//! The state of the whole, as `vellum top`, metrics and JSON show it. Every figure's unit is in its name.

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
    /// What all jobs may have together, as asked for.
    pub budget_bytes: u64,
    /// The same with what the machine has.
    pub effective_budget_bytes: u64,
    /// What all jobs hold.
    pub resident_bytes: u64,
    /// What the machine could still give.
    pub available_bytes: u64,
    /// Free swap.
    pub swap_free_bytes: u64,
    /// Whether memory is short.
    pub squeezed: bool,
    /// Whether stalls keep anything from being taken.
    pub braked: bool,
    /// What limits the number of jobs that run.
    pub limit: Limit,
    /// The part of the last period that some task stalled on memory; `None` where the kernel does not say.
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
    /// It is suspended whole.
    Suspended,
    /// It will be started again.
    Waiting,
    /// It is over.
    #[default]
    Ended,
}

impl State {
    /// All of them.
    pub const ALL: [State; 4] = [State::Running, State::Suspended, State::Waiting, State::Ended];

    /// In a word.
    #[must_use]
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

/// One job at that moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSnapshot {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// How urgent it is.
    pub priority: u8,
    /// Its living processes.
    pub processes: usize,
    /// What they hold.
    pub resident_bytes: u64,
    /// What they hold in swap, at the last look.
    pub swapped_bytes: u64,
    /// What the last look saw referenced.
    pub referenced_bytes: u64,
    /// What is known of its worth, in words; `None` as long as nothing is.
    pub answer: Option<String>,
    /// T: its window, in user CPU time.
    pub window_seconds: Option<f64>,
    /// z(T): its working set at that window.
    pub worth_bytes: Option<u64>,
    /// S·f(T): what it then waits for a unit of work.
    pub waiting: Option<f64>,
    /// The memory limit that should cost at most 2 % of its time, as `vellum watch` advises it.
    pub advised_bytes: Option<u64>,
    /// The slowdown under two thirds of that, as a part of its time; it may be more.
    pub slowdown_two_thirds: Option<f64>,
    /// What it holds and has not touched, by rising times; a time not known yet is not there.
    #[serde(default)]
    pub untouched: Vec<Untouched>,
    /// S: what a fault costs.
    pub delay_seconds: f64,
    /// Whether S was measured with this job, or with the device alone.
    pub delay_measured: bool,
    /// What it may have.
    pub target_bytes: u64,
    /// Faults that had to read, a second.
    pub major_faults_per_second: f64,
    /// Other faults, a second.
    pub minor_faults_per_second: f64,
    /// Its CPU time since it is governed.
    pub cpu_seconds: f64,
    /// What was taken from it in all.
    pub taken_bytes: u64,
    /// How often it was suspended.
    pub suspensions: u64,
    /// How long it has been suspended in all.
    pub suspended_seconds: f64,
    /// The longest of its suspensions, in seconds.
    #[serde(default)]
    pub suspended_longest_seconds: f64,
    /// How often it was started again.
    pub restarts: u64,
    /// By what means memory can be taken from it.
    pub means: String,
    /// How it is watched; `None` if it is not.
    pub source: Option<String>,
    /// What watching costs it, a part of its user CPU time.
    pub watch_share: f64,
    /// Processes that hear advice.
    pub clients: usize,
}
