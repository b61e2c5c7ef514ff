//! A watch in words and bars.
//!
//! ```text
//! vellum watch: python3 (pid 4711): 12.3 s of its CPU time watched in 12.4 s
//!   resident  412 MiB   peak 430 MiB   3 processes
//!   source    accessed bits (clear_refs, smaps_rollup), interval 100 ms, 4 KiB pages
//!   curve       window   working set                                faults a second
//!               100 ms       120 MiB  ##########                              1,234
//!   knee      250 MiB in a window of 1.60 s (95 %: 240 to 260 MiB)
//!   give      260 MiB: 1.9 % slower than with all
//!   less      at 234 MiB +5 %, at 208 MiB +12 %, ...
//! ```

use super::record::Header;
use super::wrap::wrapped;
use crate::style::Style;
use crate::units::{bytes, count, many, time};
use std::time::Duration;
use vellum_probe::reference::{Delay, Device, Frame, Grain, Ground, Kind, Limit, SourceKind};

/// Columns of the longest bar.
const BAR: usize = 24;
/// Width of the labels' column.
const LABEL: usize = 9;
/// Fewer cycles are said to be few beside what they are the ground of.
const CYCLES_ENOUGH: u64 = 3;

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
        for (at, words) in wrapped(words, LABEL + 3).into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            text += &format!("  {} {words}\n", style.label(&format!("{label:<LABEL$}")));
        }
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
    for (label, words) in meaning(frame, header.delay.as_ref()) {
        line(label, &words);
    }
    if frame.curve.is_empty() {
        line("curve", &not_yet(frame));
    }
    line("cost", &cost(frame));
    if let Some(caveat) = &frame.caveat {
        line("note", caveat);
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
        cells.push(format!("give {}", bytes(verdict.give.bytes)));
    }
    cells.push(format!("cost {:.2} %", frame.cost.share * 100.0));
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
    let tables = header.absent.iter().find(|absent| absent.source == SourceKind::PageTables);
    if let Some(absent) = tables.filter(|_| header.source == SourceKind::AccessedBits) {
        text += &format!(" (page tables cannot be read: {})", absent.why);
    }
    if frame.shared_bytes > 0 {
        text += &format!("; {} of shared libraries left out", bytes(frame.shared_bytes));
    }
    text
}

/// What is to be said of the page size, if anything is.
pub(crate) fn grain(grain: Grain) -> Option<String> {
    let part = |huge: f64| format!("{:.0} % in huge pages of 2 MiB", huge * 100.0);
    match grain {
        Grain::Base => None,
        Grain::Mixed { huge } => Some(format!("4 KiB pages but {}, which count whole", part(huge))),
        Grain::Huge { huge } => {
            Some(format!("{}: sizes are of huge pages, each of which counts whole", part(huge)))
        }
    }
}

/// The curve's rows, under a head. None is wider than a line.
fn curve(frame: &Frame) -> Vec<String> {
    let most = frame.curve.iter().map(|window| window.bytes).max().unwrap_or(0).max(1);
    let head = format!("{:>9}  {:>11}  {:<BAR$}  {:>15}", "window", "working set", "", "pages it lacks");
    let row = |window: &vellum_probe::reference::Window| {
        let bar = "#".repeat((window.bytes as f64 / most as f64 * BAR as f64).round() as usize);
        let faults = format!("{} /s", count(window.faults_per_second.round() as u64));
        let time = time(Duration::from_nanos(window.window_ns));
        format!("{time:>9}  {:>11}  {bar:<BAR$}  {faults:>15}", bytes(window.bytes))
    };
    let rows = frame.curve.iter().map(row);
    if frame.curve.is_empty() { Vec::new() } else { std::iter::once(head).chain(rows).collect() }
}

/// What a curve means: the knee, the memory to give, what less would cost, and S.
pub(crate) fn meaning(frame: &Frame, delay: Option<&Delay>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(verdict) = &frame.verdict {
        let knee = &verdict.knee;
        let (size, window) = (bytes(knee.bytes), time(Duration::from_nanos(knee.window_ns as u64)));
        let mut found = match knee.kind {
            Kind::Knee => format!("{size}, in a window of {window}"),
            Kind::NeedsNothingMore => {
                format!("none: it needs nothing more than {size}, which a window of {window} holds")
            }
            Kind::TakesAll => format!("none: it takes all it is given, {size} in a window of {window}"),
        };
        if let (Some(low), Some(high)) = (knee.low_bytes, knee.high_bytes) {
            found += &format!(" (95 %: {} to {})", bytes(low), bytes(high));
        }
        lines.push(("knee", found));
        let longest = time(Duration::from_nanos(verdict.longest_window_ns as u64));
        let mut give = match verdict.ground {
            Ground::Curve => {
                let slower = percent(verdict.give.slowdown);
                format!("{}: about {slower} slower than with all", bytes(verdict.give.bytes))
            }
            Ground::All => format!(
                "{}, all it had: a limit smaller by an eighth or more would cost over 2 %, as far as was seen",
                bytes(verdict.give.bytes)
            ),
        };
        if frame.cycles < CYCLES_ENOUGH {
            give += &format!("; judged by {} of at most {longest}", many(frame.cycles.max(1), "cycle"));
        }
        lines.push(("give", give));
        lines.push(("less", less(&verdict.less)));
    }
    if let Some(delay) = delay {
        lines.push(("delay", delay_words(delay)));
    } else {
        lines.push((
            "delay",
            "not known; give what a fault costs with --delay, as in --delay 100us".to_owned(),
        ));
    }
    lines
}

fn less(limits: &[Limit]) -> String {
    let words = limits.iter().map(|limit| {
        let at_least = if limit.at_least { "at least " } else { "" };
        format!("at {} {at_least}+{}", bytes(limit.bytes), percent(limit.slowdown))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{} %", count(percent.round() as u64)) }
}

fn delay_words(delay: &Delay) -> String {
    let each = time(Duration::from_nanos(delay.mean_ns as u64));
    match &delay.device {
        Device::Given => format!("{each} a fault, as given"),
        Device::Swap { name } => {
            format!(
                "{each} a fault, measured on swap {name} ({}, paging out counted in)",
                many(delay.faults as u64, "fault")
            )
        }
        Device::File { directory, swap: true } => format!(
            "{each} a fault, measured on files in {} ({}); swap could not be measured",
            directory.display(),
            many(delay.faults as u64, "fault")
        ),
        Device::File { directory, swap: false } => format!(
            "{each} a fault, measured on files in {} ({}); there is no swap, so a limit below what it has written kills",
            directory.display(),
            many(delay.faults as u64, "fault")
        ),
    }
}

fn not_yet(frame: &Frame) -> String {
    if frame.resident_bytes == 0 {
        "none yet: it has used too little CPU time for the cost of a look".to_owned()
    } else {
        "none yet".to_owned()
    }
}

/// What the watch has cost, in words.
pub(crate) fn cost(frame: &Frame) -> String {
    let nanos = Duration::from_nanos;
    let cost = &frame.cost;
    let mut text = format!(
        "{:.2} % of its CPU time ({} ours, {} its own), longest stall {}",
        cost.share * 100.0,
        time(nanos(cost.cpu_ns)),
        time(nanos(cost.imposed_ns)),
        time(nanos(cost.longest_stall_ns)),
    );
    if let Some(first) = frame.first_curve_ns {
        text += &format!("; first curve after {}", time(nanos(first)));
    }
    text + &match frame.cycles {
        0 if frame.curve.is_empty() => String::new(),
        0 => "; from the first cycle, which still runs".to_owned(),
        cycles => format!("; from {}", many(cycles, "cycle")),
    }
}
