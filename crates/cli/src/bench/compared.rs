//! The tables of programs that were compared: for people, and as Markdown.

use super::args::Metric;
use super::report::{Kind, Report, Versus};
use super::text::{interval, low_name, metric, peak};
use super::words::range;
use vellum_measure::{Unit, percent};
use vellum_report::Table;

/// The differences, and the absolute figures, each with its title.
pub(super) fn tables(report: &Report) -> [(String, Table); 2] {
    let absolute = format!("absolute ({}; peak and faults: median)", low_name(report.how.low_share));
    let absolute_table =
        if report.programs.len() == 2 { side_by_side(report) } else { one_below_another(report) };
    [("difference".to_owned(), differences(report)), (absolute, absolute_table)]
}

fn differences(report: &Report) -> Table {
    let two = report.programs.len() == 2;
    let against = if two { "B against A" } else { "against A" };
    let mut table = Table::plain(&["time", against, "95 %", "A against A", "95 %"], 1);
    for row in &report.versus {
        let (ratio, control) = (row.comparison.headline.ratio, row.comparison.headline.control);
        let time = metric(row.metric);
        table.row(vec![
            if two { time } else { format!("{time}, {}", row.arm) },
            percent(ratio.estimate),
            range(ratio),
            percent(control.estimate),
            range(control),
        ]);
    }
    table
}

/// Two programs: a column each.
fn side_by_side(report: &Report) -> Table {
    let mut table = Table::plain(&["", "A", "95 %", "B", "95 %"], 1);
    for row in &report.versus {
        let found = &row.comparison;
        table.row([vec![metric(row.metric)], interval(found.a), interval(found.b)].concat());
    }
    if let [a, b] = &report.programs[..] {
        let count = |value: f64| Unit::Count.scaled(value);
        for (name, a, b) in [("peak", peak(a), peak(b)), ("faults", count(a.faults), count(b.faults))] {
            table.row(vec![name.to_owned(), a, String::new(), b, String::new()]);
        }
    }
    table
}

/// More programs: a line each.
fn one_below_another(report: &Report) -> Table {
    let mut table = Table::plain(&["", "CPU", "95 %", "wall", "95 %", "peak", "faults"], 1);
    for (place, program) in report.programs.iter().enumerate() {
        let of = |metric: Metric| {
            let mut rows = report.versus.iter().filter(|row| row.metric == metric);
            // A is a part of every comparison.
            let found = |row: &Versus| if place == 0 { row.comparison.a } else { row.comparison.b };
            let row = rows.find(|row| place == 0 || row.arm == program.arm);
            row.map_or_else(|| vec!["-".to_owned(); 2], |row| interval(found(row)))
        };
        let faults = Unit::Count.scaled(program.faults);
        let figures = [of(Metric::Cpu), of(Metric::Wall), vec![peak(program), faults]].concat();
        table.row([vec![program.arm.clone()], figures].concat());
    }
    table
}

/// The programs, the tables and the verdicts as Markdown.
pub(super) fn markdown(report: &Report) -> String {
    let mut page = String::new();
    for program in &report.programs {
        page += &format!("- {}: `{}`\n", program.arm, program.name.replace('`', "'"));
    }
    if report.kind == Kind::Versus {
        for (title, table) in tables(report) {
            page += &format!("\n**{title}**\n\n{}", table.markdown());
        }
    } else {
        page += &format!("\n{}", subjects(report).markdown());
    }
    let rows = report.versus.iter().filter(|row| Some(row.metric.name()) == report.how.metric);
    for row in rows {
        page += &format!("\n{} ({}).\n", row.verdict, row.metric.words());
    }
    page
}

/// A program alone, or the cases of a suite.
fn subjects(report: &Report) -> Table {
    let low = low_name(report.how.low_share);
    let mut table = Table::plain(&["", "time", low, "95 %", "mean", "min", "max"], 1);
    for subject in &report.subjects {
        let ns = |value: f64| Unit::Nanoseconds.scaled(value);
        let low = subject.low.map_or_else(|| vec!["-".to_owned(); 2], interval);
        let whole = [subject.stat.mean, subject.stat.min, subject.stat.max].map(ns);
        table.row([vec![subject.name.clone(), metric(subject.metric)], low, whole.to_vec()].concat());
    }
    table
}
