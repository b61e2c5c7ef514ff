//! Compares memory requests (what a container reserves on its node) for twenty workloads: Vellum's
//! recommendation and that of the Kubernetes recommender's rule, from the same runs.
//!
//! ```text
//! Group ── workload, no limit ─┬─ vellum watch ─▶ the largest advice, plus 10 %     (vellum_fleet)
//!                              └─ working set  ─▶ the 90th percentile, plus 15 %    (rivals.rs)
//! Group ── workload: no limit, again (A/A), at most Vellum's number, in random order
//! ```
//!
//! A request alone limits nothing. Here Vellum's request is set as a hard limit of a memory cgroup
//! (`Group`), with a zram disk to page to. A number that is too small then shows as CPU time (user and
//! system), or as a kill.
//!
//! Departures:
//! - The history is one run instead of eight days. The watch may cost more CPU time than that of
//!   `vellum agent`, to learn as much in less time.
//! - The recommender's percentile is over that run, sampled twenty times a second.
//!
//! The program needs root, zram and a memory cgroup. It removes the disk and the cgroups at its end, also
//! after a signal. The workloads, their runs under a limit, and the recommender's rule come from section
//! `advice` of `vellum-bench`, compiled in from its files.

#[path = "../../bench/src/confined.rs"]
#[expect(unreachable_pub, reason = "they are part of the library of `vellum-bench`")]
mod confined;
#[path = "../../bench/src/advice/program.rs"]
mod program;
#[path = "../../bench/src/advice/rivals.rs"]
#[expect(dead_code, reason = "the section `advice` uses the rest")]
mod rivals;
mod workload;

use clap::Parser;
use confined::{
    Asked, DEVICE_BYTES, FOLDER, Job, LONGEST, NONE, RunError, STOPPED, Took, UNLIMITED_LONGEST, Unmeasured,
    cpu_ratio,
};
use rivals::Usage;
use serde_json::{Value as Json, json};
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use vellum_campaign::confine::{Device, Group};
use vellum_campaign::{Bound, Goal};
use vellum_experiment::{ArmOrder, Experiment, Stop, Turn};
use vellum_fleet::recommend::decide::{History, Rules, Verdict, decide};
use vellum_measure::Interval;
use vellum_process::Interrupt;
use vellum_report::{Output, Table, Value, stdout};
use vellum_timing::machine;
use workload::Ready;

/// Name and version of the JSON. A field's meaning never changes; new ones may come.
const SCHEMA: &str = "vellum-bench.fleet/1";
const ROUNDS_QUICK: usize = 1;
/// Goal: the sum of Vellum's recommendations, over the sum by the recommender's rule.
const LESS: f64 = 0.75;
/// Goal: the slowdown of a workload under Vellum's limit, as a ratio of CPU time.
const COST_MAX: f64 = 1.02;
/// The margin added to the advice, as in `vellum recommend`.
const MARGIN: f64 = 0.1;
/// The budget of the watch.
const BUDGET: [&str; 4] = ["--budget", "20%", "--idle-budget", "5%"];
const MIB: f64 = (1 << 20) as f64;
const ARMS: [&str; 3] = ["all", "all'", "recommended"];

/// Compares the requests that Vellum recommends for twenty workloads with the rule of the Kubernetes
/// recommender.
#[derive(Parser)]
struct Options {
    /// One round of each workload
    #[arg(long)]
    quick: bool,
    /// Write every run to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only the workloads whose names contain this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Rounds of each workload
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Seed of orders and inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The command `vellum`
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/vellum"))]
    vellum: PathBuf,
    /// List the workloads, and end
    #[arg(long)]
    list: bool,
}

#[derive(Debug, serde::Serialize)]
struct Finding {
    table: Table,
    goals: Vec<Goal>,
    notes: Vec<String>,
    /// Every run, in the order it was made.
    runs: Vec<Json>,
}

impl Finding {
    fn new() -> Finding {
        Finding { table: table(), goals: Vec::new(), notes: Vec::new(), runs: Vec::new() }
    }

