//! Renders the comparisons between programs as tables, for the terminal and as Markdown.

use super::args::Metric;
use super::report::{Kind, Report, Versus};
use super::text::{faults, figures, interval, low_name, peak};
use super::words::range;
use vellum_measure::percent;
use vellum_report::Table;

/// The comparisons by the deciding metric, which have a verdict.
pub(super) fn decisive(report: &Report) -> impl Iterator<Item = &Versus> {
    report.versus.iter().filter(|row| Some(row.metric.name()) == report.how.metric)
}

/// The differences, and the absolute figures, each with its title.
pub(super) fn tables(report: &Report) -> [(String, Table); 2] {
    let low = low_name(report.how.low_share);
    let usage = report.programs.iter().any(|program| program.faults.is_some());
    let absolute = if usage {
        format!("absolute ({low}; peak and faults: median)")
    } else {
        format!("absolute ({low})")
    };
    let absolute_table =
        if report.programs.len() == 2 { side_by_side(report) } else { one_below_another(report) };
    [("difference".to_owned(), differences(report)), (absolute, absolute_table)]
}

fn differences(report: &Report) -> Table {
    let two = report.programs.len() == 2;
    let against = if two { "B against A" } else { "against A" };
    let counted = report.versus.iter().any(|row| row.metric == Metric::Instructions);
    let head = if counted { "" } else { "time" };
    let mut table = Table::plain(&[head, against, "95 %", "A against A", "95 %"], 1);
    for row in &report.versus {
        let (ratio, control) = (row.comparison.headline.ratio, row.comparison.headline.control);
        let time = row.metric.short().to_owned();
        table.row(vec![
            match (two, row.metric) {
                (true, _) => time,
                (false, Metric::Instructions) => format!("instr., {}", row.arm),
                (false, _) => format!("{time}, {}", row.arm),
            },
            percent(ratio.estimate),
            range(ratio),
            percent(control.estimate),
            range(control),
        ]);
    }
    table
}

/// Two programs, each in a column.
fn side_by_side(report: &Report) -> Table {
    let mut table = Table::plain(&["", "A", "95 %", "B", "95 %"], 1);
    for row in &report.versus {
        let found = &row.comparison;
        table.row(
            [
                vec![row.metric.short().to_owned()],
                interval(found.a, row.metric),
                interval(found.b, row.metric),
            ]
            .concat(),
        );
    }
    if let [a, b] = &report.programs[..] {
        for (name, a, b) in [("peak", peak(a), peak(b)), ("faults", faults(a), faults(b))] {
            let (Some(a), Some(b)) = (a, b) else { continue };
            table.row(vec![name.to_owned(), a, String::new(), b, String::new()]);
        }
    }
    table
}

/// More than two programs, each in a row.
fn one_below_another(report: &Report) -> Table {
    let metrics = [Metric::Instructions, Metric::Cpu, Metric::Wall];
    // Times are shown even if they could not be compared.
    let times = report.start.is_some();
    let metrics = metrics.into_iter().filter(|metric| match metric {
        Metric::Cpu | Metric::Wall => times,
        Metric::Instructions => report.versus.iter().any(|row| row.metric == *metric),
    });
    let metrics: Vec<Metric> = metrics.collect();
    let names: Vec<String> = metrics.iter().map(|one| one.short().to_owned()).collect();
    let mut heads = vec![""];
    heads.extend(names.iter().flat_map(|name| [name.as_str(), "95 %"]));
    heads.extend(times.then_some(["peak", "faults"]).into_iter().flatten());
    let mut table = Table::plain(&heads, 1);
    for (place, program) in report.programs.iter().enumerate() {
        let of = |metric: Metric| {
            let mut rows = report.versus.iter().filter(|row| row.metric == metric);
            // A is a part of every comparison.
            let found = |row: &Versus| if place == 0 { row.comparison.a } else { row.comparison.b };
            let row = rows.find(|row| place == 0 || row.arm == program.arm);
            row.map_or_else(|| vec!["-".to_owned(); 2], |row| interval(found(row), metric))
        };
        let mut row = vec![program.arm.clone()];
        row.extend(metrics.iter().flat_map(|metric| of(*metric)));
        row.extend([peak(program), faults(program)].into_iter().flatten());
        table.row(row);
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
        page += &format!("\n{}", figures(report).markdown());
    }
    for row in decisive(report) {
        page += &format!("\n{} ({}).\n", row.verdict, row.metric.words());
    }
    page
}
