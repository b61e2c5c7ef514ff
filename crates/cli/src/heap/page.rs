//! The profile as one HTML page, and as a part of the page of `vellum run`: who holds memory at the peak and
//! at the end, with the flame graph of each, and where resident memory is.

use super::args::When;
use super::json::SCHEMA;
use super::observed::{Observed, blocks};
use super::tables::{self, Shown, Tree};
use super::{flame, resident};
use crate::page::{self, Page};
use vellum_cost::Resident;
use vellum_report::units::{bytes, count, many, size, time};
use vellum_wire::held::Amount;

/// Lines that a table of the page has.
const LINES_MAX: usize = 20;
/// Columns that a line's name may have: the page wraps it.
const NAME_MAX: usize = 400;

/// The page.
pub(super) fn html(observed: &Observed) -> String {
    let notes = page::notes(&observed.notes);
    let footer = format!("profiled for {} · schema {SCHEMA}", time(observed.wall()));
    let (command, outcome) = (&observed.command, &observed.outcome());
    let page =
        Page { made_by: "vellum heap", subject: "who holds memory", command, outcome, footer: &footer };
    page.html(&(notes + &tiles(observed) + &sections(observed)))
}

fn tiles(observed: &Observed) -> String {
    let sum = observed.sum();
    let held = |amount: Amount| (bytes(amount.bytes), format!("in {}", many(blocks(amount), "block")));
    let now = if observed.is_running() { "held now" } else { "held at the end" };
    let mut all = Vec::new();
    for (name, amount) in [("held at the peak", sum.peak), (now, sum.now), ("allocated in all", sum.ever)] {
        let (figure, detail) = held(amount);
        all.push((name, figure, detail));
    }
    if let Some((processes, resident)) = observed.resident() {
        let of = many(processes as u64, "process");
        let name = if observed.is_running() { "resident now" } else { "resident at the end" };
        all.push((name, bytes(Resident::sum(&resident)), format!("of {of}")));
    }
    let interval = size(usize::try_from(observed.interval).unwrap_or(usize::MAX));
    // Growth from one profile to another has none.
    if sum.ever.samples > 0 || sum.ever.bytes == 0 {
        all.push(("samples", count(sum.ever.samples), format!("one every {interval}")));
    }
    page::tiles(&all)
}

/// The sections on who holds memory, and on where resident memory is.
pub(crate) fn sections(observed: &Observed) -> String {
    let now = if observed.is_running() { "Held now" } else { "Held at the end" };
    let mut html = held(observed, "Held at the peak", When::Peak);
    html.push_str(&held(observed, now, When::End));
    if let Some(sites) = tables::sites(observed, "line", When::Ever, Tree::Callers, (LINES_MAX, NAME_MAX)) {
        html.push_str(&page::section("All allocations, freed blocks included", &shown(&sites)));
    }
    let tables = resident::tables(observed, LINES_MAX, NAME_MAX);
    if !tables.is_empty() {
        let tables: String = tables.iter().map(vellum_report::Table::html).collect();
        html.push_str(&page::section("Where resident memory is", &tables));
    }
    if let Some(processes) = tables::processes(observed) {
        html.push_str(&page::section("Held by process", &shown(&processes)));
    }
    html
}

fn held(observed: &Observed, title: &str, when: When) -> String {
    let content = match tables::sites(observed, "line", when, Tree::Callers, (LINES_MAX, NAME_MAX)) {
        Some(sites) => flame::inline(observed, when) + &shown(&sites),
        None => page::remark("Nothing."),
    };
    page::section(title, &content)
}

fn shown((table, rest): &Shown) -> String {
    table.html() + &rest.as_ref().map_or(String::new(), |rest| page::remark(rest))
}
