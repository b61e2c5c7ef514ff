//! Sentences about a working set, for `vellum watch` and `vellum run`: page size, recommended memory, cost.

use std::time::Duration;
use vellum_reference::{Delay, Device, Frame, Grain, Ground, Kind, Limit, Wanting};
use vellum_report::units::{bytes, count, many, time};

/// A job that uses less than this part of a processor hardly runs.
const HARDLY: f64 = 0.05;
/// A slowdown with an uncertainty above this factor is not shown.
const KNOWN: f64 = 2.0;
/// The longest waiting time that is shown as a figure.
const WAITED_MAX: Duration = Duration::from_secs(3600);

/// The page size in words, if it is not 4 KiB.
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
pub(crate) fn recommended(frame: &Frame, delay: Option<&Delay>) -> Option<String> {
    let verdict = frame.verdict.as_ref()?;
    if !frame.is_enough() {
        return Some(too_short(frame.enough_ns));
    }
    let size = bytes(verdict.give.bytes);
    if verdict.growing {
        return Some(format!("at least {size} recommended: it is still growing"));
    }
    let mut words = format!("{size} recommended");
    if verdict.files_bytes > 0 {
        words += &format!(", {} of it for files that it reads again", bytes(verdict.files_bytes));
    }
    if verdict.ground == Ground::Curve
        && let Some(Delay { device: Device::File { swap: false, .. }, .. }) = delay
    {
        words += ", with swap for the rest";
    }
    Some(words + ": the smallest limit that costs at most 2 % of its time")
}

/// A note that the program ran too briefly.
pub(crate) fn too_short(enough_ns: u64) -> String {
    let enough = match enough_ns / 1_000_000_000 {
        // The record is older than this field.
        0 => return "too short to recommend memory: run it for longer".to_owned(),
        seconds if seconds < 60 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    };
    format!("too short to recommend memory: run it for about {enough} of CPU time")
}

/// The meaning of a curve: the knee, the slowdown with less memory than recommended, and S.
pub(crate) fn meaning(frame: &Frame, delay: Option<&Delay>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(verdict) = &frame.verdict {
        let knee = &verdict.knee;
        let (size, window) = (bytes(knee.bytes), nanos(knee.window_ns as u64));
        let mut found = match knee.kind {
            Kind::Knee => format!("{size}, in a window of {window}"),
            Kind::NeedsNothingMore => {
                format!("no knee: longer windows than {window} hold hardly more, {size}")
            }
            Kind::TakesAll => format!("no knee: it uses all memory, {size} in a window of {window}"),
        };
        if let (Some(low), Some(high)) = (knee.low_bytes, knee.high_bytes) {
            found += &format!(" (95 %: {} to {})", bytes(low), bytes(high));
        }
        lines.push(("knee", found));
        let known = less(&verdict.less);
        if !known.is_empty() {
            lines.push(("less", known));
        }
    }
    if let Some(delay) = delay {
        lines.push(("delay", delay_words(delay)));
    } else {
        lines.push((
            "delay",
            "unknown; set the delay of a page fault with --delay, as in --delay 100us".to_owned(),
        ));
    }
    lines
}

/// The slowdown under smaller limits, if its uncertainty is below [`KNOWN`].
fn less(limits: &[Limit]) -> String {
    let known = |limit: &&Limit| {
        let within = |low, high| low * KNOWN >= limit.slowdown && high <= limit.slowdown * KNOWN;
        !limit.at_least && limit.low.zip(limit.high).is_some_and(|(low, high)| within(low, high))
    };
    let words = |limit: &Limit| format!("at {} +{}", bytes(limit.bytes), percent(limit.slowdown));
    limits.iter().filter(known).map(words).collect::<Vec<_>>().join(", ")
}

fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{} %", count(percent.round() as u64)) }
}

fn delay_words(delay: &Delay) -> String {
    let (place, more) = match &delay.device {
        Device::Given => return format!("{} a fault, as given", nanos(delay.mean_ns as u64)),
        Device::Swap { name } => (format!("swap {name}"), "paging out counted in"),
        Device::File { directory, swap: true } => {
            (format!("files in {}", directory.display()), "swap could not be measured")
        }
        Device::File { directory, swap: false } => (
            format!("files in {}", directory.display()),
            "there is no swap, so a limit below the memory that it has written kills",
        ),
    };
    let faults = many(delay.faults as u64, "fault");
    format!("{} a fault, measured on {place} ({faults}); {more}", nanos(delay.mean_ns as u64))
}

fn nanos(ns: u64) -> String {
    time(Duration::from_nanos(ns))
}

