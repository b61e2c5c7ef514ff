//! The report of `vellum cost` as JSON, schema `vellum.cost/1`; docs/cost.md documents each field.
//!
//! Names are stable; fields may be added. Times are in nanoseconds; the clock's own cost is subtracted.

use super::observed::Observed;
use crate::document::{Document, Head, place};
use serde_json::{Value, json};
use vellum_cost::Item;
use vellum_wire::operation::Operation;

pub(super) const SCHEMA: &str = "vellum.cost/1";

pub(super) fn document(observed: &Observed) -> Document<'_> {
    let profile = &observed.profile;
    let faults = profile.faults.as_ref().map(|faults| {
        json!({
            "minor": faults.minor, "major": faults.major, "on_lines": profile.faults_on_lines, "own": faults.own,
            "not_shown": faults.lost, "inside_kernel_shown": faults.sees_kernel,
            "minor_fault_ns": profile.minor_fault_ns,
        })
    });
    let recording = profile.own.as_ref().map(|own| {
        json!({
            "base": own.base, "count_ns": own.count_ns, "timed_ns": own.timed_ns, "rare_ns": own.rare_ns,
            "total_ns": own.total_ns,
        })
    });
    let operations = json!({
        "count": profile.operations, "on_lines": profile.on_lines, "timed": profile.timed,
        "disturbed": profile.disturbed.count, "disturbed_ns": profile.disturbed.total_ns,
        "processes": profile.processes, "before_recording": profile.early, "lost": profile.lost,
    });
    Document {
        head: Head::new(SCHEMA, &observed.command, &observed.program, &observed.ended),
        body: json!({
            "on_vellum": observed.on_vellum, "operations": operations, "faults": faults, "recording": recording,
            "notes": observed.notes, "items": profile.items.iter().map(entry).collect::<Vec<_>>(),
        }),
    }
}

fn entry(item: &Item) -> Value {
    let class = item.operation.class_max();
    let times = item.times.map(|times| {
        json!({
            "timed": times.n, "mean_ns": times.mean, "min_ns": times.min, "max_ns": times.max, "std_ns": times.std,
            "total_ns": item.total_ns(), "disturbed": item.disturbed.count,
            "disturbed_ns": item.disturbed.total_ns,
        })
    });
    json!({
        "place": place(&item.cause.place), "via": item.cause.via.as_deref(), "operation": item.operation.kind().id(),
        "size_max_bytes": class.flatten(),
        "size_above_bytes": (class == Some(None)).then(Operation::beyond_classes),
        "count": item.count, "count_is_scaled": item.is_scaled, "bytes": item.bytes, "times": times,
    })
}
