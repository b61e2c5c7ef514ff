//! The text report of `vellum trace`: at most 80 columns, with units on every figure.

use super::report::{Limit, Report as Found};
use vellum_measure::Unit;
use vellum_report::units::count;
use vellum_report::{Report, Section, Table};
use vellum_workset::trace::TimeUnit;
use vellum_workset::{Answer, CONFIDENCE};

/// From this factor on, a slowdown is shown as a multiple.
const TIMES_FROM: f64 = 10.0;

pub(super) fn report(found: &Found) -> Report<'_> {
    let format = match found.format {
        "lackey" => "valgrind lackey",
        _ => "page trace",
    };
    let length = match found.time_unit {
        TimeUnit::References => String::new(),
        TimeUnit::Instructions => format!(" in {} instructions", count(found.ticks)),
        TimeUnit::Nanoseconds => format!(" in {}", Unit::Nanoseconds.scaled(found.ticks as f64)),
    };
    let bad = if found.bad > 0 { format!(", {} bad", count(found.bad)) } else { String::new() };
    let what = format!("{format}, {} references{length}{bad}", count(found.references));
    let mut report = Report::new(None);
    report.section(Section::new(), |section| {
        section.verdict(found.file.replace(char::is_control, "?")).sentence(what);
        for (label, words) in
            [("pages", pages(found)), ("a fault", fault(found)), ("knee", knee(found)), ("give", give(found))]
        {
            let lines = words.lines().enumerate();
            section.rows(lines.map(|(at, line)| (if at == 0 { label } else { "" }, line.to_owned())));
        }
    });
    report.section(Section::new(), |section| _ = section.table(limits(&found.limits)));
    report.documented(found)
}

fn pages(report: &Found) -> String {
    let size = Unit::Bytes.scaled(report.page_bytes as f64);
    let all = bytes(report, report.pages as f64);
    let followed = match report.followed_one_in {
        1 => "each followed".to_owned(),
        n => format!("one in {n} followed (±{:.0} pages at the knee)", report.followed_error_pages),
    };
    format!("{} of {size} ({all}); {followed}", count(report.pages))
}

fn fault(report: &Found) -> String {
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

fn knee(report: &Found) -> String {
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
        None => "(the trace is too short for an interval)".to_owned(),
    };
    let waiting = format!("waiting there: {}", percent(choice.waiting));
    format!("{first}\n{spread}; {waiting}")
}

fn give(report: &Found) -> String {
    match report.advice {
        None => "unknown".to_owned(),
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

fn ticks(report: &Found) -> &'static str {
    match report.time_unit {
        TimeUnit::References => "references",
        TimeUnit::Instructions => "instructions",
        TimeUnit::Nanoseconds => "ns",
    }
}

fn bytes(report: &Found, pages: f64) -> String {
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

fn slowdown(part: f64, at_least: bool) -> String {
    let least = if at_least { "at least " } else { "" };
    match part {
        part if part >= TIMES_FROM => format!("{least}× {}", count((part + 1.0).round() as u64)),
        part if part > 0.0 && part < 9.5e-4 => "< +0.1 %".to_owned(),
        part => format!("{least}+{}", percent(part)),
    }
}
