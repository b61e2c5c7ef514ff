//! What a trace says, in words: at most 80 columns, units on every figure.

use super::report::{Limit, Report};
use vellum_measure::Unit;
use vellum_report::Style;
use vellum_report::Table;
use vellum_report::units::count;
use vellum_workset::trace::TimeUnit;
use vellum_workset::{Answer, CONFIDENCE};

/// Columns of a line.
const WIDTH: usize = 80;
/// From this factor on a slowdown is shown as a multiple.
const TIMES_FROM: f64 = 10.0;

/// The report as text, ending in a newline.
pub(super) fn text(report: &Report, style: Style) -> String {
    let mut out = heading(report, style);
    let mut say = |label: &str, words: String| {
        for (row, line) in words.lines().enumerate() {
            let label = if row == 0 { style.label(&format!("{label:<8}")) } else { " ".repeat(8) };
            out += &format!("  {label}{line}\n");
        }
    };
    say("pages", pages(report));
    say("a fault", fault(report));
    say("knee", knee(report));
    say("give", give(report));
    if !report.limits.is_empty() {
        out += &format!("\n{}", limits(&report.limits).render("  ", WIDTH, style));
    }
    out
}

fn heading(report: &Report, style: Style) -> String {
    let format = match report.format {
        "lackey" => "valgrind lackey",
        _ => "page trace",
    };
    let length = match report.time_unit {
        TimeUnit::References => String::new(),
        TimeUnit::Instructions => format!(" in {} instructions", count(report.ticks)),
        TimeUnit::Nanoseconds => format!(" in {}", Unit::Nanoseconds.scaled(report.ticks as f64)),
    };
    let bad = if report.bad > 0 { format!(", {} bad", count(report.bad)) } else { String::new() };
    let what = format!("{format}, {} references{length}{bad}", count(report.references));
    format!("{}\n  {what}\n", style.bold(&report.file.replace(char::is_control, "?")))
}

fn pages(report: &Report) -> String {
    let size = Unit::Bytes.scaled(report.page_bytes as f64);
    let all = bytes(report, report.pages as f64);
    let followed = match report.followed_one_in {
        1 => "each followed".to_owned(),
        n => format!("one in {n} followed (±{:.0} pages at the knee)", report.followed_error_pages),
    };
    format!("{} of {size} ({all}); {followed}", count(report.pages))
}

fn fault(report: &Report) -> String {
    let delay = Unit::Seconds.scaled(report.delay_seconds);
    match report.ticks_per_second {
        None => format!("takes {delay} (assumed: --delay)"),
        Some(rate) => format!(
            "takes {delay}, as long as {} {} at {} million/s\n(assumed: --delay, --rate)",
            count(report.delay_ticks.round() as u64),
            ticks(report),
            count((rate / 1e6).round() as u64),
        ),
    }
}

fn knee(report: &Report) -> String {
    let choice = report.answer.choice();
    let window = match report.time_unit {
        TimeUnit::Nanoseconds => Unit::Nanoseconds.scaled(choice.point.window),
        _ => format!("{} {}", count(choice.point.window.round() as u64), ticks(report)),
    };
    let held = bytes(report, choice.point.pages);
    let first = match report.answer {
        Answer::Knee(_) => format!("{held}, the pages of the last {window}"),
        Answer::NeedsNothingMore(_) => format!("needs nothing more than {held} (window: {window})"),
        Answer::TakesAll { gaining: true, .. } => {
            format!("none: still gains at all that was seen, {held} (window: {window})")
        }
        Answer::TakesAll { gaining: false, .. } => {
            format!("none: no size is worth more than the smallest seen, {held} ({window})")
        }
    };
    let spread = match report.spread {
        Some(spread) => format!(
            "{:.0} % of such stretches: {} to {}",
            CONFIDENCE * 100.0,
            bytes(report, spread.pages.low),
            bytes(report, spread.pages.high)
        ),
        None => "(the trace is too short to say how sure that is)".to_owned(),
    };
    let waiting = format!("waiting there: {}", percent(choice.waiting));
    format!("{first}\n{spread}; {waiting}")
}

fn give(report: &Report) -> String {
    match report.advice {
        None => "nothing can be said".to_owned(),
        Some(advice) => format!(
            "{}: {} time expected (at most {} is agreed to: --cap)",
            bytes(report, advice.pages),
            slowdown(advice.slowdown.part, advice.slowdown.at_least),
            percent(report.cap)
        ),
    }
}

fn limits(limits: &[Limit]) -> Table {
    let mut table = Table::plain(&["limit", "pages", "time"], 0);
    for limit in limits {
        table.row(vec![
            Unit::Bytes.scaled(limit.bytes.round()),
            count(limit.pages.round() as u64),
            slowdown(limit.slowdown, limit.at_least),
        ]);
    }
    table
}

fn ticks(report: &Report) -> &'static str {
    match report.time_unit {
        TimeUnit::References => "references",
        TimeUnit::Instructions => "instructions",
        TimeUnit::Nanoseconds => "ns",
    }
}

fn bytes(report: &Report, pages: f64) -> String {
    Unit::Bytes.scaled((pages * report.page_bytes as f64).round())
}

fn percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        p if p >= 99.95 => format!("{p:.0} %"),
        p if p >= 0.095 || p == 0.0 => format!("{p:.1} %"),
        _ => "< 0.1 %".to_owned(),
    }
}

/// A part of the time that is added, as people say it.
fn slowdown(part: f64, at_least: bool) -> String {
    let least = if at_least { "at least " } else { "" };
    match part {
        part if part >= TIMES_FROM => format!("{least}× {}", count((part + 1.0).round() as u64)),
        part if part > 0.0 && part < 9.5e-4 => "< +0.1 %".to_owned(),
        part => format!("{least}+{}", percent(part)),
    }
}
