//! Reads the history of each systemd unit of a machine, or of each container, from Prometheus.
//!
//! Load varies by day and by week, so the default length of the history is eight days. A unit is identified
//! by its name, so its history continues after a restart. A container is identified by namespace, pod and
//! name. Pods that have ended are included: a workload's history covers all pods that it had in the requested
//! time.
//!
//! Invariant: rows of containers with labels that are not valid Kubernetes names are left out and counted.
//! No label can therefore become a path, a pattern or a second line.

use super::decide::History;
use crate::Error;
use crate::http::Server;
use crate::kube::{is_label, is_name};
use crate::metrics::{BY_AGE, JOB_PRESSURE, LIMIT, OOM_LIMIT};
use crate::prometheus::{quoted, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use vellum_governor::families::{ADVISED, Family};

/// A workload whose tasks all stall for more than this part of ten minutes had too little memory.
const STALLED: &str = "0.02";

/// Queries about the series with these labels: the age of each in seconds, within the last `over`; the
/// largest recommendations of both kinds; `stalls`; and the largest limit under which it was OOM-killed.
fn queries(labels: &str, over: Duration, stalls: String) -> [String; 5] {
    let over = over.as_secs().max(1);
    let of = |family: Family| format!("{family}{{{labels}}}");
    let largest = |family| format!("max_over_time({}[{over}s])", of(family));
    // A hundredth locates the start of a series well enough, and keeps the query cheap.
    let (given, step) = (format!("{} or {}", of(ADVISED), of(BY_AGE)), (over / 100).max(1));
    let known = format!("time() - min_over_time(timestamp({given})[{over}s:{step}s])");
    [known, largest(ADVISED), largest(BY_AGE), stalls, largest(OOM_LIMIT)]
}

/// Reads the history of each service of the machine's systemd. `instance` is the node's label, `None` if
/// Prometheus has only one node.
///
/// # Errors
/// If any part of the history cannot be read, or is of several nodes.
pub fn units(
    prometheus: &Server,
    instance: Option<&str>,
    over: Duration,
) -> Result<BTreeMap<String, History>, Error> {
    let instance = instance.map(|instance| format!(",instance={}", quoted(instance))).unwrap_or_default();
    let labels = format!("unit!=\"\",user=\"\"{instance}");
    let stalls = format!("max_over_time(rate({JOB_PRESSURE}{{{labels},stall=\"full\"}}[10m])[1d:5m])");
    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    let mut instances = BTreeSet::new();
    for (number, query) in queries(&labels, over, stalls).iter().enumerate() {
        for mut row in rows(prometheus, query, None)? {
            instances.extend(row.take("instance"));
            let (Some(unit), Some(value)) = (row.take("unit"), row.number()) else { continue };
            let history = histories.entry(unit).or_default();
            let History { known_seconds, advised, by_age, stalled, killed_under, .. } = history;
            *[known_seconds, advised, by_age, stalled, killed_under][number] = Some(value);
        }
    }
    if instances.len() > 1 {
        let all = instances.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Error(format!("Prometheus has units of {all}; choose this machine's with --instance")));
    }
    Ok(histories)
}

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
pub fn containers(prometheus: &Server, namespace: Option<&str>, over: Duration) -> Result<Memory, Error> {
    let within = namespace.map(|name| format!(",namespace={}", quoted(name))).unwrap_or_default();
    let labels = format!("namespace!=\"\",pod!=\"\",container!=\"\"{within}");
    let stall = format!("rate({JOB_PRESSURE}{{{labels},stall=\"full\"}}[10m])");
    let stalls = format!("{LIMIT}{{{labels}}} and ignoring (stall) ({stall} > {STALLED})");
    let stalls = format!("max_over_time(({stalls})[1d:10m])");
    let mut memory = Memory::default();
    for (number, query) in queries(&labels, over, stalls).iter().enumerate() {
        // One row per container, whichever node it was on.
        for mut row in rows(prometheus, &format!("max by (namespace, pod, container) ({query})"), None)? {
            let mut valid = |label, is_valid: fn(&str) -> bool| row.take(label).filter(|name| is_valid(name));
            let (namespace, pod) = (valid("namespace", is_label), valid("pod", is_name));
            let container = valid("container", is_label);
            let (Some(namespace), Some(pod), Some(container), Some(value)) =
                (namespace, pod, container, row.number())
            else {
                memory.refused += 1;
                continue;
            };
            let pods = memory.namespaces.entry(namespace).or_default();
            let history = pods.entry(pod).or_default().entry(container).or_default();
            let History { known_seconds, advised, by_age, stalled_under, killed_under, .. } = history;
            *[known_seconds, advised, by_age, stalled_under, killed_under][number] = Some(value);
        }
    }
    Ok(memory)
}
