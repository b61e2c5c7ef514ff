//! The text of a heap report: sums, the source lines that hold or allocate most, and resident memory by
//! kind. `vellum run --heap` shows a part of it.

use super::args::{Heap, When};
use super::json::SCHEMA;
use super::observed::{Observed, blocks};
use super::tables::{self, Tree};
use super::{flame, resident};
use crate::text::{ending, shown_command};
use vellum_cost::{Cause, Holding};
use vellum_measure::Unit;
use vellum_report::Figure::{Bytes, Many};
use vellum_report::plot::{Chart, Shape};
use vellum_report::units::{bytes, count, many, size, time};
use vellum_report::{Head, Report, Row, Section, WORDS_MAX};
use vellum_wire::held::Amount;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The most lines of a table.
    top: usize,
    columns: usize,
    /// The table with call trees below its lines, and their direction; `None`: all tables, callers.
    tree: Option<(When, Tree)>,
    /// True if the tables of processes and of all allocations are shown.
    is_whole: bool,
}

impl Extent {
    /// The page: it wraps long names.
    pub(crate) const PAGE: Extent = Extent { top: 20, columns: 440, tree: None, is_whole: true };
    /// The report of `vellum run`.
    pub(crate) const RUN: Extent =
        Extent { top: 5, columns: WORDS_MAX, tree: Some((When::Peak, Tree::Callers)), is_whole: false };

    /// The extent from the options, in this number of columns.
    pub(super) fn of(args: &Heap, columns: usize) -> Extent {
        let tree = if args.callees { Tree::Callees } else { Tree::Callers };
        Extent { top: args.top, columns, tree: Some((args.of, tree)), is_whole: true }
    }
}

pub(super) fn report<'a>(observed: &'a Observed, extent: &Extent) -> Report<'a> {
    let mut report = Report::new(Head {
        name: "vellum heap",
        subject: "who holds memory",
        of: shown_command(&observed.command),
        ending: ending(&observed.outcome()),
        footer: format!("profiled for {} · schema {SCHEMA}", time(observed.wall())),
    });
    report.section(Section::new(), |section| summary(section, observed));
    report.sections(sections(observed, extent));
    report
}

fn summary(section: &mut Section, observed: &Observed) {
    let sum = observed.sum();
    let row = |label, amount: Amount, more: &str| {
        let blocks = Many(blocks(amount), "block");
        Row::new(label).amount(Bytes(amount.bytes), format!("in {blocks}{more}"))
    };
    let now = if observed.is_running() { "now" } else { "at the end" };
    section.row(row("peak", sum.peak, "")).row(row(now, sum.now, ""));
    let freed = format!(", {} of them freed", bytes(observed.freed()));
    section.row(row("allocated", sum.ever, &freed));
    if !observed.curve.is_empty() {
        section.curve("resident", resident_over_time(&observed.curve));
    }
    let from = many(observed.holders.len() as u64, "process");
    let is_whole = observed.holders.iter().all(|holder| holder.lost == 0);
    let which = match observed.interval {
        1 if is_whole => "every block: figures are exact".to_owned(),
        1 => "of every block, but some are missing: figures are too low".to_owned(),
        bytes => format!(
            "one every {} on average: figures are estimates, ± their standard error",
            size(usize::try_from(bytes).unwrap_or(usize::MAX))
        ),
    };
    let samples = format!("{} from {from}, {which}", count(sum.ever.samples));
    section.rows([("samples", samples)]).notes(&observed.notes);
}

fn resident_over_time(samples: &[(u64, u64)]) -> Chart {
    let points: Vec<_> = samples.iter().map(|(at, bytes)| (*at as f64, *bytes as f64)).collect();
    let chart = Chart::over_time("Resident memory over time", "memory", Unit::Bytes);
    chart.with(Shape::Line, "resident, all processes", &points)
}

/// The sections on the lines that hold memory, and on resident memory.
pub(crate) fn sections(observed: &Observed, extent: &Extent) -> Vec<Section> {
    let (now, held_now) = match observed.is_running() {
        true => ("Held now", "held now"),
        false => ("Held at the end", "held at the end"),
    };
    let mut processes = Section::on_page("Held by process");
    if let Some((table, rest)) = tables::processes(observed).filter(|_| extent.is_whole) {
        processes.table(table).remark(rest);
    }
    let mut sections = vec![
        processes,
        sites(observed, "Held at the peak", "held at the peak", When::Peak, extent),
        sites(observed, now, held_now, When::End, extent),
    ];
    if extent.is_whole {
        let title = "All allocations, freed blocks included";
        sections.push(sites(observed, title, "allocated in all", When::Ever, extent));
    }
    let room = extent.columns.saturating_sub(resident::FIGURES_WIDTH);
    let mut resident = Section::on_page("Where resident memory is");
    resident::tables(observed, extent.top, room).into_iter().for_each(|table| _ = resident.table(table));
    sections.push(resident);
    sections
}

fn sites(observed: &Observed, title: &str, words: &str, when: When, extent: &Extent) -> Section {
    let mut section = Section::on_page(title);
    let is_peaks = |(_, holding): &(Cause, Holding)| when.of(holding) == holding.peak;
    let tree = match extent.tree {
        None => Tree::Callers,
        Some((of, tree)) if of == when => tree,
        Some(_) => Tree::Flat,
    };
    let room = extent.columns.saturating_sub(tables::FIGURES_WIDTH);
    match tables::sites(observed, words, when, tree, (extent.top, room)) {
        Some(_) if tree == Tree::Flat && when != When::Peak && observed.sites.iter().all(is_peaks) => {
            section.remark(format!("{words}: the same"));
        }
        Some((table, rest)) => {
            if when != When::Ever && extent.tree.is_none() {
                section.picture(flame::inline(observed, when));
            }
            section.table(table).remark(rest);
        }
        None => {
            section.remark(format!("{words}: nothing"));
        }
    }
    section
}
