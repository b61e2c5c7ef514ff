//! Cooper et al. 1992, Figures 1, 5 and 9: live bytes plotted over allocated bytes.
//!
//! Each client runs once in a build that collects at intervals and prints the live bytes. The paper
//! published only plots, so our results are compared with statements of its text.

use super::client::Client;
use super::lab::Lab;
use crate::workshop::Build;
use crate::{Axis, Bound, Figure, Finding, Goal, Series, Table, Value};
use std::process::{Command, Stdio};

/// Approximate number of measurements in a plot.
const LOOKS: u64 = 200;
/// Approximate KiB allocated for each MiB of memory, which sets the interval of measurements of the live
/// data.
const ALLOCATED_KIB: [(&str, u64); 3] = [("compiler", 33_000), ("sort", 7_700), ("primes", 80_000)];
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
    let mut table = Table::new(
        "Live size, parts of the memory",
        &[
            ("client", "client"),
            ("allocated_over_memory", "allocated|/ memory"),
            ("most_live", "most|alive"),
            ("mean_live", "mean"),
            ("above_half_percent", "of the time above|half the memory, %"),
            ("above_all_percent", "of the time above|all of it, %"),
        ],
    );
    for (at, client) in lab.clients().into_iter().enumerate() {
        lab.tell(at, 3, client.name);
        match points(lab, client) {
            Ok(points) => tell(lab, client, &points, &mut table, &mut finding),
            Err(why) => finding.notes.push(format!("no figure of {}: {why}", client.name)),
        }
    }
    finding.tables = vec![table];
    finding
}

fn points(lab: &mut Lab<'_>, client: &Client) -> Result<Points, String> {
    let mut words = client.words(lab.size);
    let kib = ALLOCATED_KIB.iter().find(|(name, _)| *name == client.name).map_or(1000, |(_, kib)| *kib);
    let work = u64::from(if client.scales { lab.size.work } else { 100 });
    let every = kib * u64::from(lab.size.memory_mib) * work / 100 / LOOKS;
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

fn tell(lab: &Lab<'_>, client: &Client, points: &Points, table: &mut Table, finding: &mut Finding) {
    let memory = lab.size.memory() as f64;
    let count = points.len() as f64;
    let above =
        |part: f64| points.iter().filter(|(_, live)| *live > part * memory).count() as f64 / count * 100.0;
    let most = points.iter().map(|(_, live)| *live).fold(0.0, f64::max) / memory;
    let mean = points.iter().map(|(_, live)| *live).sum::<f64>() / count / memory;
    let allocated = points.last().map_or(0.0, |(allocated, _)| *allocated) / memory;
    table.rows.push(vec![
        Value::text(client.name),
        Value::Number(allocated),
        Value::Number(most),
        Value::Number(mean),
        Value::Number(above(HALF)),
        Value::Number(above(WHOLE)),
    ]);
    match client.name {
        // With less than all its modules it has only the smallest peaks.
        "compiler" if lab.size.work == 100 => finding.goals.push(Goal::of(
            "Compiler: time with more than half of memory alive",
            " %",
            Bound::AtLeast(50.0),
            Some(above(HALF)),
        )),
        "sort" => {
            let bound = Bound::AtLeast(WHOLE);
            finding.goals.push(Goal::of("Sort: most alive, of memory", "", bound, Some(most)));
        }
        _ => {}
    }
    let mib = f64::from(1 << 20);
    let plot: Points = points.iter().map(|(allocated, live)| (allocated / mib, live / mib)).collect();
    let end = plot.last().map_or(0.0, |(allocated, _)| *allocated);
    let line = |part: f64| vec![(0.0, part * memory / mib), (end, part * memory / mib)];
    finding.figures.push(Figure {
        name: format!("cooper-figure{}", client.figures[0]),
        title: format!("Figure {}: live size over allocation, {}", client.figures[0], client.name),
        x: Axis::Linear("MiB allocated".into()),
        y: Axis::Linear("MiB alive".into()),
        series: vec![Series::line("alive", plot), Series::published("the memory", line(WHOLE))],
    });
}