    fn text(&self) -> String {
        let goals = self.goals.iter().map(|goal| format!("{}: {}", goal.verdict.word(), goal.sentence()));
        let notes = self.notes.iter().map(|note| format!("note: {note}"));
        let below: String = notes.chain(goals).map(|line| line + "\n").collect();
        format!("{}\n{below}", self.table.text())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if options.list {
        let names: String = workload::all().map(|workload| format!("{}\n", workload.name())).collect();
        return Ok(stdout::write_all(names.as_bytes())?);
    }
    let rounds = if options.quick { ROUNDS_QUICK } else { options.rounds.into() };
    let (only, Options { seed, vellum, .. }) = (options.only.as_deref(), &options);
    let asked = Asked { only, rounds, seed: *seed, vellum: vellum.clone() };
    let is_live = std::io::stderr().is_terminal();
    let tell = |what: &str| {
        if is_live {
            eprint!("\r\x1b[K{what}");
        }
    };
    let finding = run(&asked, tell);
    tell("");
    let finding = finding?;
    stdout::write_all(finding.text().as_bytes())?;
    if let Some(file) = &options.json {
        let machine = machine::read();
        let all =
            json!({"schema": SCHEMA, "machine": machine, "rounds": rounds, "seed": seed, "finding": finding});
        Output::prepare(file)?.write(vellum_report::json(&all)?)?;
    }
    Ok(())
}

/// The results of a history.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Vellum's recommendation in bytes.
    recommended: u64,
    reason: String,
    /// The result of the Kubernetes recommender's rule, in bytes.
    rule: u64,
    took: Took,
}

/// Why there is no recommendation.
#[derive(Debug, thiserror::Error)]
enum NoneKnown {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("no recommendation: {0}")]
    Advice(String),
}

/// Runs all workloads.
///
/// # Errors
/// [`Unmeasured`] without a device or a workload to run. A workload that fails and a signal to end become
/// notes.
fn run(asked: &Asked<'_>, mut tell: impl FnMut(&str)) -> Result<Finding, Unmeasured> {
    if !asked.vellum.exists() {
        return Err(Unmeasured::Missing(asked.vellum.clone()));
    }
    let _caught = Interrupt::catch()?;
    let folder = tempfile::Builder::new().prefix("vellum-requests-").tempdir_in(FOLDER)?;
    // Services that give up root must still read their files.
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    workload::prepare(folder.path(), asked.seed)?;
    let _device = Device::new(DEVICE_BYTES)?;
    let mut finding = Finding::new();
    for workload in workload::all() {
        let cell = workload.name();
        if asked.only.is_some_and(|only| !cell.contains(only)) {
            continue;
        }
        tell(&format!("{cell}: files"));
        let ready = match workload.ready(folder.path()) {
            Ok(ready) => ready,
            Err(why) => {
                finding.notes.push(format!("{}: {why}", workload.name()));
                continue;
            }
        };
        tell(&format!("{cell}: history"));
        let done = known(&ready, &asked.vellum, folder.path())
            .and_then(|known| Ok((measured(asked, cell, &ready, &known, &mut tell)?, known)));
        match done {
            Ok((rounds, known)) => add(&mut finding, workload.name(), &known, &rounds, asked.seed),
            Err(NoneKnown::Run(RunError::Asked)) => {
                finding.notes.push(STOPPED.to_owned());
                break;
            }
            Err(why) => finding.notes.push(format!("{}: {why}", workload.name())),
        }
    }
    finding.goals.extend(sum(&finding.runs));
    finding.notes.push(format!(
        "{} rounds in random order, seed {}; the paging device is a zram disk",
        asked.rounds, asked.seed
    ));
    Ok(finding)
}

