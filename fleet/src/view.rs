//! Snapshots of each watched cgroup and of the agent; the metrics are rendered from them.

use crate::group::Identity;
use crate::pods::Named;
use std::path::PathBuf;
use std::sync::Arc;
use vellum_kernel::Cgroup;
use vellum_reference::Window;

/// The state of a group's watch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// The group waits for its first turn.
    #[default]
    Waiting,
    /// The group is watched.
    Watched,
    /// The group has no processes.
    Empty,
    /// No process of the group can be read, for this reason.
    Blind(String),
}

impl State {
    /// The names of the states in metrics.
    pub(crate) const WORDS: [&str; 4] = ["waiting", "watched", "empty", "blind"];

    /// The state's name.
    pub(crate) fn word(&self) -> &'static str {
        Self::WORDS[match self {
            State::Waiting => 0,
            State::Watched => 1,
            State::Empty => 2,
            State::Blind(_) => 3,
        }]
    }
}

/// The view of one group.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// The group's path below the root.
    pub(crate) path: String,
    /// The group's directory.
    pub(crate) directory: PathBuf,
    /// A unique, readable name.
    pub(crate) name: String,
    /// Labels, depending on the kind.
    pub(crate) labels: Vec<(&'static str, String)>,
    /// The name of the kind.
    pub(crate) kind: &'static str,
    /// True if the previous container of the pod was killed because of a lack of memory.
    pub(crate) was_oom_killed: bool,
    /// The state of the watch.
    pub(crate) state: State,
    /// Living processes.
    pub(crate) processes: u64,
    /// Resident memory, at the last sample.
    pub(crate) resident_bytes: u64,
    /// Swapped memory, at the last sample.
    pub(crate) swapped_bytes: u64,
    /// z(T) at the knee.
    pub(crate) worth_bytes: Option<u64>,
    /// T at the knee.
    pub(crate) window_seconds: Option<f64>,
    /// S·f at the knee.
    pub(crate) waiting: Option<f64>,
    /// The recommended limit, which should cost at most 2 % of the group's time.
    pub(crate) advised_bytes: Option<u64>,
    /// The slowdown with two thirds of the recommended limit.
    pub(crate) slowdown_two_thirds: Option<f64>,
    /// A limit that holds all memory touched within the longest measured age.
    pub(crate) advised_by_age_bytes: Option<u64>,
    /// Ages in seconds, with the memory not touched for as long.
    pub(crate) untouched: Vec<(u64, u64)>,
    /// The working-set curve.
    pub(crate) curve: Vec<Window>,
    /// User CPU time since the watch began.
    pub(crate) clock_seconds: f64,
    /// The cost of the watch, as a part of that time.
    pub(crate) watch_share: f64,
    /// Wall-clock time from the group's discovery to the first curve.
    pub(crate) first_curve_seconds: Option<f64>,
}

impl View {
    /// Its cgroup.
    pub(crate) fn group(&self) -> Cgroup {
        Cgroup::at(&self.directory)
    }

    pub(crate) fn new(path: &str, directory: PathBuf, identity: &Identity, named: Option<&Named>) -> View {
        let mut view = View { path: path.to_owned(), directory, ..View::default() };
        view.identify(identity, named);
        view
    }

    /// Sets the name and the labels.
    pub(crate) fn identify(&mut self, identity: &Identity, named: Option<&Named>) {
        self.kind = identity.kind();
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

/// The contents of the page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    /// The groups, in the order of their paths.
    pub(crate) groups: Vec<Arc<View>>,
    /// The agent's own CPU time.
    pub(crate) cpu_seconds: f64,
    /// CPU time that jobs lost because they were watched, estimated from the number of pages.
    pub(crate) imposed_seconds: f64,
    /// The maximum of both, as a part of one processor.
    pub(crate) share: f64,
    /// The number of cycles begun.
    pub(crate) turns: u64,
    /// The number of groups with a running cycle, and of groups that are due and wait.
    pub(crate) at_once: [usize; 2],
    /// True if the list of pods is current; `None` without `--pods`.
    pub(crate) names_known: Option<bool>,
}
