//! Reads the history of each container from Prometheus' HTTP API.
//!
//! A container is identified by namespace, pod and name. Pods that have ended count, too: a workload's
//! history covers all pods that it had in the requested time.
//!
//! Invariant: rows with labels that are not valid Kubernetes names are left out and counted. No label can
//! therefore become a path, a pattern or a second line.

use super::decide::History;
use super::history::queries;
use crate::Error;
use crate::http::Server;
use crate::kube::{is_label, is_name};
use crate::metrics::{JOB_PRESSURE, LIMIT};
use crate::prometheus::{quoted, rows};
use std::collections::BTreeMap;
use std::time::Duration;

/// A workload whose tasks all stall for more than this part of ten minutes had too little memory.
const STALLED: &str = "0.02";

/// The containers of a pod, by name.
pub type Containers = BTreeMap<String, History>;
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

/// Reads the history of each container, of one namespace or all.
///
/// # Errors
/// If any part of the history cannot be read.
pub fn ask(prometheus: &Server, namespace: Option<&str>, over: Duration) -> Result<Memory, Error> {
    let within = namespace.map(|name| format!(",namespace={}", quoted(name))).unwrap_or_default();
    let labels = format!("namespace!=\"\",pod!=\"\",container!=\"\"{within}");
    let stall = format!("rate({JOB_PRESSURE}{{{labels},stall=\"full\"}}[10m])");
    let stalls = format!("{LIMIT}{{{labels}}} and ignoring (stall) ({stall} > {STALLED})");
    let stalls = format!("max_over_time(({stalls})[1d:10m])");
    let mut memory = Memory::default();
    for (number, query) in queries(&labels, over, stalls).iter().enumerate() {
        // One row per container, whichever node it was on.
        for mut row in rows(prometheus, &format!("max by (namespace, pod, container) ({query})"), None)? {
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
            let history = pods.entry(pod).or_default().entry(container).or_default();
            let History { known_seconds, advised, by_age, stalled_under, killed_under, .. } = history;
            *[known_seconds, advised, by_age, stalled_under, killed_under][number] = Some(value);
        }
    }
    Ok(memory)
}
