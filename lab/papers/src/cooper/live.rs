//! Cooper et al. 1992, Figures 1, 5 and 9: live bytes plotted over allocated bytes.
//!
//! Each client runs once in a build that collects at intervals and prints the live bytes. The paper
//! published only plots, so our results are compared with statements in the paper's text.

use super::client::{CLIENTS, Client};
use super::lab::Lab;
use crate::finding::table_by;
use crate::workshop::Build;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Value};
use std::process::{Command, Stdio};

/// Approximate number of measurements in a plot.
const LOOKS: u64 = 200;
/// Goals, in parts of the memory: live data above this for half of the time; live data that end above memory.
const HALF: f64 = 0.5;
const WHOLE: f64 = 1.0;

/// Bytes allocated and bytes alive.
type Points = Vec<(f64, f64)>;

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let mut finding = lab.finding(
        "Live size and total allocation",
        "Figures 1, 5 and 9",
        "Published as plots, of 11 MB: Compiler is a saw with more than 5 Mb alive for much of the time; Sort ends with more alive than there is \
         memory; Primes is bound by the processor.",
    );
    let mut measured = Vec::new();
    for (at, client) in CLIENTS.iter().enumerate() {
        lab.tell(at, CLIENTS.len(), client.name);
        match points(lab, client) {
            Ok(points) => measured.push((client, points)),
            Err(why) => finding.notes.push(format!("no figure of {}: {why}", client.name)),
        }
    }
    let memory = lab.size.memory() as f64;
    let mean = |points: &Points| points.iter().map(|(_, live)| *live).sum::<f64>() / points.len() as f64;
    let allocated = |points: &Points| points.last().map_or(0.0, |(allocated, _)| *allocated);
    let above = |points: &Points, part: f64| Value::Number(above_percent(points, part * memory));
    finding.tables = vec![table_by(
        "Live size, parts of the memory",
        &measured,
        &[
            ("client", "client", &|(client, _)| Value::text(client.name)),
            ("allocated_over_memory", "allocated|/ memory", &|(_, points)| {
                Value::Number(allocated(points) / memory)
            }),
            ("most_live", "most|alive", &|(_, points)| Value::Number(most(points) / memory)),
            ("mean_live", "mean", &|(_, points)| Value::Number(mean(points) / memory)),
            ("above_half_percent", "of the time above|half the memory, %", &|(_, p)| above(p, HALF)),
            ("above_all_percent", "of the time above|all of it, %", &|(_, points)| above(points, WHOLE)),
        ],
    )];
    for (client, points) in &measured {
        finding.goals.extend(goal(lab, client, points));
        finding.figures.push(figure(client, points, memory));
    }
    finding
}

/// The most live bytes.
fn most(points: &Points) -> f64 {
    points.iter().map(|(_, live)| *live).fold(0.0, f64::max)
}

/// The share of the time in which more than `bytes` are alive.
fn above_percent(points: &Points, bytes: f64) -> f64 {
    points.iter().filter(|(_, live)| *live > bytes).count() as f64 / points.len() as f64 * 100.0
}

fn points(lab: &mut Lab<'_>, client: &Client) -> Result<Points, String> {
    let mut words = client.words(lab.size);
    let work = u64::from(client.work(lab.size));
    let every = client.allocated_kib * u64::from(lab.size.memory_mib) * work / 100 / LOOKS;
    words.push(format!("live={}", every.max(1)));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let launch = lab.launch(client.name, Build::Profile, &words)?;
    let output = Command::new(&launch.program).args(&launch.args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("starting it: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let point = |line: &str| {
        let mut words = line.strip_prefix("live ")?.split(' ').map(|word| word.parse::<f64>().ok());
        Some((words.next()??, words.next()??))
    };
    let points: Points = text.lines().filter_map(point).collect();
    if points.is_empty() { Err("it said nothing of what lives".to_owned()) } else { Ok(points) }
}

fn goal(lab: &Lab<'_>, client: &Client, points: &Points) -> Option<Goal> {
    let memory = lab.size.memory() as f64;
    match client.name {
        // With less than all its modules it has only the smallest peaks.
        "compiler" if lab.size.work == 100 => {
            let what = "Compiler: time with more than half of memory alive";
            Some(Goal::of(what, " %", Bound::AtLeast(50.0), Some(above_percent(points, HALF * memory))))
        }
        "sort" => {
            let most = Some(most(points) / memory);
            Some(Goal::of("Sort: most alive, of memory", "", Bound::AtLeast(WHOLE), most))
        }
        _ => None,
    }
}

fn figure(client: &Client, points: &Points, memory: f64) -> Figure {
    let mib = f64::from(1 << 20);
    let plot: Points = points.iter().map(|(allocated, live)| (allocated / mib, live / mib)).collect();
    let end = plot.last().map_or(0.0, |(allocated, _)| *allocated);
    let line = |part: f64| vec![(0.0, part * memory / mib), (end, part * memory / mib)];
    Figure {
        name: format!("cooper-figure{}", client.figures[0]),
        title: format!("Figure {}: live size over allocation, {}", client.figures[0], client.name),
        x: Axis::Linear("MiB allocated".into()),
        y: Axis::Linear("MiB alive".into()),
        series: vec![Series::line("alive", plot), Series::published("the memory", line(WHOLE))],
    }
}
