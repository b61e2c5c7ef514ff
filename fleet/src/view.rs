//! A snapshot of each group and of the agent, from which the metrics are made.

use crate::group::{Identity, Kind};
use crate::pods::Named;
use std::path::PathBuf;
use std::sync::Arc;
use vellum_reference::Window;

/// How a group is watched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum State {
    /// It waits for its first turn.
    #[default]
    Waiting,
    /// It is watched.
    Watched,
    /// It has no processes.
    Empty,
    /// None of its processes can be looked into; why.
    Blind(String),
}

impl State {
    /// The words for the states, as metrics have them.
    pub(crate) const WORDS: [&str; 4] = ["waiting", "watched", "empty", "blind"];

    /// In a word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        Self::WORDS[match self {
            State::Waiting => 0,
            State::Watched => 1,
            State::Empty => 2,
            State::Blind(_) => 3,
        }]
    }
}

/// One group.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Its directory, below the root.
    pub path: String,
    /// Its directory.
    pub directory: PathBuf,
    /// A name for people, which no other group has.
    pub name: String,
    /// Labels that only some kinds have, and the kind.
    pub labels: Vec<(&'static str, String)>,
    /// Its kind, in a word.
    pub kind: &'static str,
    /// Whether the container before this one was killed because memory was short.
    pub was_oom_killed: bool,
    /// How it is watched.
    pub state: State,
    /// Living processes.
    pub processes: u64,
    /// What they hold, at the last look.
    pub resident_bytes: u64,
    /// What they hold in swap, at the last look.
    pub swapped_bytes: u64,
    /// z(T) at the knee.
    pub worth_bytes: Option<u64>,
    /// T at the knee.
    pub window_seconds: Option<f64>,
    /// S·f at the knee.
    pub waiting: Option<f64>,
    /// The limit that should cost at most 2 % of its time.
    pub advised_bytes: Option<u64>,
    /// The slowdown under two thirds of that.
    pub slowdown_two_thirds: Option<f64>,
    /// A limit that holds what was touched in the longest age known.
    pub advised_by_age_bytes: Option<u64>,
    /// Seconds, and what was not touched for so long.
    pub untouched: Vec<(u64, u64)>,
    /// The working-set curve.
    pub curve: Vec<Window>,
    /// User CPU time since the watch began.
    pub clock_seconds: f64,
    /// What the watch costs, of that.
    pub watch_share: f64,
    /// Wall-clock time from the group's discovery to the first curve.
    pub first_curve_seconds: Option<f64>,
}

impl View {
    /// One of which nothing is known but who it is.
    pub(crate) fn new(path: &str, directory: PathBuf, identity: &Identity, named: Option<&Named>) -> View {
        let mut view = View { path: path.to_owned(), directory, ..View::default() };
        view.identify(identity, named);
        view
    }

    /// Sets name and labels.
    pub(crate) fn identify(&mut self, identity: &Identity, named: Option<&Named>) {
        self.kind = identity.kind().word();
        self.name = identity.name(&self.path);
        self.was_oom_killed = named.is_some_and(|named| named.was_oom_killed);
        let mut labels = Vec::new();
        match identity {
            Identity::Kubernetes { id, .. } => {
                if let Some(Named { namespace, pod, container, .. }) = named {
                    let last = container.as_deref().unwrap_or_else(|| crate::group::short(id));
                    self.name = format!("{namespace}/{pod}/{last}");
                    labels.extend([("namespace", namespace.clone()), ("pod", pod.clone())]);
                    labels.extend(container.clone().map(|container| ("container", container)));
                }
            }
            Identity::Unit { unit, user } => {
                labels.push(("unit", unit.clone()));
                labels.extend(user.clone().map(|user| ("user", user)));
            }
            Identity::Slurm { job, step, user } => {
                labels.extend([("slurm_job", job.clone()), ("slurm_step", step.clone())]);
                labels.extend(user.clone().map(|user| ("user", user)));
            }
            Identity::Container { .. } | Identity::Other => {}
        }
        self.labels = labels;
    }
}

/// All that is served.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The groups, by their paths.
    pub groups: Vec<Arc<View>>,
    /// How many of each kind there are.
    pub kinds: Vec<(Kind, u64)>,
    /// The agent's own CPU time.
    pub cpu_seconds: f64,
    /// CPU time that jobs lost by being watched, by count of pages.
    pub imposed_seconds: f64,
    /// What all that may be, a part of one processor.
    pub share: f64,
    /// Cycles begun.
    pub turns: u64,
    /// Groups that have a cycle under way, and groups that are due and wait for one.
    pub at_once: [usize; 2],
    /// Whether the list of pods is up to date; `None` where there is to be none.
    pub names_known: Option<bool>,
}
