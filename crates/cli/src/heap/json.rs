//! The heap profile as JSON, schema `vellum.heap/1`; docs/heap.md documents each field.
//!
//! Names are stable; fields may be added. All amounts are estimates.

use super::observed::{End, Observed, Stacked, blocks};
use super::resident;
use crate::document::{Document, Head, place};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::HashMap;
use vellum_cost::{Cause, Holder, Holding, Resident};
use vellum_wire::held::Amount;

pub(super) const SCHEMA: &str = "vellum.heap/1";

pub(super) fn document(observed: &Observed) -> Document<'_> {
    let head = match &observed.end {
        End::Ended(ended) => Head::new(SCHEMA, &observed.command, &observed.program, ended),
        End::Looked { wall, .. } => {
            let outcome = (observed.outcome(), None);
            Head::of_look(SCHEMA, &observed.command, &observed.program, outcome, *wall)
        }
    };
    Document { head, body: body(observed) }
}

/// The document without its head, as a field of another document.
impl Serialize for Observed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        body(self).serialize(to)
    }
}

fn body(observed: &Observed) -> Value {
    let pinned: HashMap<&Cause, u64> = observed.pinned.iter().map(|(cause, pins)| (cause, *pins)).collect();
    let site = |(cause, holding): &(Cause, Holding)| {
        json!({
            "place": place(&cause.place), "via": cause.via.as_deref(), "held": held(holding),
            "pinned_bytes": pinned.get(cause).copied().unwrap_or(0),
        })
    };
    json!({
        "interval_bytes": observed.interval,
        "sum": held(&observed.sum()),
        "processes": observed.holders.iter().map(process).collect::<Vec<_>>(),
        "resident": resident::document(observed),
        "notes": observed.notes,
        "freed_bytes": observed.freed(),
        "resident_over_time": observed.curve,
        "sites": observed.sites.iter().map(site).collect::<Vec<_>>(),
        "stacks": observed.stacks.iter().map(stack).collect::<Vec<_>>(),
    })
}

fn held(holding: &Holding) -> Value {
    let size =
        |amount: Amount| json!({"bytes": amount.bytes, "blocks": blocks(amount), "samples": amount.samples});
    json!({"peak": size(holding.peak), "end": size(holding.now), "ever": size(holding.ever)})
}

fn process(holder: &Holder) -> Value {
    json!({
        "pid": holder.pid, "name": holder.name, "is_forked": holder.is_forked, "lost_samples": holder.lost,
        "resident_bytes": holder.resident.as_ref().map(Resident::sum), "held": held(&holder.holding),
    })
}

fn stack(stack: &Stacked) -> Value {
    let frames = stack.levels.iter().flat_map(|level| {
        level.functions.iter().map(|function| {
            json!({
                "function": function.name.as_deref(), "file": function.file.as_deref(), "line": function.line,
                "module": level.module.as_deref().map(|module| module.display().to_string()),
                "address": level.address,
            })
        })
    });
    let callers: Vec<&str> = stack.callers.iter().map(|(label, _)| &**label).collect();
    json!({
        "site": stack.site, "callers": callers, "frames": frames.collect::<Vec<_>>(),
        "held": held(&stack.holding),
    })
}
