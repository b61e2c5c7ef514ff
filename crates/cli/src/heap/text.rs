//! The report for people: sums, and the lines that hold most at the peak, at the end, and that allocate most.

use super::args::{Heap, When};
use super::observed::{Observed, blocks};
use super::resident;
use super::tables::{self, Shown, Tree};
use crate::text::{ending, shown_command};
use crate::wrap::wrapped;
use std::fmt::Write;
use std::time::Duration;
use vellum_cost::{Cause, Holding};
use vellum_report::Style;
use vellum_report::units::{bytes, count, many, size, time};
use vellum_wire::held::Amount;

/// Columns of a label, and of what stands before the words behind one.
const LABEL_WIDTH: usize = 10;
const LABELLED: usize = LABEL_WIDTH + 3;

/// Steps of the curve of resident memory, and the samples that it needs.
const CURVE_STEPS: usize = 30;
const CURVE_SAMPLES: usize = 8;
/// Blocks that fill one to eight eighths of a cell.
const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The report.
pub(crate) fn render(observed: &Observed, args: &Heap, width: usize, style: Style) -> String {
    let sum = observed.sum();
    let mut text = String::new();
    let head = format!("vellum heap: {}", shown_command(&observed.command));
    let _ = writeln!(text, "{}: {}", style.bold(&head), ending(&observed.outcome()));
    let mut line = |label: String, words: &str| {
        for (at, part) in wrapped(words, LABELLED).into_iter().enumerate() {
            let label = if at == 0 { label.clone() } else { " ".repeat(LABEL_WIDTH) };
            let _ = writeln!(text, "  {label} {part}");
        }
    };
    let label = |label: &str| style.label(&format!("{label:<LABEL_WIDTH$}"));
    let said = |amount: Amount| format!("{} in {}", bytes(amount.bytes), many(blocks(amount), "block"));
    line(label("peak"), &said(sum.peak));
    let (now, held_now) =
        if observed.is_running() { ("now", "held now") } else { ("at the end", "held at the end") };
    line(label(now), &said(sum.now));
    let freed = bytes(observed.freed());
    line(label("allocated"), &format!("{}, {freed} of them freed", said(sum.ever)));
    if let Some(curve) = curve(&observed.curve) {
        line(label("resident"), &curve);
    }
    line(
        label("samples"),
        &format!(
            "{} from {}, one every {} on average: figures are estimates, ± their standard error",
            count(sum.ever.samples),
            many(observed.holders.len() as u64, "process"),
            size(usize::try_from(observed.interval).unwrap_or(usize::MAX))
        ),
    );
    for note in &observed.notes {
        line(style.notice(&format!("{:<LABEL_WIDTH$}", "note")), note);
    }
    if let Some(processes) = tables::processes(observed) {
        text.push_str(&shown(&processes, width, style));
    }
    let tree = if args.callees { Tree::Callees } else { Tree::Callers };
    for (title, when) in
        [("held at the peak", When::Peak), (held_now, When::End), ("allocated in all", When::Ever)]
    {
        let tree = if when == args.of { tree } else { Tree::Flat };
        text.push_str(&sites(observed, title, (when, tree), args.top, width, style));
    }
    text + &resident(observed, args.top, width, style)
}

/// Resident memory over time, if there are samples enough.
fn curve(samples: &[(u64, u64)]) -> Option<String> {
    let ((end, _), most) = (samples.last()?, samples.iter().map(|(_, bytes)| *bytes).max()?);
    let mut steps = [0; CURVE_STEPS];
    for (at, bytes) in samples {
        let step = &mut steps[(at * (CURVE_STEPS as u64 - 1) / end.max(&1)) as usize];
        *step = (*step).max(*bytes);
    }
    let mut last = 0;
    let curve = steps.iter().map(|&step| {
        // Between samples it was what it had been.
        last = if step > 0 { step } else { last };
        EIGHTHS[(last * 7).div_ceil(most.max(1)) as usize]
    });
    let curve: String = curve.collect();
    let time = time(Duration::from_nanos(*end));
    (samples.len() >= CURVE_SAMPLES).then(|| format!("{curve} up to {} in {time}", bytes(most)))
}

/// Who holds memory, and where resident memory is: a part of the report of `vellum run`.
pub(crate) fn part(observed: &Observed, top: usize, width: usize, style: Style) -> String {
    let mut text = sites(observed, "held at the peak", (When::Peak, Tree::Callers), top, width, style);
    text.push_str(&sites(observed, "held at the end", (When::End, Tree::Flat), top, width, style));
    text + &resident(observed, top, width, style)
}

fn sites(
    observed: &Observed,
    title: &str,
    (when, tree): (When, Tree),
    top: usize,
    width: usize,
    style: Style,
) -> String {
    let is_peaks = |(_, holding): &(Cause, Holding)| when.of(holding) == holding.peak;
    let room = width.saturating_sub(tables::FIGURES_WIDTH);
    match tables::sites(observed, title, when, tree, (top, room)) {
        Some(_) if tree == Tree::Flat && when != When::Peak && observed.sites.iter().all(is_peaks) => {
            format!("\n{title}: the same\n")
        }
        Some(sites) => shown(&sites, width, style),
        None => format!("\n{title}: nothing\n"),
    }
}

fn resident(observed: &Observed, top: usize, width: usize, style: Style) -> String {
    let tables = resident::tables(observed, top, width.saturating_sub(resident::FIGURES_WIDTH));
    tables.into_iter().map(|table| shown(&(table, None), width, style)).collect()
}

fn shown((table, rest): &Shown, width: usize, style: Style) -> String {
    let rest = rest.as_ref().map_or(String::new(), |rest| format!("{rest}\n"));
    format!("\n{}{rest}", table.render("", width, style))
}
