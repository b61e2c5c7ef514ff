//! The workloads: the work of a worker process, whichever allocator is preloaded.
//!
//! Each is a function from parameters to figures. It checks that what it wrote into blocks and pages is
//! still there. Each can be made as small as a few milliseconds; the tests run them in this size.

mod cold;
mod fits;
mod govern;
mod growth;
mod idle;
mod large;
mod paged;
mod watch;

use crate::Metrics;
use crate::timing::{Tool, task};
use vellum_campaign::worker::{self, Work, WorkError, meter};

/// The hidden command of the executable that runs a workload: `work NAME [name=value]...`.
pub const COMMAND: &str = "work";

/// A workload: its name and its function, with parameters for a run of milliseconds.
pub struct Workload {
    /// The name on the worker's command line.
    pub name: &'static str,
    /// Parameters for a run of a few milliseconds.
    pub tiny: &'static [&'static str],
    /// The tools it runs, in the folder that its parameter `tools` names.
    pub needs: &'static [Tool],
    work: Work,
}

const fn workload(name: &'static str, tiny: &'static [&'static str], work: Work) -> Workload {
    Workload { name, tiny, needs: &[], work }
}

/// Every workload.
pub const WORKLOADS: &[Workload] = &[
    workload("large", &["bytes=262144", "pages=256", "groups=3"], large::blocks),
    workload("retouch", &["bytes=262144", "pages=256", "groups=3"], large::floor),
    workload("pair", &["bytes=1048576", "pairs=50", "groups=3"], large::pair),
    workload("cold", &["bytes=4194304", "count=1"], cold::blocks),
    workload("sparse", &["bytes=4194304", "count=2"], cold::sparse),
    workload("back", &["bytes=1048576", "huge_bytes=2097152"], worker::back),
    workload("doubling", &["bytes=1048576", "loops=2"], growth::doubling),
    workload("steps", &["bytes=1048576", "loops=2"], growth::steps),
    workload("interleaved", &["bytes=1048576", "loops=2"], growth::interleaved),
    workload("idle-small", &["bytes=1048576", "live=262144", "idle_ms=5"], idle::small),
    workload("idle-large", &["bytes=4194304", "live=1048576", "idle_ms=5"], idle::large),
    workload("idle-sparse", &["bytes=1048576", "idle_ms=5"], idle::sparse),
    workload("idle-nodes", &["bytes=1048576", "live=262144", "idle_ms=5"], idle::nodes),
    workload("paged", &["frames=1048576", "times=2", "touches=50"], paged::run),
    workload("fits", &["bytes=1048576"], fits::run),
    workload("watched", &["bytes=1048576", "touches=100000", "watch=1"], watch::run),
    workload("governed", &["bytes=1048576", "touches=100000", "govern=1"], watch::run),
    workload("duel", &["kernel=alloc", "a=400", "b=404", "ms=15"], task::duel),
    workload("control", &["kernel=cpu", "a=1000", "ms=10", "times=2"], task::control),
    Workload {
        needs: &[Tool::Program],
        ..workload("process", &["kernel=cpu", "a=100", "b=101", "calls=2", "ms=20"], task::process)
    },
    Workload {
        needs: &[Tool::Program, Tool::Hyperfine],
        ..workload("hyperfine", &["kernel=cpu", "a=100", "b=101", "calls=2", "runs=2"], task::hyperfine)
    },
    Workload {
        needs: &[Tool::Google],
        ..workload("google", &["kernel=cpu", "a=1000", "b=1010", "min_ms=1"], task::google)
    },
    Workload {
        needs: &[Tool::Program, Tool::Vellum],
        ..workload("cost", &["kernel=alloc", "a=400", "calls=3"], task::cost)
    },
];

/// Runs the workload called `name` in this process, and returns its figures as one line.
///
/// # Errors
/// [`WorkError`] if malloc is not the expected one, there is no such workload, or it fails.
pub fn work<S: AsRef<str>>(name: &str, words: &[S]) -> Result<String, WorkError> {
    worker::work(WORKLOADS.iter().map(|workload| (workload.name, workload.work)), name, words)
}

/// Adds the memory figures that every workload reports: `peak_bytes` and `end_bytes`.
fn with_memory(mut metrics: Metrics) -> Metrics {
    metrics.set("end_bytes", meter::resident_bytes());
    metrics.set("peak_bytes", meter::peak_bytes());
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_runs_small_and_measures() {
        for workload in WORKLOADS.iter().filter(|workload| workload.needs.is_empty()) {
            match work(workload.name, workload.tiny) {
                Ok(line) => assert!(line.contains(':'), "{} measured nothing", workload.name),
                // Vellum is not preloaded into the test's own process.
                Err(WorkError::Lacks(_)) => {}
                Err(other) => panic!("{}: {other}", workload.name),
            }
        }
    }
}