/// Runs the workload without a limit, and applies both rules to its history.
fn known(ready: &Ready, vellum: &Path, folder: &Path) -> Result<Known, NoneKnown> {
    let record = folder.join("history");
    let (mut usage, mut watch) = (Usage::new(), None);
    let took = run_in_group(ready, NONE, UNLIMITED_LONGEST, |group| {
        usage.look(|| group.working_set());
        watch.get_or_insert_with(|| {
            let mut command = Command::new(vellum);
            command.args(["watch", "--json", "--period", "200ms"]).args(BUDGET).arg("--cgroup");
            command.arg(group.path());
            let out = File::create(&record)?;
            command.stdin(Stdio::null()).stdout(out).stderr(Stdio::null()).spawn()
        });
    })?;
    let watched = watch.map(|watch| watch.and_then(|mut watch| watch.wait()));
    let ended = |what: String| NoneKnown::Advice(format!("vellum watch {what}"));
    match watched {
        Some(Ok(status)) if !status.success() => return Err(ended(format!("ended with {status}"))),
        Some(Err(why)) => return Err(ended(format!("could not be run: {why}"))),
        _ => {}
    }
    let history = history(&record).map_err(|why| ended(format!("left no history: {why}")))?;
    let rules = Rules { least: Duration::ZERO, margin: MARGIN };
    match decide(&history, None, &rules) {
        (Verdict::Set(recommended), reason) => {
            Ok(Known { recommended, reason, rule: usage.recommended(), took })
        }
        (_, why) => Err(NoneKnown::Advice(why)),
    }
}

/// The largest advice in the output of `vellum watch --json`.
fn history(record: &Path) -> std::io::Result<History> {
    let mut history = History { known_seconds: Some(0.0), ..History::default() };
    for line in BufReader::new(File::open(record)?).lines() {
        let Ok(moment) = serde_json::from_str::<Json>(&line?) else { continue };
        let most = |known: &mut Option<f64>, value: &Json| {
            let bytes = value["bytes"].as_f64();
            *known = known.take().into_iter().chain(bytes).reduce(f64::max);
        };
        most(&mut history.advised, &moment["verdict"]["give"]);
        most(&mut history.by_age, &moment["give_by_age"]);
    }
    Ok(history)
}

fn run_in_group(
    ready: &Ready,
    limit: u64,
    longest: Duration,
    look: impl FnMut(&Group),
) -> Result<Took, RunError> {
    let (command, driver) = ready.commands()?;
    confined::run(Job { name: "vellum-requests", command, driver, limit, longest }, look)
}

fn measured(
    asked: &Asked<'_>,
    cell: &str,
    ready: &Ready,
    known: &Known,
    tell: &mut impl FnMut(&str),
) -> Result<[Vec<Took>; ARMS.len()], RunError> {
    let mut rounds: [Vec<Took>; ARMS.len()] = Default::default();
    let longest = Duration::from_nanos(known.took.wall_ns as u64) * LONGEST;
    let mut executor = |Turn { round, arm, .. }: Turn| -> Result<(), RunError> {
        tell(&format!("{cell}: round {}, {}", round + 1, ARMS[arm]));
        let (limit, longest) =
            if arm == 2 { (known.recommended, longest) } else { (NONE, UNLIMITED_LONGEST) };
        rounds[arm].push(run_in_group(ready, limit, longest, |_| {})?);
        Ok(())
    };
    let mut experiment = Experiment::new(ArmOrder::Random, ARMS.len(), asked.seed);
    match experiment.run(&Stop::rounds(asked.rounds), &mut executor)? {
        Some(_) => Err(RunError::Asked),
        None => Ok(rounds),
    }
}

fn table() -> Table {
    Table::new(
        "Requests, and what a limit there costs",
        &[
            ("workload", "workload"),
            ("peak_mib", "peak,|MiB"),
            ("rule_mib", "P90|+15 %"),
            ("recommended_mib", "Vellum"),
            ("control", "A/A"),
            ("cost", "CPU time, over all"),
            ("faults", "faults"),
            ("cut", "killed|or cut"),
        ],
    )
}

