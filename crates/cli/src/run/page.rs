//! The report as one HTML page.
//!
//! Everything the plots show is also in the tables or the JSON.

use super::report::{Report, Samples, Standing};
use super::text::measured;
use super::working_set::WorkingSet;
use crate::heap;
use crate::page::{self, Page, figure};
use crate::working_set_text::{grain, meaning, recommended};
use std::fmt::Write;
use std::time::Duration;
use vellum_measure::Unit;
use vellum_reference::Window;
use vellum_report::plot::{Chart, Quantity, Scaling, Shape};
use vellum_report::units::{bytes, count, time};
use vellum_report::{Table, escape};
use vellum_wire::Counter;

/// Stretches of time that rates are shown over.
const RATE_BARS_MAX: usize = 150;
/// Points a line is drawn from; a plot has no more columns than that.
const LINE_POINTS_MAX: usize = 1200;
const PROCESSES_MAX: usize = 100;
/// Samples without which there is nothing to plot over time.
const SAMPLES_MIN: usize = 3;
const PAGE_BYTES: f64 = 4096.0;

pub(crate) fn html(report: &Report) -> String {
    let mut sections = notes(report);
    sections.push_str(&tiles(report));
    sections.push_str(&plots(report));
    if let Some(heap) = report.heap.as_ref().filter(|heap| !heap.holders.is_empty()) {
        sections.push_str(&heap::page::sections(heap));
    }
    sections.push_str(&page_layer(report));
    sections.push_str(&processes(report));
    let footer = format!(
        "{} looks at the job, which cost {} of CPU time · schema {}",
        count(report.sampling.looks),
        time(Duration::from_nanos(report.sampling.cost_ns)),
        report.schema
    );
    let (command, outcome) = (&report.command, &report.outcome);
    let page = Page { made_by: "vellum run", subject: "memory report", command, outcome, footer: &footer };
    page.html(&sections)
}

fn tiles(report: &Report) -> String {
    let nanos = |ns| time(Duration::from_nanos(ns));
    let mut tiles = vec![
        ("wall time", nanos(report.time.wall_ns), String::new()),
        (
            "CPU time",
            nanos(report.time.user_ns + report.time.system_ns),
            format!("user {}, system {}", nanos(report.time.user_ns), nanos(report.time.system_ns)),
        ),
        (
            "peak resident",
            bytes(report.memory.peak_bytes),
            report
                .memory
                .average_bytes
                .map_or(String::new(), |average| format!("average {}", bytes(average))),
        ),
        (
            "page faults",
            count(report.faults.minor + report.faults.major),
            format!("{} major", count(report.faults.major)),
        ),
    ];
    if report.attachment.serving_processes > 0 {
        let (hits, out) = (report.pages.get(Counter::CacheHits), report.pages.get(Counter::ExtentsOut));
        let share = if out > 0 {
            format!("{:.0} % cache hits", hits as f64 / out as f64 * 100.0)
        } else {
            String::new()
        };
        tiles.push(("faults avoided", count(report.pages.faults_avoided), share));
    }
    page::tiles(&tiles)
}

fn notes(report: &Report) -> String {
    let attachment = &report.attachment;
    let mut notes: Vec<String> = Vec::new();
    if let Some(reason) = &attachment.reason {
        let how = match attachment.program {
            Standing::NotPreloaded | Standing::NoAnswer => "ran without Vellum",
            _ => "ran with Vellum passing its calls through",
        };
        notes.push(format!("The program {how}: {reason}."));
    }
    for stranger in &attachment.strangers {
        let why = stranger.words.map_or(String::new(), |words| format!(" ({words})"));
        notes.push(format!("{} x {}{why} ran without Vellum.", stranger.processes, stranger.name));
    }
    for survivor in &report.survivors {
        notes.push(format!("{} (pid {}) was still running at the end.", survivor.name, survivor.pid));
    }
    notes.extend(report.missing.iter().cloned());
    notes.extend(report.heap.iter().flat_map(|heap| heap.notes.iter().cloned()));
    page::notes(&notes)
}

fn plots(report: &Report) -> String {
    let samples = &report.samples;
    let mut html = "<section class=\"plots\">\n".to_owned();
    if samples.at_ns.len() >= SAMPLES_MIN {
        html.push_str(&resident(samples));
        html.push_str(&faults(samples));
        html.push_str(&cache(samples));
    } else {
        html.push_str(&page::remark("The run was too short for plots over time."));
    }
    if let Some(set) = &report.working_set {
        html.push_str(&working_set(set));
    }
    html.push_str(&sizes(report));
    html + "</section>\n"
}

fn resident(samples: &Samples) -> String {
    let chart = over_time("Resident memory over time", "memory", Unit::Bytes);
    let chart =
        chart.with(Shape::Line, "resident, all processes", &points(samples, &samples.resident_max_bytes));
    let cached = points(samples, &samples.cached_bytes);
    let is_cached = highest(&samples.cached_bytes) > 0.0;
    figure(&if is_cached { chart.with(Shape::Line, "of it free-page cache", &cached) } else { chart })
}

