//! A watch in words and bars, as docs/watch.md shows it.

use super::record::Header;
use crate::working_set_text::{by_age, cost, curve_in, grain, hardly_runs, meaning, recommended};
use crate::wrap::wrapped;
use std::time::Duration;
use vellum_reference::{Frame, Kind, SourceKind};
use vellum_report::Style;
use vellum_report::units::{bytes, count, many, time};

/// Columns of the longest bar.
const BAR: usize = 24;
/// Width of the labels' column.
const LABEL: usize = 9;
/// The whole picture of one moment.
pub(super) fn whole(header: &Header, frame: &Frame, style: Style) -> String {
    let nanos = Duration::from_nanos;
    let title = format!("vellum watch: {}", header.subject);
    let mut text = format!(
        "{}: {} of its CPU time watched in {}\n",
        style.bold(&title),
        time(nanos(frame.clock_ns)),
        time(nanos(frame.at_ns))
    );
    let mut line = |label: &str, words: &str| {
        text += &lines(&[(label, words.to_owned())], style);
    };
    let mut resident = format!("{}, peak {}", bytes(frame.resident_bytes), bytes(frame.peak_bytes));
    if frame.swapped_bytes > 0 {
        resident += &format!(", {} swapped out", bytes(frame.swapped_bytes));
    }
    line("resident", &format!("{resident}; {}", many(frame.processes, "process")));
    line("source", &source(header, frame));
    for (at, words) in curve(frame).into_iter().enumerate() {
        line(if at == 0 { "curve" } else { "" }, &words);
    }
    if let Some(words) = recommended(frame, header.delay.as_ref()) {
        line("memory", &words);
    }
    for (label, words) in meaning(frame, header.delay.as_ref()) {
        line(label, &words);
    }
    for (label, words) in by_age(frame) {
        line(label, &words);
    }
    if let Some(wanting) = frame.curve_in {
        line("curve", &format!("none: {}", curve_in(wanting, frame.processes == 0)));
    }
    line("cost", &cost(frame));
    if let Some(caveat) = &frame.caveat {
        line("note", caveat);
    }
    text
}

/// Labelled lines below the picture.
pub(super) fn lines(labelled: &[(&str, String)], style: Style) -> String {
    let mut text = String::new();
    for (label, words) in labelled {
        for (at, words) in wrapped(words, LABEL + 3).into_iter().enumerate() {
            let label = if at == 0 { *label } else { "" };
            text += &format!("  {} {words}\n", style.label(&format!("{label:<LABEL$}")));
        }
    }
    text
}

/// One moment on one line.
pub(super) fn line(frame: &Frame) -> String {
    let mut cells = vec![
        time(Duration::from_nanos(frame.at_ns)),
        format!("cpu {}", time(Duration::from_nanos(frame.clock_ns))),
        format!("resident {}", bytes(frame.resident_bytes)),
    ];
    if let Some(last) = frame.curve.last() {
        cells.push(format!("{} in {}", bytes(last.bytes), time(Duration::from_nanos(last.window_ns))));
    }
    if let Some(verdict) = &frame.verdict {
        cells.push(format!("{} {}", short(verdict.knee.kind), bytes(verdict.knee.bytes)));
        let recommended = frame.is_enough().then(|| format!("recommended {}", bytes(verdict.give.bytes)));
        cells.extend(recommended);
    } else if let Some(given) = frame.give_by_age {
        cells.push(format!("by age {}", bytes(given.bytes)));
    }
    cells.push(match hardly_runs(frame) {
        true => format!("cost {:.3} % of a processor", frame.cost.of_processor * 100.0),
        false => format!("cost {:.2} %", frame.cost.share * 100.0),
    });
    cells.join("  ")
}

fn short(kind: Kind) -> &'static str {
    match kind {
        Kind::Knee => "knee",
        Kind::NeedsNothingMore => "needs",
        Kind::TakesAll => "takes all,",
    }
}

fn source(header: &Header, frame: &Frame) -> String {
    let pages = grain(frame.grain).unwrap_or_else(|| "4 KiB pages".to_owned());
    let interval = time(Duration::from_nanos(header.delta_ns));
    let mut text = format!("{}, interval {interval}, {pages}", header.source.words());
    let tables = header.absent.iter().find(|absent| absent.source == SourceKind::PageTables.name());
    if let Some(absent) = tables.filter(|_| header.source == SourceKind::AccessedBits) {
        text += &format!(" (page tables cannot be read: {})", absent.why);
    }
    if frame.shared_bytes > 0 {
        text += &format!("; {} of shared libraries left out", bytes(frame.shared_bytes));
    }
    text
}

/// The curve's rows, under a head. None is wider than a line.
fn curve(frame: &Frame) -> Vec<String> {
    let most = frame.curve.iter().map(|window| window.bytes).max().unwrap_or(0).max(1);
    let head = format!("{:>9}  {:>11}  {:<BAR$}  {:>15}", "window", "working set", "", "pages it lacks");
    let row = |window: &vellum_reference::Window| {
        let bar = "#".repeat((window.bytes as f64 / most as f64 * BAR as f64).round() as usize);
        let faults = format!("{} /s", count(window.faults_per_second.round() as u64));
        let time = time(Duration::from_nanos(window.window_ns));
        format!("{time:>9}  {:>11}  {bar:<BAR$}  {faults:>15}", bytes(window.bytes))
    };
    let rows = frame.curve.iter().map(row);
    if frame.curve.is_empty() { Vec::new() } else { std::iter::once(head).chain(rows).collect() }
}