fn add(finding: &mut Finding, name: &str, known: &Known, rounds: &[Vec<Took>; ARMS.len()], seed: u64) {
    let [all, again, limited] = rounds;
    let ratio = |of: &[Took]| cpu_ratio(of, all, seed);
    let cut = limited.iter().filter(|took| took.cut).count();
    let faults = limited.iter().map(|took| took.major_faults as f64).collect::<Vec<_>>();
    finding.table.rows.push(vec![
        Value::text(name),
        Value::Number(known.took.charged as f64 / MIB),
        Value::Number(known.rule as f64 / MIB),
        Value::Number(known.recommended as f64 / MIB),
        Value::ratio(ratio(again)),
        Value::ratio(ratio(limited)),
        Value::of(vellum_measure::median(&faults)),
        Value::Number(cut as f64),
    ]);
    finding.goals.push(Goal::within(
        format!("{name}: CPU time with what is recommended, over all"),
        "x",
        Bound::AtMost(COST_MAX),
        if cut > 0 { None } else { ratio(limited) },
    ));
    for (arm, runs) in rounds.iter().enumerate() {
        finding.runs.extend(runs.iter().enumerate().map(|(round, took)| {
            json!({
                "cell": name, "arm": ARMS[arm], "round": round, "metrics": {
                    "recommended_bytes": known.recommended, "rule_bytes": known.rule, "reason": known.reason, "user_ns": took.user_ns,
                    "system_ns": took.system_ns, "wall_ns": took.wall_ns, "major_faults": took.major_faults, "charged_bytes": took.charged,
                    "relieved": took.relieved, "cut": took.cut,
                },
            })
        }));
    }
}

/// The goal over all workloads that were run.
fn sum(runs: &[Json]) -> Option<Goal> {
    let first = || runs.iter().filter(|run| run["arm"] == ARMS[0] && run["round"] == 0);
    let all = |name: &str| first().filter_map(|run| run["metrics"][name].as_f64()).sum::<f64>();
    let (recommended, rule) = (all("recommended_bytes"), all("rule_bytes"));
    (rule > 0.0).then(|| {
        let ratio = recommended / rule;
        let interval = Interval { estimate: ratio, low: ratio, high: ratio };
        let what = format!("{} workloads: the sum of recommendations, over P90 and 15 %", first().count());
        Goal::within(what, "x", Bound::AtMost(LESS), Some(interval))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_keeps_its_largest_advice_and_the_sum_counts_each_workload_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let lines = [
            json!({"schema": "vellum.watch/1"}),
            json!({"verdict": null, "give_by_age": null}),
            json!({"verdict": {"give": {"bytes": 5}}, "give_by_age": {"bytes": 9}}),
            json!({"verdict": {"give": {"bytes": 7}}, "give_by_age": {"bytes": 8}}),
        ];
        std::fs::write(&file, lines.map(|line| line.to_string() + "\n").concat() + "{\"verdict\"").unwrap();
        let known = history(&file).unwrap();
        assert_eq!((known.advised, known.by_age), (Some(7.0), Some(9.0)));

        let run = |cell: &str, arm: &str, round: u64| json!({"cell": cell, "arm": arm, "round": round, "metrics": {"recommended_bytes": 60, "rule_bytes": 100}});
        let runs = [run("a", "all", 0), run("a", "all", 1), run("a", "all'", 0), run("b", "all", 0)];
        assert!(format!("{:?}", sum(&runs).unwrap()).contains("0.6"));
        assert!(sum(&[]).is_none());
    }

    #[test]
    fn a_killed_run_has_no_figure() {
        let took = |system_ns: f64, cut| Took { user_ns: 1e9, system_ns, cut, ..Took::default() };
        let judged = |limited| {
            let mut finding = Finding::new();
            let all = vec![took(0.0, false); 3];
            add(&mut finding, "x", &Known::default(), &[all.clone(), all, vec![limited; 3]], 1);
            finding.goals[0].verdict.is_met()
        };
        assert!(judged(took(1e7, false)));
        assert!(!judged(took(1e8, false)) && !judged(took(0.0, true)));
    }
}
