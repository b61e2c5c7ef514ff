//! The profile as JSON, schema `vellum.heap/1`; docs/heap.md has it field by field.
//!
//! Names are stable; fields may be added. All amounts are estimates.

use super::observed::{End, Observed, Stacked, blocks};
use super::resident;
use crate::document::{Head, Where};
use serde::{Serialize, Serializer};
use std::collections::HashMap;
use vellum_cost::{Cause, Holder, Holding, Resident};
use vellum_report::json;
use vellum_wire::held::Amount;

/// The schema's name and version.
pub(super) const SCHEMA: &str = "vellum.heap/1";

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(flatten)]
    body: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    interval_bytes: u64,
    sum: Held,
    processes: Vec<Process<'a>>,
    resident: Option<resident::Document>,
    notes: &'a [String],
    freed_bytes: u64,
    resident_over_time: &'a [(u64, u64)],
    sites: Vec<Site<'a>>,
    stacks: Vec<Stack<'a>>,
}

#[derive(Serialize)]
struct Held {
    peak: Size,
    end: Size,
    ever: Size,
}

#[derive(Serialize)]
struct Size {
    bytes: u64,
    blocks: u64,
    samples: u64,
}

#[derive(Serialize)]
struct Process<'a> {
    pid: u32,
    name: &'a str,
    is_forked: bool,
    lost_samples: u64,
    resident_bytes: Option<u64>,
    held: Held,
}

#[derive(Serialize)]
struct Site<'a> {
    place: Where<'a>,
    via: Option<&'a str>,
    held: Held,
    pinned_bytes: u64,
}

#[derive(Serialize)]
struct Stack<'a> {
    site: usize,
    callers: Vec<&'a str>,
    frames: Vec<Frame<'a>>,
    held: Held,
}

#[derive(Serialize)]
struct Frame<'a> {
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    module: Option<String>,
    address: u64,
}

fn size(amount: Amount) -> Size {
    Size { bytes: amount.bytes, blocks: blocks(amount), samples: amount.samples }
}

fn held(holding: &Holding) -> Held {
    Held { peak: size(holding.peak), end: size(holding.now), ever: size(holding.ever) }
}

/// The document.
pub(crate) fn render(observed: &Observed) -> String {
    let head = match &observed.end {
        End::Ended(ended) => Head::new(SCHEMA, &observed.command, &observed.program, ended),
        End::Looked { wall, .. } => {
            let outcome = (observed.outcome(), None);
            Head::of_look(SCHEMA, &observed.command, &observed.program, outcome, *wall)
        }
    };
    json(&Document { head, body: body(observed) })
}

/// The document without its head: a field of another document, which has one.
impl Serialize for Observed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        body(self).serialize(to)
    }
}

fn body(observed: &Observed) -> Body<'_> {
    let pinned: HashMap<&Cause, u64> = observed.pinned.iter().map(|(cause, pins)| (cause, *pins)).collect();
    let pinned = |cause: &Cause| pinned.get(cause).copied().unwrap_or(0);
    Body {
        interval_bytes: observed.interval,
        sum: held(&observed.sum()),
        processes: observed.holders.iter().map(process_of).collect(),
        resident: resident::document(observed),
        notes: &observed.notes,
        freed_bytes: observed.freed(),
        resident_over_time: &observed.curve,
        sites: observed.sites.iter().map(|(cause, holding)| site(cause, holding, pinned(cause))).collect(),
        stacks: observed.stacks.iter().map(stack).collect(),
    }
}

fn process_of(holder: &Holder) -> Process<'_> {
    Process {
        pid: holder.pid,
        name: &holder.name,
        is_forked: holder.is_forked,
        lost_samples: holder.lost,
        resident_bytes: holder.resident.as_ref().map(Resident::sum),
        held: held(&holder.holding),
    }
}

fn site<'a>(cause: &'a Cause, holding: &Holding, pinned_bytes: u64) -> Site<'a> {
    Site { place: Where::of(&cause.place), via: cause.via.as_deref(), held: held(holding), pinned_bytes }
}

fn stack(stack: &Stacked) -> Stack<'_> {
    let frames = stack.levels.iter().flat_map(|level| {
        level.functions.iter().map(|function| Frame {
            function: function.name.as_deref(),
            file: function.file.as_deref(),
            line: function.line,
            module: level.module.as_deref().map(|module| module.display().to_string()),
            address: level.address,
        })
    });
    let (site, callers) = (stack.site, stack.callers.iter().map(|(label, _)| &**label).collect());
    Stack { site, callers, frames: frames.collect(), held: held(&stack.holding) }
}
