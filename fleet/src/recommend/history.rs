//! Reads the history of each systemd unit of a machine from Prometheus.
//!
//! Load varies by day and by week, so the default length is eight days. A unit is identified by its name,
//! so its history continues after a restart.

use super::decide::History;
use crate::Error;
use crate::http::Server;
use crate::metrics::{BY_AGE, JOB_PRESSURE, OOM_LIMIT};
use crate::prometheus::{quoted, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use vellum_governor::families::{ADVISED, Family};

/// Queries about the series with these labels: the age of each in seconds, within the last `over`; the
/// largest recommendations of both kinds; `stalls`; and the largest limit under which it was OOM-killed.
pub(super) fn queries(labels: &str, over: Duration, stalls: String) -> [String; 5] {
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
pub fn ask(
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