fn faults(samples: &Samples) -> String {
    let end = last(&samples.at_ns);
    let bars = samples.at_ns.len().min(RATE_BARS_MAX);
    let taken =
        rates_of(samples, |i| (samples.minor_faults[i] + samples.major_faults[i]) as f64, bars, end / 1e9);
    let avoided = rates_of(samples, |i| samples.warm_bytes[i] as f64 / PAGE_BYTES, bars, end / 1e9);
    let placed = |rates: Vec<f64>| -> Vec<(f64, f64)> {
        let width = end / bars as f64;
        rates.into_iter().enumerate().map(|(bar, rate)| (bar as f64 * width, rate)).collect()
    };
    let mut chart = over_time("Page faults over time", "faults per second", Unit::Count);
    if avoided.iter().any(|rate| *rate > 0.0) {
        chart = chart.with(Shape::Bars, "avoided by warm pages", &placed(avoided));
    }
    figure(&chart.with(Shape::Bars, "taken", &placed(taken)))
}

fn cache(samples: &Samples) -> String {
    if highest(&samples.extents_out) == 0.0 {
        return String::new();
    }
    let chart = over_time("Free-page cache hits", "extents so far", Unit::Count);
    let chart = chart.with(Shape::Line, "extents handed out", &points(samples, &samples.extents_out));
    figure(&chart.with(Shape::Line, "from the cache", &points(samples, &samples.cache_hits)))
}

/// The working-set curve, from a window of nothing, which holds nothing.
fn working_set(set: &WorkingSet) -> String {
    let Some(end) = set.frame.curve.last() else { return String::new() };
    let at = |window: &Window| (window.window_ns as f64, window.bytes as f64);
    let points: Vec<_> = std::iter::once((0.0, 0.0)).chain(set.frame.curve.iter().map(at)).collect();
    let x = Quantity::new("window of user CPU time", Unit::Nanoseconds, Scaling::Even);
    let y = Quantity::new("memory", Unit::Bytes, Scaling::Even);
    let mut chart = Chart::new("Working set", x, y).with(Shape::Line, "referenced on average", &points);
    if let Some(verdict) = set.frame.verdict.as_ref().filter(|_| set.frame.is_enough()) {
        let give = verdict.give.bytes as f64;
        chart = chart.with(Shape::Line, "recommended", &[(0.0, give), (end.window_ns as f64, give)]);
    }
    let mut words = meaning(&set.frame, set.delay.as_ref());
    words.extend(recommended(&set.frame, set.delay.as_ref()).map(|words| ("memory", words)));
    words.extend(grain(set.frame.grain).map(|words| ("grain", words)));
    let items: String = words
        .iter()
        .map(|(label, words)| format!("<div><dt>{label}</dt><dd>{}</dd></div>\n", escape(words)))
        .collect();
    format!("{}<dl>\n{items}</dl>\n", figure(&chart))
}

fn sizes(report: &Report) -> String {
    let buckets = &report.pages.block_sizes;
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return String::new() };
    // Empty sizes between used ones keep their place on the axis.
    let below = std::iter::successors(Some(first.below_bytes), |below| below.checked_mul(2))
        .take_while(|below| *below <= last.below_bytes);
    let names = below.map(|below| short_size(below / 2)).collect();
    let place = |below: u64| f64::from(below.ilog2()) - f64::from(first.below_bytes.ilog2());
    let heights: Vec<_> =
        buckets.iter().map(|bucket| (place(bucket.below_bytes), bucket.blocks as f64)).collect();
    let x = Quantity::names("block size (bytes, from this to the next)", names);
    let y = Quantity::new("blocks (logarithmic scale)", Unit::Count, Scaling::Ratios);
    figure(&Chart::new("Sizes of the blocks asked for", x, y).with(Shape::Bars, "blocks", &heights))
}

fn short_size(size: u64) -> String {
    match size {
        s if s < 1 << 10 => format!("{s}"),
        s if s < 1 << 20 => format!("{}K", s >> 10),
        s if s < 1 << 30 => format!("{}M", s >> 20),
        s => format!("{}G", s >> 30),
    }
}

fn page_layer(report: &Report) -> String {
    if report.attachment.serving_processes == 0 {
        return String::new();
    }
    let mut html = "<dl>\n".to_owned();
    for counter in Counter::ALL.iter().filter(|counter| report.pages.get(**counter) > 0) {
        let shown = measured(counter.unit(), report.pages.get(*counter));
        let _ = writeln!(html, "<div><dt>{}</dt><dd>{shown}</dd></div>", counter.words());
    }
    page::section("What the page layers did", &(html + "</dl>\n"))
}

