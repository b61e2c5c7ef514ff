//! The report of `vellum watch` in words and bars, which docs/watch.md explains.

use super::prove::{self, Proof};
use super::record::Header;
use crate::working_set_text::{by_age, cost, curve_in, grain, hardly_runs, meaning, recommended};
use std::time::Duration;
use vellum_reference::{Frame, Kind, SourceKind};
use vellum_report::table::bar;
use vellum_report::units::{bytes, count, many, time};
use vellum_report::{Head, Report, Row, Section, Table};

/// The whole picture of one moment, with a proof if there is one.
pub(super) fn whole(header: &Header, frame: &Frame, proof: Option<&Proof>) -> Report<'static> {
    let [watched, wall] = [frame.clock_ns, frame.at_ns].map(|ns| time(Duration::from_nanos(ns)));
    let ending = format!("{watched} of its CPU time watched in {wall}");
    let of = header.subject.clone();
    let mut report = Report::new(Head { name: "vellum watch", of, ending, ..Head::default() });
    let mut resident = format!("{}, peak {}", bytes(frame.resident_bytes), bytes(frame.peak_bytes));
    if frame.swapped_bytes > 0 {
        resident += &format!(", {} swapped out", bytes(frame.swapped_bytes));
    }
    resident += &format!("; {}", many(frame.processes, "process"));
    report.section(Section::new(), |section| {
        section.rows([("resident", resident), ("source", source(header, frame))]);
        if !frame.curve.is_empty() {
            section.row(Row::table("curve", curve(frame)));
        }
        section.rows(recommended(frame, header.delay.as_ref()).map(|words| ("memory", words)));
        section.rows(meaning(frame, header.delay.as_ref())).rows(by_age(frame));
        let none = |wanting| format!("none: {}", curve_in(wanting, frame.processes == 0));
        section.rows(frame.curve_in.map(|wanting| ("curve", none(wanting))));
        section.rows([("cost", cost(frame))]).notes(frame.caveat.clone());
        section.rows(proof.map(prove::words).into_iter().flatten());
    });
    report
}

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

fn curve(frame: &Frame) -> Table {
    let most = frame.curve.iter().map(|window| window.bytes).max().unwrap_or(0).max(1);
    let mut table = Table::plain(&["window", "working set", "", "pages it lacks"], 0).with_words_at(2);
    for window in &frame.curve {
        table.row(vec![
            time(Duration::from_nanos(window.window_ns)),
            bytes(window.bytes),
            bar(window.bytes as f64 / most as f64),
            format!("{} /s", count(window.faults_per_second.round() as u64)),
        ]);
    }
    table
}
