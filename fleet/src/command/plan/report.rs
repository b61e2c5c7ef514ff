//! The report of `vellum plan`, as tables and as JSON.

use serde::Serialize;
use std::time::Duration;
use vellum_fleet::plan::{Choice, Fleet, choose, each, nodes, peak};
use vellum_report::{Table, units};

/// The schema of the JSON. Fields may be added, but their meanings never change.
const SCHEMA: &str = "vellum.plan/1";
const HOUR: f64 = 3600.0;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema: &'static str,
    vellum_version: &'static str,
    containers: u64,
    container_hours: u64,
    rows_left_out: u64,
    hours: u64,
    delay_ns: u64,
    node_bytes: u64,
    cpu_seconds: f64,
    /// The maximum resident memory of all containers together, as a mean over the hours.
    resident_mean_bytes: f64,
    plans: Vec<Planned>,
}

/// The plan for one slowdown.
#[derive(Debug, Serialize)]
struct Planned {
    slowdown: f64,
    /// The least for all together, as a mean over the hours, and `least`, its lower bound.
    mean_bytes: f64,
    least_mean_bytes: f64,
    /// The memory if each container alone keeps to the slowdown.
    each_mean_bytes: f64,
    peak_bytes: f64,
    peak_hour_ms: i64,
    nodes: u64,
    nodes_least: u64,
    containers_too_large: u64,
    owners: Vec<Owner>,
}

/// The memory and the loss of one owner.
#[derive(Debug, Serialize, Default)]
struct Owner {
    name: String,
    containers: u64,
    resident_mean_bytes: f64,
    mean_bytes: f64,
    slowdown: f64,
    lost_cpu_seconds: f64,
    #[serde(skip)]
    cpu_seconds: f64,
}

pub(super) fn report(fleet: &Fleet, slowdowns: &[f64], delay: Duration, node: u64) -> Report {
    let (first, last) = fleet.seen.hours.unwrap_or_default();
    let hours = (last - first + 1) as f64;
    let held = fleet.containers.iter().map(|container| container.resident_bytes * f64::from(container.hours));
    let planned = |slowdown: &f64| {
        let choice = choose(fleet, *slowdown);
        let (hour, peak_bytes) = peak(fleet, &choice).unwrap_or_default();
        let taken = nodes(fleet, &choice, hour, node as f64);
        Planned {
            slowdown: *slowdown,
            mean_bytes: choice.byte_hours / hours,
            least_mean_bytes: choice.least / hours,
            each_mean_bytes: each(fleet, *slowdown).byte_hours / hours,
            peak_bytes,
            peak_hour_ms: hour * HOUR as i64 * 1000,
            nodes: taken.count,
            nodes_least: taken.least,
            containers_too_large: taken.too_large,
            owners: owners(fleet, &choice, hours),
        }
    };
    Report {
        schema: SCHEMA,
        vellum_version: env!("CARGO_PKG_VERSION"),
        containers: fleet.containers.len() as u64,
        container_hours: fleet.seen.rows,
        rows_left_out: fleet.seen.left_out,
        hours: hours as u64,
        delay_ns: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX),
        node_bytes: node,
        cpu_seconds: fleet.cpu_seconds(),
        resident_mean_bytes: held.sum::<f64>() / hours,
        plans: slowdowns.iter().map(planned).collect(),
    }
}

/// The owners, sorted by their loss, the largest first.
fn owners(fleet: &Fleet, choice: &Choice, hours: f64) -> Vec<Owner> {
    let of = |name: &String| Owner { name: name.clone(), ..Owner::default() };
    let mut owners: Vec<Owner> = fleet.owners.iter().map(of).collect();
    for (container, size) in fleet.containers.iter().zip(&choice.sizes) {
        let owner = &mut owners[container.owner as usize];
        let there = f64::from(container.hours) / hours;
        owner.containers += 1;
        owner.resident_mean_bytes += container.resident_bytes * there;
        owner.mean_bytes += container.size(*size as usize) * there;
        owner.lost_cpu_seconds += container.lost(*size as usize);
        owner.cpu_seconds += container.cpu_seconds;
    }
    for owner in owners.iter_mut().filter(|owner| owner.cpu_seconds > 0.0) {
        owner.slowdown = owner.lost_cpu_seconds / owner.cpu_seconds;
    }
    owners
        .sort_by(|a, b| b.lost_cpu_seconds.total_cmp(&a.lost_cpu_seconds).then_with(|| a.name.cmp(&b.name)));
    owners
}

fn bytes(bytes: f64) -> String {
    units::bytes(bytes as u64)
}

fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

impl Report {
    /// The report as text.
    pub(super) fn text(&self, top: usize) -> String {
        let mut text = format!(
            "{} of {} in {} ({:.0} CPU hours); a page fault costs {}\n",
            units::many(self.container_hours, "container-hour"),
            units::many(self.containers, "container"),
            units::many(self.hours, "hour"),
            self.cpu_seconds / HOUR,
            units::time(Duration::from_nanos(self.delay_ns)),
        );
        if self.rows_left_out > 0 {
            text += &format!(
                "{} left out: no curve, or one that makes no sense\n",
                units::many(self.rows_left_out, "row")
            );
        }
        let node = format!("nodes of {}", units::bytes(self.node_bytes));
        let mut table =
            Table::plain(&["slowdown", "memory", "if each alone", "peak hour", &node, "to the least"], 0);
        table.row(["held today", &bytes(self.resident_mean_bytes), "", "", "", ""].map(str::to_owned).into());
        for plan in &self.plans {
            let off = plan.mean_bytes / plan.least_mean_bytes.max(1.0) - 1.0;
            table.row(vec![
                percent(plan.slowdown),
                bytes(plan.mean_bytes),
                bytes(plan.each_mean_bytes),
                bytes(plan.peak_bytes),
                plan.nodes.to_string(),
                format!("+{}", percent(off.max(0.0))),
            ]);
        }
        text += "\n";
        text += &table.text();
        for plan in self.plans.iter().filter(|plan| plan.containers_too_large > 0) {
            let count = units::many(plan.containers_too_large, "container");
            text += &format!("{}: {count} larger than a node in no node\n", percent(plan.slowdown));
        }
        for plan in &self.plans {
            text += &format!("\nWho pays at {}:\n", percent(plan.slowdown));
            let mut table =
                Table::plain(&["owner", "containers", "held today", "gets", "slowdown", "CPU lost"], 1);
            for owner in plan.owners.iter().take(top) {
                table.row(vec![
                    owner.name.replace(char::is_control, "?"),
                    owner.containers.to_string(),
                    bytes(owner.resident_mean_bytes),
                    bytes(owner.mean_bytes),
                    percent(owner.slowdown),
                    units::time(Duration::from_secs_f64(owner.lost_cpu_seconds.clamp(0.0, 1e15))),
                ]);
            }
            text += &table.text();
            if plan.owners.len() > top {
                text +=
                    &format!("and {} who pay less\n", units::many((plan.owners.len() - top) as u64, "other"));
            }
        }
        text
    }
}
