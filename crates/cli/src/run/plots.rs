//! Plots for the HTML page of `vellum run`. The tables or the JSON contain all of the plotted data.

use super::report::{Report, Samples};
use super::working_set::WorkingSet;
use vellum_measure::Unit;
use vellum_reference::Window;
use vellum_report::Section;
use vellum_report::plot::{Chart, Quantity, Scaling, Shape};

/// The most bars of a plot of rates.
const RATE_BARS_MAX: usize = 150;
/// The most points of a line; a plot has fewer columns.
const LINE_POINTS_MAX: usize = 1200;
/// The fewest samples for a plot over time.
const SAMPLES_MIN: usize = 3;
const PAGE_BYTES: f64 = 4096.0;

pub(super) fn add(section: &mut Section, report: &Report) {
    let samples = &report.samples;
    section.page(|section| {
        if samples.at_ns.len() >= SAMPLES_MIN {
            section.chart(resident(samples)).chart(faults(samples));
            if highest(&samples.extents_out) > 0.0 {
                section.chart(cache(samples));
            }
        } else {
            section.remark("The run was too short for plots over time.".to_owned());
        }
        if let Some(chart) = report.working_set.as_ref().and_then(working_set) {
            section.chart(chart);
        }
        if let Some(chart) = sizes(report) {
            section.chart(chart);
        }
    });
}

fn resident(samples: &Samples) -> Chart {
    let chart = Chart::over_time("Resident memory over time", "memory", Unit::Bytes);
    let chart =
        chart.with(Shape::Line, "resident, all processes", &points(samples, &samples.resident_max_bytes));
    let cached = points(samples, &samples.cached_bytes);
    let is_cached = highest(&samples.cached_bytes) > 0.0;
    if is_cached { chart.with(Shape::Line, "of it free-page cache", &cached) } else { chart }
}

fn faults(samples: &Samples) -> Chart {
    let end = last(&samples.at_ns);
    let bars = samples.at_ns.len().min(RATE_BARS_MAX);
    let taken =
        rates_of(samples, |i| (samples.minor_faults[i] + samples.major_faults[i]) as f64, bars, end / 1e9);
    let avoided = rates_of(samples, |i| samples.warm_bytes[i] as f64 / PAGE_BYTES, bars, end / 1e9);
    let placed = |rates: Vec<f64>| -> Vec<(f64, f64)> {
        let width = end / bars as f64;
        rates.into_iter().enumerate().map(|(bar, rate)| (bar as f64 * width, rate)).collect()
    };
    let mut chart = Chart::over_time("Page faults over time", "faults per second", Unit::Count);
    if avoided.iter().any(|rate| *rate > 0.0) {
        chart = chart.with(Shape::Bars, "avoided by warm pages", &placed(avoided));
    }
    chart.with(Shape::Bars, "taken", &placed(taken))
}

fn cache(samples: &Samples) -> Chart {
    let chart = Chart::over_time("Free-page cache hits", "extents so far", Unit::Count);
    let chart = chart.with(Shape::Line, "extents handed out", &points(samples, &samples.extents_out));
    chart.with(Shape::Line, "from the cache", &points(samples, &samples.cache_hits))
}

/// The working-set curve, starting with an empty window of 0 bytes.
fn working_set(set: &WorkingSet) -> Option<Chart> {
    let end = set.frame.curve.last()?;
    let at = |window: &Window| (window.window_ns as f64, window.bytes as f64);
    let points: Vec<_> = std::iter::once((0.0, 0.0)).chain(set.frame.curve.iter().map(at)).collect();
    let x = Quantity::new("window of user CPU time", Unit::Nanoseconds, Scaling::Even);
    let y = Quantity::new("memory", Unit::Bytes, Scaling::Even);
    let mut chart = Chart::new("Working set", x, y).with(Shape::Line, "referenced on average", &points);
    if let Some(verdict) = set.frame.verdict.as_ref().filter(|_| set.frame.is_enough()) {
        let give = verdict.give.bytes as f64;
        chart = chart.with(Shape::Line, "recommended", &[(0.0, give), (end.window_ns as f64, give)]);
    }
    Some(chart)
}

fn sizes(report: &Report) -> Option<Chart> {
    let buckets = &report.pages.block_sizes;
    let (first, last) = (buckets.first()?, buckets.last()?);
    // Unused sizes between used ones stay on the axis.
    let below = std::iter::successors(Some(first.below_bytes), |below| below.checked_mul(2))
        .take_while(|below| *below <= last.below_bytes);
    let names = below.map(|below| short_size(below / 2)).collect();
    let place = |below: u64| f64::from(below.ilog2()) - f64::from(first.below_bytes.ilog2());
    let heights: Vec<_> =
        buckets.iter().map(|bucket| (place(bucket.below_bytes), bucket.blocks as f64)).collect();
    let x = Quantity::names("block size (bytes, from this to the next)", names);
    let y = Quantity::new("blocks (logarithmic scale)", Unit::Count, Scaling::Ratios);
    Some(Chart::new("Sizes of requested blocks", x, y).with(Shape::Bars, "blocks", &heights))
}

fn short_size(size: u64) -> String {
    match size {
        s if s < 1 << 10 => format!("{s}"),
        s if s < 1 << 20 => format!("{}K", s >> 10),
        s if s < 1 << 30 => format!("{}M", s >> 20),
        s => format!("{}G", s >> 30),
    }
}

/// A column over time, thinned to the plot's resolution; each point is the maximum of a group.
fn points(samples: &Samples, column: &[u64]) -> Vec<(f64, f64)> {
    let step = samples.at_ns.len().div_ceil(LINE_POINTS_MAX).max(1);
    let times = samples.at_ns.chunks(step).map(|times| times[0] as f64);
    times.zip(column.chunks(step).map(highest)).collect()
}

/// The growth of a count, per second, in `bars` equal stretches of the run.
fn rates_of(samples: &Samples, value: impl Fn(usize) -> f64, bars: usize, seconds: f64) -> Vec<f64> {
    let end = last(&samples.at_ns);
    let at = |time: f64| {
        // The count is interpolated linearly between two samples, and from zero before the first.
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
    fn rates_sum_to_the_count() {
        let samples = samples();
        let rates = rates_of(&samples, |i| samples.minor_faults[i] as f64, 4, 4.0);
        assert_eq!(rates, [100.0, 200.0, 0.0, 0.0]);
        let fine = rates_of(&samples, |i| samples.minor_faults[i] as f64, 10, 4.0);
        assert!((fine.iter().sum::<f64>() * 0.4 - 300.0).abs() < 1e-9);
    }
}
