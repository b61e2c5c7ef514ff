//! The report as JSON, schema `vellum.cost/1`; docs/cost.md has it field by field.
//!
//! Names are stable; fields may be added. Times are nanoseconds with the base subtracted.

use super::observed::Observed;
use crate::document::{Head, Where};
use serde::Serialize;
use vellum_cost::Item;
use vellum_measure::Base;
use vellum_report::json;

/// The schema's name and version.
pub(super) const SCHEMA: &str = "vellum.cost/1";

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    on_vellum: bool,
    operations: Operations,
    faults: Option<Faults>,
    recording: Option<Recording<'a>>,
    notes: &'a [String],
    items: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Operations {
    count: u64,
    on_lines: u64,
    timed: u64,
    disturbed: u64,
    disturbed_ns: f64,
    processes: u64,
    before_recording: u64,
    lost: u64,
}

#[derive(Serialize)]
struct Faults {
    minor: u64,
    major: u64,
    on_lines: u64,
    own: u64,
    not_shown: u64,
    inside_kernel_shown: bool,
    minor_fault_ns: Option<f64>,
}

#[derive(Serialize)]
struct Recording<'a> {
    base: &'a Base,
    count_ns: f64,
    timed_ns: f64,
    rare_ns: f64,
    total_ns: f64,
}

#[derive(Serialize)]
struct Entry<'a> {
    place: Where<'a>,
    via: Option<&'a str>,
    operation: &'static str,
    size_max_bytes: Option<usize>,
    size_above_bytes: Option<usize>,
    count: u64,
    count_is_scaled: bool,
    bytes: Option<u64>,
    times: Option<Times>,
}

#[derive(Serialize)]
struct Times {
    timed: u64,
    mean_ns: f64,
    min_ns: f64,
    max_ns: f64,
    std_ns: f64,
    total_ns: f64,
    disturbed: u64,
    disturbed_ns: f64,
}

/// The document.
pub(crate) fn render(observed: &Observed) -> String {
    let profile = &observed.profile;
    json(&Document {
        head: Head::new(SCHEMA, &observed.command, &observed.program, &observed.ended),
        on_vellum: observed.on_vellum,
        operations: Operations {
            count: profile.operations,
            on_lines: profile.on_lines,
            timed: profile.timed,
            disturbed: profile.disturbed.count,
            disturbed_ns: profile.disturbed.total_ns,
            processes: profile.processes,
            before_recording: profile.early,
            lost: profile.lost,
        },
        faults: profile.faults.as_ref().map(|faults| Faults {
            minor: faults.minor,
            major: faults.major,
            on_lines: profile.faults_on_lines,
            own: faults.own,
            not_shown: faults.lost,
            inside_kernel_shown: faults.sees_kernel,
            minor_fault_ns: profile.minor_fault_ns,
        }),
        recording: profile.own.as_ref().map(|own| Recording {
            base: &own.base,
            count_ns: own.count_ns,
            timed_ns: own.timed_ns,
            rare_ns: own.rare_ns,
            total_ns: own.total_ns,
        }),
        notes: &observed.notes,
        items: profile.items.iter().map(entry).collect(),
    })
}

fn entry(item: &Item) -> Entry<'_> {
    let class = item.operation.class_max();
    Entry {
        place: Where::of(&item.cause.place),
        via: item.cause.via.as_deref(),
        operation: item.operation.kind().id(),
        size_max_bytes: class.flatten(),
        size_above_bytes: (class == Some(None)).then(vellum_wire::operation::Operation::beyond_classes),
        count: item.count,
        count_is_scaled: item.is_scaled,
        bytes: item.bytes,
        times: item.times.map(|times| Times {
            timed: times.n,
            mean_ns: times.mean,
            min_ns: times.min,
            max_ns: times.max,
            std_ns: times.std,
            total_ns: times.mean * item.count as f64,
            disturbed: item.disturbed.count,
            disturbed_ns: item.disturbed.total_ns,
        }),
    }
}