pub(crate) fn cost(frame: &Frame) -> String {
    let cost = &frame.cost;
    let mut text = format!(
        "{:.2} % of its CPU time ({} ours, {} its own), longest stall {}",
        cost.share * 100.0,
        nanos(cost.cpu_ns),
        nanos(cost.imposed_ns),
        nanos(cost.longest_stall_ns),
    );
    if hardly_runs(frame) {
        text += &format!("; {:.3} % of one processor", cost.of_processor * 100.0);
    }
    if cost.ahead_ns > 0 {
        let ahead = nanos(cost.ahead_ns);
        text +=
            &format!("; {ahead} ahead of the budget, for the first cycles, repaid while the watch goes on");
    }
    if let Some(first) = frame.first_curve_ns {
        text += &format!("; first curve after {}", nanos(first));
    }
    text + &match frame.cycles {
        _ if frame.curve.is_empty() => String::new(),
        0 => "; from the first cycle, which still runs".to_owned(),
        cycles => format!("; from {}", many(cycles, "cycle")),
    }
}

/// Returns whether the job uses almost no processor time.
pub(crate) fn hardly_runs(frame: &Frame) -> bool {
    (frame.clock_ns as f64) < frame.at_ns as f64 * HARDLY
}

/// The time that a recommendation still needs, or would have needed if the job has `ended`.
pub(crate) fn curve_in(wanting: Wanting, ended: bool) -> String {
    if wanting.cpu_ns == 0 {
        return "the cycle that gives one has not ended".to_owned();
    }
    let at_its_rate = match Duration::from_nanos(wanting.wall_ns) {
        _ if ended => String::new(),
        wall if wall > WAITED_MAX => ", and it hardly runs".to_owned(),
        wall => format!(", {} at the rate at which it runs", time(wall)),
    };
    format!("about {} more of its CPU time needed{at_its_rate}", nanos(wanting.cpu_ns))
}

/// Memory by the time since its last use, and the memory recommended on that basis.
pub(crate) fn by_age(frame: &Frame) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let ages = frame.ages.iter().map(|age| format!("{} for {}", bytes(age.bytes), nanos(age.untouched_ns)));
    if !frame.ages.is_empty() {
        lines.push(("untouched", ages.collect::<Vec<_>>().join(", ")));
    }
    if let Some(given) = frame.give_by_age {
        let within = nanos(given.touched_within_ns);
        let size = bytes(given.bytes);
        lines.push((
            "by age",
            format!("{size} hold the memory touched within {within}; the rest must be read back when needed"),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorded moment after 4 s, with 5 s needed.
    const MOMENT: &str = r#"{"at_ns":0,"clock_ns":4200000000,"enough_ns":5000000000,"processes":0,"resident_bytes":0,
        "swapped_bytes":0,"shared_bytes":0,"peak_bytes":200000000,"grain":{"pages":"base"},"cycles":2,"curve":[],
        "cost":{"cpu_ns":0,"imposed_ns":0,"longest_stall_ns":0,"share":0.0},
        "verdict":{"knee":{"kind":"knee","window_ns":1e8,"bytes":1,"waiting":0.0},"longest_window_ns":8e8,"ground":"curve",
        "growing":false,"files_bytes":0,"give":{"bytes":47185920,"slowdown":0.02,"at_least":false,"low":0.02,"high":0.02},
        "less":[{"bytes":41943040,"slowdown":0.1,"at_least":false,"low":0.05,"high":0.2},
        {"bytes":20971520,"slowdown":0.1,"at_least":false,"low":0.05,"high":0.3}]}}"#;

    #[test]
    fn recommendation_is_one_sentence_with_one_missing_time() {
        let device = Device::File { directory: "/tmp".into(), swap: false };
        let delay = Delay { device, ..Delay::given(Duration::ZERO) };
        let said = |changes: &[(&str, &str)]| {
            let change = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
            serde_json::from_str(&changes.iter().fold(MOMENT.to_owned(), change)).unwrap()
        };
        let short = "too short to recommend memory: run it for about 5 s of CPU time";
        let known = ": the smallest limit that costs at most 2 % of its time";
        let (all, growing) = ((":\"curve", ":\"all"), ("g\":false", "g\":true"));
        let files = ("s_bytes\":0,\"give", "s_bytes\":9,\"give");
        for (changes, words, end) in [
            (&[("4200", "4100")][..], "", short),
            (&[("s\":2,", "s\":1,"), growing], "", short),
            (&[], "45.0 MiB recommended, with swap for the rest", known),
            (&[all], "45.0 MiB recommended", known),
            (&[all, files], "45.0 MiB recommended, 9 B of it for files that it reads again", known),
            (&[growing], "at least 45.0 MiB recommended", ": it is still growing"),
        ] {
            let frame: Frame = said(changes);
            assert_eq!(recommended(&frame, Some(&delay)), Some(format!("{words}{end}")));
            assert!(meaning(&frame, None).contains(&("less", "at 40.0 MiB +10 %".to_owned())));
        }
    }
}