fn processes(report: &Report) -> String {
    if report.processes.len() < 2 {
        return String::new();
    }
    let heads = ["pid", "name", "memory", "from", "handed out", "peak in use", "cache hits"];
    let mut table = Table::plain(&heads, 3);
    for process in report.processes.iter().take(PROCESSES_MAX) {
        let get = |counter: Counter| process.counters.get(counter.name()).copied().unwrap_or(0);
        table.row(vec![
            process.pid.to_string(),
            process.name.clone(),
            process.standing.words().to_owned(),
            time(Duration::from_nanos(process.attached_ns)),
            bytes(get(Counter::BytesOut)),
            bytes(get(Counter::PeakLive)),
            count(get(Counter::CacheHits)),
        ]);
    }
    let mut content = table.html();
    let more = report.processes.len().saturating_sub(PROCESSES_MAX);
    if more > 0 {
        content.push_str(&page::remark(&format!("and {} more, in the JSON", count(more as u64))));
    }
    page::section("Processes", &content)
}

fn over_time(title: &str, quantity: &str, unit: Unit) -> Chart {
    let x = Quantity::new("time", Unit::Nanoseconds, Scaling::Even);
    Chart::new(title, x, Quantity::new(quantity, unit, Scaling::Even))
}

/// A column over time, thinned to what a plot can show; each point is the highest of those it stands for.
fn points(samples: &Samples, column: &[u64]) -> Vec<(f64, f64)> {
    let step = samples.at_ns.len().div_ceil(LINE_POINTS_MAX).max(1);
    let times = samples.at_ns.chunks(step).map(|times| times[0] as f64);
    times.zip(column.chunks(step).map(highest)).collect()
}

/// The growth of a count, per second, in `bars` equal stretches of the run.
fn rates_of(samples: &Samples, value: impl Fn(usize) -> f64, bars: usize, seconds: f64) -> Vec<f64> {
    let end = last(&samples.at_ns);
    let at = |time: f64| {
        // Between two samples the count is taken to grow evenly; before the first it grew from zero.
        let after = samples.at_ns.partition_point(|at| (*at as f64) < time);
        let (t0, v0) =
            if after == 0 { (0.0, 0.0) } else { (samples.at_ns[after - 1] as f64, value(after - 1)) };
        if after == samples.at_ns.len() {
            return v0;
        }
        let (t1, v1) = (samples.at_ns[after] as f64, value(after));
        if t1 > t0 { v0 + (v1 - v0) * (time - t0) / (t1 - t0) } else { v1 }
    };
    let width = end / bars as f64;
    let edges: Vec<f64> = (0..=bars).map(|bar| at(bar as f64 * width)).collect();
    edges.windows(2).map(|edge| (edge[1] - edge[0]).max(0.0) / (seconds / bars as f64)).collect()
}

fn highest(column: &[u64]) -> f64 {
    column.iter().copied().max().unwrap_or(0) as f64
}

fn last(column: &[u64]) -> f64 {
    column.last().copied().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Samples {
        Samples {
            at_ns: vec![1_000_000_000, 2_000_000_000, 4_000_000_000],
            minor_faults: vec![100, 300, 300],
            ..Samples::default()
        }
    }

    #[test]
    fn rates_add_up_to_the_count() {
        let samples = samples();
        let rates = rates_of(&samples, |i| samples.minor_faults[i] as f64, 4, 4.0);
        assert_eq!(rates, [100.0, 200.0, 0.0, 0.0]);
        let fine = rates_of(&samples, |i| samples.minor_faults[i] as f64, 10, 4.0);
        assert!((fine.iter().sum::<f64>() * 0.4 - 300.0).abs() < 1e-9);
    }

    #[test]
    fn what_did_not_happen_is_left_out_and_no_name_is_a_programs() {
        let mut report = crate::run::report::sample::report();
        report.pages.counters.insert(Counter::BytesCopied.name(), 0);
        report.pages.counters.insert(Counter::GcPauseNs.name(), 1_500_000);
        let page = html(&report);
        let list = &page[page.find("What the page layers did").expect("the list")..];
        let list = &list[..list.find("</dl>").expect("its end")];
        assert!(!list.contains(Counter::BytesCopied.words()) && !list.contains('_'), "{list}");
        assert!(list.contains("<dt>time of these pauses</dt><dd>1.50 ms</dd>"), "{list}");
        for value in list.split("<dd>").skip(1) {
            assert!(!value.starts_with("0 "), "{value}");
        }
    }

    #[test]
    fn a_run_without_samples_says_so_instead_of_plotting() {
        let mut report = crate::run::report::sample::report();
        report.samples = Samples::default();
        let page = html(&report);
        assert!(page.contains("too short for plots over time"));
        assert_eq!(page.matches("<svg ").count(), 1, "the sizes need no time");
    }
}
