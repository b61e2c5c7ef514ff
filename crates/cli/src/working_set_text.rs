//! A working set in words, for `vellum watch` and `vellum run`: grain, knee, memory to give, cost.

use std::time::Duration;
use vellum_reference::{Delay, Device, Frame, Grain, Ground, Kind, Limit, Wanting};
use vellum_report::units::{bytes, count, many, time};

/// Fewer cycles are said to be few beside what they are the ground of.
const CYCLES_ENOUGH: u64 = 3;
/// With fewer nothing less than all is promised.
const CYCLES_PROMISE: u64 = 2;
/// A limit this much above the peak of resident memory counts files' pages in the kernel's cache.
const MORE_THAN_PEAK: f64 = 1.25;
/// A job that uses less than this part of a processor hardly runs.
const HARDLY: f64 = 0.05;
/// Longer than this is not worth a figure.
const WAITED_MAX: Duration = Duration::from_secs(3600);

/// The page size in words, if it is not the usual one.
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

/// The memory recommended, in one sentence. `None` without a curve.
pub(crate) fn recommended(frame: &Frame) -> Option<String> {
    let verdict = frame.verdict.as_ref()?;
    if frame.cycles < CYCLES_ENOUGH && !verdict.growing {
        let more = (CYCLES_ENOUGH - frame.cycles) * verdict.longest_window_ns as u64;
        let enough = time(Duration::from_nanos(frame.clock_ns + more));
        return Some(format!("too short to recommend memory: run it for about {enough} of CPU time"));
    }
    let size = bytes(verdict.give.bytes);
    let cached = verdict.give.bytes as f64 > frame.peak_bytes as f64 * MORE_THAN_PEAK;
    let all = if cached { "all that it had, the files that it read included" } else { "all that it had" };
    Some(match verdict.ground {
        Ground::Curve => {
            format!("{size} recommended: about {} slower than with {all}", percent(verdict.give.slowdown))
        }
        Ground::All if verdict.growing => {
            format!("at least {size} recommended, {all}: it was still growing")
        }
        Ground::All => format!("{size} recommended, {all}: nothing shows that less would do"),
    })
}

/// The meaning of a curve: the knee, the memory to give, the slowdown with less, and S.
pub(crate) fn meaning(frame: &Frame, delay: Option<&Delay>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(verdict) = &frame.verdict {
        let knee = &verdict.knee;
        let (size, window) = (bytes(knee.bytes), time(Duration::from_nanos(knee.window_ns as u64)));
        let mut found = match knee.kind {
            Kind::Knee => format!("{size}, in a window of {window}"),
            Kind::NeedsNothingMore => {
                format!("no knee: a window of {window} holds all that it needs, {size}")
            }
            Kind::TakesAll => format!("no knee: it uses all memory, {size} in a window of {window}"),
        };
        if let (Some(low), Some(high)) = (knee.low_bytes, knee.high_bytes) {
            found += &format!(" (95 %: {} to {})", bytes(low), bytes(high));
        }
        lines.push(("knee", found));
        let longest = time(Duration::from_nanos(verdict.longest_window_ns as u64));
        let mut give = match verdict.ground {
            Ground::Curve => {
                let slower = percent(verdict.give.slowdown);
                let mut words = bytes(verdict.give.bytes);
                if let (Some(low), Some(high)) = (verdict.give_low_bytes, verdict.give_high_bytes) {
                    words += &format!(" (95 %: {} to {})", bytes(low), bytes(high));
                }
                words + &format!(": about {slower} slower than with all")
            }
            Ground::All if verdict.growing => {
                format!("at least {}, all it had: it was still growing", bytes(verdict.give.bytes))
            }
            Ground::All if frame.cycles < CYCLES_PROMISE => format!(
                "{}, all it had: one cycle is too little to recommend less",
                bytes(verdict.give.bytes)
            ),
            Ground::All => format!(
                "{}, all it had: a limit smaller by an eighth or more would cost over 2 %",
                bytes(verdict.give.bytes)
            ),
        };
        if (CYCLES_PROMISE..CYCLES_ENOUGH).contains(&frame.cycles) {
            give += &format!("; judged by {} of at most {longest}", many(frame.cycles, "cycle"));
        }
        lines.push(("give", give));
        lines.push(("less", less(&verdict.less)));
    }
    if let Some(delay) = delay {
        lines.push(("delay", delay_words(delay)));
    } else {
        lines.push((
            "delay",
            "not known; set the delay of a page fault with --delay, as in --delay 100us".to_owned(),
        ));
    }
    lines
}

