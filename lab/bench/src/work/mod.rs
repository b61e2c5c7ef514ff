//! The workloads: the work of a worker process, whichever allocator is preloaded.
//!
//! Each is a function from parameters to figures that checks its own results: blocks keep their stamps, pages
//! their contents. Each can be made as small as a few milliseconds; the tests run them in this size.

mod cold;
mod fits;
mod govern;
mod growth;
mod idle;
mod large;
mod paged;
mod watch;

use crate::Metrics;
use std::collections::BTreeMap;

/// Why a workload has no figures.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Failure {
    /// No workload has this name.
    #[error("no workload is called {0:?}; see --help for the names")]
    Unknown(String),
    /// A parameter is not `name=number`.
    #[error("workload parameter {0:?} is not of the form name=number")]
    Parameter(String),
    /// The preloaded library lacks an interface that the workload measures.
    #[error("the preloaded allocator has no {0}: only Vellum brings it")]
    Lacks(&'static str),
    /// The result is wrong.
    #[error("{workload}: {what}: the memory did not do what the allocator promised")]
    Wrong {
        /// The workload's name.
        workload: &'static str,
        /// The failed check.
        what: String,
    },
}

/// Parameters of a workload: numbers by name.
#[derive(Debug, Clone, Default)]
pub struct Params(BTreeMap<String, u64>);

impl Params {
    /// Parses words of the form `name=number`.
    ///
    /// # Errors
    /// [`Failure::Parameter`] for a word of another form.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, Failure> {
        let pair = |word: &str| {
            let (name, number) = word.split_once('=')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        let pairs = words
            .iter()
            .map(|word| pair(word.as_ref()).ok_or_else(|| Failure::Parameter(word.as_ref().to_owned())));
        pairs.collect::<Result<_, _>>().map(Self)
    }

    fn get(&self, name: &str, default: u64) -> u64 {
        self.0.get(name).copied().unwrap_or(default)
    }

    fn size(&self, name: &str, default: usize) -> usize {
        self.get(name, default as u64) as usize
    }

    fn seed(&self) -> u64 {
        self.get("seed", 1)
    }
}

type Work = fn(&Params) -> Result<Metrics, Failure>;

/// A workload: its name and its function, with parameters for a run of milliseconds.
pub struct Workload {
    /// The name on the worker's command line.
    pub name: &'static str,
    /// Parameters for a run of a few milliseconds.
    pub tiny: &'static [&'static str],
    work: Work,
}

const fn workload(name: &'static str, tiny: &'static [&'static str], work: Work) -> Workload {
    Workload { name, tiny, work }
}

/// Every workload.
pub const WORKLOADS: &[Workload] = &[
    workload("large", &["bytes=262144", "pages=256", "groups=3"], large::blocks),
    workload("retouch", &["bytes=262144", "pages=256", "groups=3"], large::floor),
    workload("pair", &["bytes=1048576", "pairs=50", "groups=3"], large::pair),
    workload("cold", &["bytes=4194304", "count=1"], cold::blocks),
    workload("sparse", &["bytes=4194304", "count=2"], cold::sparse),
    workload("back", &["bytes=1048576", "huge_bytes=2097152"], cold::back),
    workload("grow-once", &["loops=5"], growth::once),
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
];

/// Runs the workload called `name` in this process.
///
/// # Errors
/// [`Failure`] if there is no such workload, it lacks an interface, or its result is wrong.
pub fn run(name: &str, params: &Params) -> Result<Metrics, Failure> {
    let found = WORKLOADS.iter().find(|w| w.name == name);
    found.map_or_else(|| Err(Failure::Unknown(name.to_owned())), |w| (w.work)(params))
}

/// Adds the memory figures that every workload reports: `peak_bytes` and `end_bytes`.
fn with_memory(mut metrics: Metrics) -> Metrics {
    metrics.set("end_bytes", crate::meter::resident_bytes());
    metrics.set("peak_bytes", crate::meter::peak_bytes());
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_runs_small_and_measures() {
        for workload in WORKLOADS {
            let params = Params::parse(workload.tiny).unwrap();
            match run(workload.name, &params) {
                Ok(metrics) => assert!(metrics.iter().count() > 0, "{} measured nothing", workload.name),
                // Vellum is not preloaded into the test's own process.
                Err(Failure::Lacks(_)) => {}
                Err(other) => panic!("{}: {other}", workload.name),
            }
        }
    }

    #[test]
    fn parameters_are_numbers_by_name() {
        let params = Params::parse(&["bytes=17"]).unwrap();
        assert_eq!((params.get("bytes", 1), params.get("absent", 5)), (17, 5));
        for bad in ["bytes", "bytes=x", "=", "bytes=-1"] {
            assert_eq!(Params::parse(&[bad]).unwrap_err(), Failure::Parameter(bad.to_owned()));
        }
        assert_eq!(run("nonesuch", &params), Err(Failure::Unknown("nonesuch".to_owned())));
    }
}
