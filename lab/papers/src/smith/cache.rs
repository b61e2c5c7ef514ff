//! The cache misses of the clients of Smith 1998, simulated.
//!
//! The paper explains its client times by locality but could not measure it, and suggests a simulator. Here
//! cachegrind simulates a first level of 32 KiB and a last one of 8 MiB; its counts do not depend on other
//! programs. Programs run some fifty times slower in it, so the clients do a small part of their work. Only
//! threads of the C library are supported: a client for which Vellum starts its helper has no figure.

use super::client::CLIENTS;
use super::lab::Lab;
use crate::Scale;
use crate::workshop::{Build, Collector};
use crate::{Finding, Table, Value};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use vellum_campaign::Launch;
use vellum_process::{Interrupt, locate};

const VALGRIND: &str = "valgrind";
/// The simulated caches: bytes, ways, bytes a line. They are the same on every machine, so that figures can
/// be compared.
const CACHES: [&str; 2] = ["--D1=32768,8,64", "--LL=8388608,16,64"];

/// Counts of one run: instructions, data accesses, misses of the first and of the last level.
#[derive(Debug, Clone, Copy)]
struct Counts {
    instructions: f64,
    accesses: f64,
    first: f64,
    last: f64,
}

pub(super) fn run(lab: &mut Lab<'_>) -> Finding {
    let mut finding = lab.finding(
        "Cache misses, simulated",
        "sections 3.1.1 and 4",
        "Published: cache behaviour can matter more than collector or allocation time; not measured there.",
    );
    if locate(VALGRIND.as_ref(), std::env::var_os("PATH").as_deref()).is_err() {
        finding.notes.push("valgrind is not here: apt-get install valgrind".into());
        return finding;
    }
    let part = lab.scale.pick(2, 5, 1);
    let mut columns = vec![("client".to_owned(), "client".to_owned())];
    for collector in &lab.here {
        let name = collector.name();
        columns.push((format!("{name}_first_per_1000"), format!("{name}|D1")));
        columns.push((format!("{name}_last_per_1000"), "|last".to_owned()));
        columns.push((format!("{name}_instructions_m"), "|M instr.".to_owned()));
    }
    let columns: Vec<(&str, &str)> =
        columns.iter().map(|(key, head)| (key.as_str(), head.as_str())).collect();
    let mut table = Table::new(
        "Misses in 1000 data accesses (32 KiB, 8 MiB), and instructions; collector included",
        &columns,
    );
    let clients = &CLIENTS[..lab.scale.pick(CLIENTS.len(), CLIENTS.len(), 1)];
    let total = clients.len() * lab.here.len();
    for (at, client) in clients.iter().enumerate() {
        if Interrupt::arrived().is_some() {
            finding.notes.push("a signal asked to end: the rest is missing".into());
            break;
        }
        let mut row = vec![Value::text(client.title)];
        for (number, collector) in lab.here.clone().into_iter().enumerate() {
            lab.tell(at * lab.here.len() + number, total, &format!("{} {}", client.name, collector.name()));
            // Groebner's live data grow with its work, so too small a part of the work would have none.
            let percent = if lab.scale == Scale::Tiny { 1 } else { client.quick_percent / part };
            let found = simulated(lab, client.name, collector, &format!("scale={percent}"), client.heap_mib);
            let (counts, failure) = (found.as_ref().ok(), found.as_ref().err());
            finding.notes.extend(
                failure.map(|why| format!("no figure of {} in {}: {why}", collector.name(), client.name)),
            );
            let per = |misses: fn(&Counts) -> f64| Value::of(counts.map(|of| misses(of) / of.accesses * 1e3));
            row.extend([
                per(|of| of.first),
                per(|of| of.last),
                Value::of(counts.map(|of| of.instructions / 1e6)),
            ]);
            finding.runs.push(json!({
                "cell": client.name, "arm": collector.name(), "round": 0, "place": number,
                "metrics": counts.map(|of| json!({
                    "instructions": of.instructions, "accesses": of.accesses,
                    "first_level_misses": of.first, "last_level_misses": of.last,
                })),
                "failure": failure,
            }));
        }
        table.rows.push(row);
    }
    finding.tables = vec![table];
    finding
}

fn simulated(
    lab: &mut Lab<'_>,
    client: &str,
    collector: Collector,
    work: &str,
    mib: u64,
) -> Result<Counts, String> {
    let heap = format!("heap={mib}");
    let launch = lab.workshop.launch(client, collector, Build::Plain, &[work, &heap])?;
    let out = lab.workshop.scratch("cachegrind");
    under(&launch, &out)?;
    let text =
        std::fs::read_to_string(&out).map_err(|error| format!("reading what cachegrind wrote: {error}"))?;
    counts(&text).ok_or_else(|| "cachegrind wrote no summary".to_owned())
}

/// Runs the launch under cachegrind, which writes to `out`.
fn under(launch: &Launch, out: &Path) -> Result<(), String> {
    let mut command = Command::new(VALGRIND);
    command.args(["-q", "--tool=cachegrind", "--cache-sim=yes"]).args(CACHES);
    command.arg(format!("--cachegrind-out-file={}", out.display()));
    command.arg(&launch.program).args(&launch.args).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("starting {VALGRIND}: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let reason = errors.lines().find(|line| !line.contains("warning:")).unwrap_or_default();
    if output.status.success() { Ok(()) } else { Err(format!("{VALGRIND}: {}: {reason}", output.status)) }
}

/// The summary of a cachegrind file: a line with the events' names, and one with their counts.
fn counts(text: &str) -> Option<Counts> {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let (names, values) = (line("events:")?, line("summary:")?);
    let values = values.split_whitespace().map(|word| word.parse::<f64>().ok());
    let by_name: BTreeMap<&str, f64> =
        names.split_whitespace().zip(values).filter_map(|(name, value)| Some((name, value?))).collect();
    let sum = |names: [&str; 2]| Some(by_name.get(names[0])? + by_name.get(names[1])?);
    Some(Counts {
        instructions: *by_name.get("Ir")?,
        accesses: sum(["Dr", "Dw"])?,
        first: sum(["D1mr", "D1mw"])?,
        last: sum(["DLmr", "DLmw"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_by_the_names_of_its_events() {
        let text = "desc: I1 cache\nevents: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\nfl=x\n1 2\nsummary: 10 0 0 40 3 1 60 2 1\n";
        let found = counts(text).unwrap();
        assert_eq!((found.instructions, found.accesses, found.first, found.last), (10.0, 100.0, 5.0, 2.0));
        assert!(counts("events: Ir\nsummary: 1\n").is_none() && counts("").is_none());
    }
}
