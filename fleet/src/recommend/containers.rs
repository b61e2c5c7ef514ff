//! Reads the history of each container from Prometheus' HTTP API.
//!
//! A container is identified by namespace, pod and name. Pods that have ended count, too: a workload's
//! history covers all pods that it had in the requested time.
//!
//! Invariant: rows with labels that are not valid Kubernetes names are left out and counted. No label can
//! therefore become a path, a pattern or a second line.

use super::decide::History;
use crate::http::Server;
use crate::kube::{is_label, is_name};
use crate::metrics::{BY_AGE, JOB_PRESSURE, LIMIT, OOM_LIMIT};
use crate::prometheus::{HistoryError, known, quoted, rows};
use std::collections::BTreeMap;
use std::time::Duration;
use vellum_governor::families::{ADVISED, Family};

/// A workload whose tasks all stall for more than this part of ten minutes had too little memory.
const STALLED: &str = "0.02";

/// The history of a container.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Remembered {
    /// Its recommendations.
    pub history: History,
    /// The largest hard limit under which it stalled within the last day, in bytes.
    pub stalled_under: Option<f64>,
}

impl Remembered {
    /// The combined history of two containers of the same workload.
    #[must_use]
    pub fn and(&self, other: &Remembered) -> Remembered {
        let (a, b) = (&self.history, &other.history);
        Remembered {
            history: History {
                known_seconds: most(a.known_seconds, b.known_seconds),
                advised: most(a.advised, b.advised),
                by_age: most(a.by_age, b.by_age),
                stalled: most(a.stalled, b.stalled),
                killed_under: most(a.killed_under, b.killed_under),
            },
            stalled_under: most(self.stalled_under, other.stalled_under),
        }
    }
}

/// The larger value. An invalid one takes precedence, so that it is noticed: `f64::max` would hide it.
fn most(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let is_absurd = |value: f64| !value.is_finite() || value <= 0.0;
    match (a, b) {
        (Some(a), Some(b)) if is_absurd(a) || (a >= b && !is_absurd(b)) => Some(a),
        (a, b) => b.or(a),
    }
}

/// The containers of a pod, by name.
pub type Containers = BTreeMap<String, Remembered>;
/// The pods of a namespace, by name.
pub type Pods = BTreeMap<String, Containers>;

/// The histories of all containers.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// By namespace.
    pub namespaces: BTreeMap<String, Pods>,
    /// The number of rows that were left out because of invalid labels.
    pub refused: u64,
}

/// The server and the range of a query.
#[derive(Debug, Clone)]
pub struct Question {
    /// The Prometheus server.
    pub prometheus: Server,
    /// The namespace, or all.
    pub namespace: Option<String>,
    /// The length of the history.
    pub over: Duration,
}

/// Reads the history of each container.
///
/// # Errors
/// [`HistoryError`] if any part of the history cannot be read.
pub fn ask(question: &Question) -> Result<Memory, HistoryError> {
    let within = question.namespace.as_deref().map(|name| format!(",namespace={}", quoted(name)));
    let of = |family: Family, more: &str| {
        let within = within.as_deref().unwrap_or_default();
        format!("{family}{{namespace!=\"\",pod!=\"\",container!=\"\"{within}{more}}}")
    };
    let over = question.over.as_secs().max(1);
    let largest = |family| format!("max_over_time({}[{over}s])", of(family, ""));
    let (advised, by_age) = (of(ADVISED, ""), of(BY_AGE, ""));
    let stall = of(JOB_PRESSURE, ",stall=\"full\"");
    let limit = of(LIMIT, "");
    let queries = [
        known(&format!("{advised} or {by_age}"), over),
        largest(ADVISED),
        largest(BY_AGE),
        format!("max_over_time(({limit} and ignoring (stall) (rate({stall}[10m]) > {STALLED}))[1d:10m])"),
        largest(OOM_LIMIT),
    ];
    let mut memory = Memory::default();
    for (number, query) in queries.iter().enumerate() {
        // One row per container, whichever node it was on.
        for mut row in rows(&question.prometheus, &format!("max by (namespace, pod, container) ({query})"))? {
            let (Some(value), Some(namespace), Some(pod), Some(container)) =
                (row.number(), row.take("namespace"), row.take("pod"), row.take("container"))
            else {
                memory.refused += 1;
                continue;
            };
            if !(is_label(&namespace) && is_name(&pod) && is_label(&container)) {
                memory.refused += 1;
                continue;
            }
            let pods = memory.namespaces.entry(namespace).or_default();
            let known = pods.entry(pod).or_default().entry(container).or_default();
            let Remembered { history, stalled_under } = known;
            let History { known_seconds, advised, by_age, killed_under, .. } = history;
            *[known_seconds, advised, by_age, stalled_under, killed_under][number] = Some(value);
        }
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_prefers_the_larger_or_invalid_value() {
        assert_eq!(most(Some(1.0), Some(2.0)), Some(2.0));
        assert_eq!(most(Some(2.0), Some(1.0)), Some(2.0));
        assert_eq!(most(None, Some(1.0)), Some(1.0));
        assert_eq!(most(Some(1.0), None), Some(1.0));
        for absurd in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            for (a, b) in [(absurd, 5.0), (5.0, absurd)] {
                let kept = most(Some(a), Some(b)).unwrap();
                assert!(!(kept > 0.0 && kept.is_finite()), "{a} and {b}: {kept}");
            }
        }
    }
}