fn less(limits: &[Limit]) -> String {
    let words = limits.iter().map(|limit| {
        let at_least = if limit.at_least { "at least " } else { "" };
        let slowdown = match (limit.low, limit.high) {
            // A range that is read as one figure is one.
            (Some(low), Some(high)) if percent(low) != percent(high) => {
                format!("{} (95 %: {} to {})", percent(limit.slowdown), percent(low), percent(high))
            }
            _ => percent(limit.slowdown),
        };
        format!("at {} {at_least}+{slowdown}", bytes(limit.bytes))
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
            "{each} a fault, measured on files in {} ({}); there is no swap, so a limit below the memory that it has written kills",
            directory.display(),
            many(delay.faults as u64, "fault")
        ),
    }
}

/// The cost of the watch, in words.
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
    if hardly_runs(frame) {
        text += &format!("; {:.3} % of one processor", cost.of_processor * 100.0);
    }
    if cost.ahead_ns > 0 {
        text += &format!(
            "; {} ahead of the budget, for the first curve, repaid while the watch goes on",
            time(nanos(cost.ahead_ns))
        );
    }
    if let Some(first) = frame.first_curve_ns {
        text += &format!("; first curve after {}", time(nanos(first)));
    }
    text + &match frame.cycles {
        _ if frame.curve.is_empty() => String::new(),
        0 => "; from the first cycle, which still runs".to_owned(),
        cycles => format!("; from {}", many(cycles, "cycle")),
    }
}

/// Whether the job uses next to nothing of a processor.
pub(crate) fn hardly_runs(frame: &Frame) -> bool {
    (frame.clock_ns as f64) < frame.at_ns as f64 * HARDLY
}

/// The time that a first curve still needs, or would have needed if the job had not `ended`.
pub(crate) fn curve_in(wanting: Option<Wanting>, ended: bool) -> String {
    let Some(wanting) = wanting else { return "the program has used too little CPU time".to_owned() };
    let cpu = time(Duration::from_nanos(wanting.cpu_ns));
    let wall = Duration::from_nanos(wanting.wall_ns);
    match ended {
        true => format!("it needed about {cpu} more of CPU time"),
        false if wall > WAITED_MAX => {
            format!("about {cpu} more of its CPU time are needed, and it hardly runs")
        }
        false => {
            format!(
                "about {cpu} more of its CPU time are needed, {} at the rate at which it runs",
                time(wall)
            )
        }
    }
}

/// What was not touched for how long, and the memory to give by that.
pub(crate) fn by_age(frame: &Frame) -> Vec<(&'static str, String)> {
    let nanos = Duration::from_nanos;
    let mut lines = Vec::new();
    let ages =
        frame.ages.iter().map(|age| format!("{} for {}", bytes(age.bytes), time(nanos(age.untouched_ns))));
    if !frame.ages.is_empty() {
        lines.push(("untouched", ages.collect::<Vec<_>>().join(", ")));
    }
    if let Some(given) = frame.give_by_age {
        let label = if frame.verdict.is_none() { "give" } else { "by age" };
        let within = time(nanos(given.touched_within_ns));
        let size = bytes(given.bytes);
        lines.push((
            label,
            format!("{size} hold the memory touched within {within}; the rest must be read back when needed"),
        ));
    }
    lines
}
