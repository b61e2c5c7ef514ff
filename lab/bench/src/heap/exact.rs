//! Checks how exact the figures of `vellum heap`, the heap profiler, are. Programs that allocate the same
//! in every run are profiled first with every block recorded, then by samples.
//!
//! With one sample per byte, every block is recorded, so the sum and the bytes of each source line are exact.
//! The bytes allocated in the whole run are compared by line, for lines with at least 1 % of all bytes.

use super::tools::profile;
use crate::programs::program::Ready;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use vellum_campaign::{Bound, Goal};
use vellum_measure::median;
use vellum_report::Table;
use vellum_report::units::{bytes, count, fixed};

/// Goals: bytes by line within 5 % of exact for lines above 1 %, and the sum within 2 %.
const SITE_MAX: f64 = 5.0;
const SUM_MAX: f64 = 2.0;
const SHARE_MIN: f64 = 0.01;
/// Bytes between samples, as the command takes them. The goals are for the first.
const INTERVALS: [&str; 3] = ["4K", "32K", "512K"];
/// Standard errors that a figure may be off; one figure in two million is further off by chance.
const DEVIATIONS: f64 = 5.0;

/// A profile: the sum of the bytes, and the bytes of each line with their standard error.
struct Profile {
    sum: f64,
    lost: u64,
    lines: BTreeMap<String, (f64, f64)>,
}

fn read(document: &Value) -> Option<Profile> {
    let mut lines: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for site in document["sites"].as_array()? {
        let ever = &site["held"]["ever"];
        let [bytes, blocks, samples] =
            ["bytes", "blocks", "samples"].map(|key| ever[key].as_f64().unwrap_or(0.0));
        let variance =
            if samples > 0.0 && blocks > samples { (1.0 - samples / blocks) / samples } else { 0.0 };
        let line = lines.entry(format!("{} {}", site["place"], site["via"])).or_default();
        *line = (line.0 + bytes, line.1.hypot(bytes * variance.sqrt()));
    }
    let lost = document["processes"].as_array()?.iter().filter_map(|it| it["lost_samples"].as_u64()).sum();
    Some(Profile { sum: document["sum"]["ever"]["bytes"].as_f64()?, lost, lines })
}

/// The table of the programs that allocate the same in every run, and its goals.
pub(super) fn table(
    programs: &[Ready],
    folder: &Path,
    vellum: &Path,
    library: &Path,
    goals: &mut Vec<Goal>,
) -> Table {
    let heads = [
        "",
        "every",
        "allocated",
        "lines",
        "sum off %",
        "median line off %",
        "worst off %",
        "worst, in its errors",
    ];
    let mut table = Table::plain(&heads, 2)
        .titled("Bytes by line, by samples, against those of every block: lines of at least 1 %");
    let (mut sums, mut worst, mut beyond) = (Vec::new(), Vec::new(), 0);
    for ready in programs.iter().filter(|ready| ready.program.is_repeatable) {
        let profile = |interval: &str| {
            profile(vellum, library, folder, interval, &ready.command()).as_ref().and_then(read)
        };
        let Some(exact) = profile("1") else { continue };
        if exact.lost > 0 {
            let name = format!("{}: too many blocks", ready.program.name);
            table.row([vec![name], vec!["-".to_owned(); heads.len() - 1]].concat());
            continue;
        }
        for (at, interval) in INTERVALS.into_iter().enumerate() {
            let Some(told) = profile(interval) else { continue };
            let off = (told.sum / exact.sum - 1.0).abs() * 100.0;
            let large = exact.lines.iter().filter(|(_, (bytes, _))| *bytes >= exact.sum * SHARE_MIN);
            let lines: Vec<(f64, f64)> = large
                .map(|(line, (bytes, _))| {
                    let (said, error) = told.lines.get(line).copied().unwrap_or_default();
                    let far = (said - bytes).abs();
                    (far / bytes * 100.0, if error > 0.0 { far / error } else { 0.0 })
                })
                .collect();
            let most = lines.iter().map(|line| line.0).fold(0.0, f64::max);
            let errors = lines.iter().map(|line| line.1).fold(0.0, f64::max);
            let middle = median(&lines.iter().map(|line| line.0).collect::<Vec<_>>());
            if at == 0 {
                sums.push(off);
                worst.push(most);
            }
            beyond += lines.iter().filter(|line| line.1 > DEVIATIONS).count();
            table.row(vec![
                ready.program.name.to_owned(),
                interval.to_owned(),
                bytes(exact.sum as u64),
                count(lines.len() as u64),
                fixed(Some(off), 2),
                fixed(middle, 2),
                fixed(Some(most), 2),
                fixed(Some(errors), 1),
            ]);
        }
    }
    let most = |all: &[f64]| all.iter().copied().reduce(f64::max);
    let [first, ..] = INTERVALS;
    goals.push(Goal::of(
        format!("every {first}: the furthest that a line of at least 1 % is off"),
        " %",
        Bound::AtMost(SITE_MAX),
        most(&worst),
    ));
    goals.push(Goal::of(
        format!("every {first}: the furthest that a sum is off"),
        " %",
        Bound::AtMost(SUM_MAX),
        most(&sums),
    ));
    let far = (!sums.is_empty()).then_some(beyond as f64);
    let what =
        format!("lines off by more than {DEVIATIONS} of the standard errors that are said, at any interval");
    goals.push(Goal::of(what, "", Bound::AtMost(0.0), far));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_get_the_standard_error_of_their_samples() {
        let ever = json!({ "bytes": 1000, "blocks": 100, "samples": 4 });
        let site = json!({ "place": "a", "via": null, "held": { "ever": ever } });
        let document = json!({
            "sites": [site], "sum": { "ever": { "bytes": 1000 } }, "processes": [{ "lost_samples": 3 }],
        });
        let profile = read(&document).expect("complete");
        let (_, (bytes, error)) = profile.lines.first_key_value().expect("a line");
        assert_eq!((profile.sum, profile.lost, *bytes), (1000.0, 3, 1000.0));
        assert!((error - 1000.0 * 0.96f64.sqrt() / 2.0).abs() < 1e-9);
    }
}
