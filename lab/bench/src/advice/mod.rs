//! Section `advice` of the benchmark: checks the memory limits that `vellum run` recommends.
//!
//! ```text
//! Device (zram, swap) ── vellum run --json prog ──▶ the recommended limit
//!                    └── Group (memory cgroup) ── prog: no limit, again (A/A), the limit, two thirds of it,
//!                                                  the rivals' limits (rivals), in random order
//! ```
//!
//! Each program (`program.rs`) is a widely used one. It runs once for a recommendation, then under the
//! limits in the diagram. Rivals' limits are those that other tools would set (`rivals.rs`); A/A shows the
//! noise. A right limit hardly slows the program; two thirds of it clearly do.
//!
//! - On a zram disk, paging costs only CPU time. The cost of a limit is therefore the program's CPU time,
//!   user and system, which other programs on the machine disturb less than wall time.
//! - A run that takes `LONGEST` times its unlimited wall time is stopped; its CPU time until then is a
//!   lower bound.
//! - The section needs root, zram and a memory cgroup. It removes the device and the cgroups at its end,
//!   also after a signal.

mod beside;
pub(crate) mod program;
pub(crate) mod rivals;
mod run;

use crate::confined::{
    Asked, DEVICE_BYTES, FOLDER, LONGEST, NONE, RunError, STOPPED, UNLIMITED_LONGEST, Unmeasured, cpu_ratio,
};
use program::{PROGRAMS, Program};
use rivals::Senpai;
use run::{Setting, Took};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::time::Duration;
use vellum_campaign::confine::Device;
use vellum_experiment::{ArmOrder, Experiment, Stop, Turn};
use vellum_measure::Interval;
use vellum_papers::{Bound, Finding, Goal, Table, Value};
use vellum_process::Interrupt;

/// The section's name.
pub const SECTION: &str = "advice";
/// Name and version of the JSON. A field's meaning never changes; new ones may come.
pub const SCHEMA: &str = "vellum-bench.advice/1";
/// Rounds of a full run.
pub const ROUNDS: usize = 5;
/// Rounds of a quick run.
pub const ROUNDS_QUICK: usize = 2;
/// Bounds of the cost, as ratios of CPU time: under the recommended limit, at most the first; under two
/// thirds of it, at least the second.
const COST_MAX: f64 = 1.05;
const COST_CLEAR_MIN: f64 = 1.1;
const MIB: f64 = (1 << 20) as f64;

const ARMS: [&str; 6] = ["all", "all'", "given", "two thirds", "recommender", "senpai-like"];

/// The names of all cells of the section.
#[must_use]
pub fn names() -> Vec<String> {
    PROGRAMS.iter().map(Program::cell).collect()
}

impl Program {
    fn cell(&self) -> String {
        format!("{SECTION}-{}", self.name)
    }
}

/// The result of `vellum run`: the recommended limit.
#[derive(Debug, Clone)]
struct Advice {
    give: u64,
    slowdown: f64,
    ground: String,
    /// The slowdown predicted for two thirds of the limit.
    less: f64,
    delay_ns: f64,
}

/// Runs the whole section.
///
/// # Errors
/// [`Unmeasured`] without a device or a program to run. A program that fails and a signal that asks to end
/// become notes.
pub fn run(asked: &Asked<'_>, library: &Path, mut tell: impl FnMut(&str)) -> Result<Finding, Unmeasured> {
    let missing = [asked.vellum.as_path(), library].into_iter().find(|path| !path.exists());
    if let Some(path) = missing {
        return Err(Unmeasured::Missing(path.to_owned()));
    }
    let _caught = Interrupt::catch()?;
    let folder = tempfile::Builder::new().prefix("vellum-advice-").tempdir_in(FOLDER)?;
    program::prepare(folder.path(), asked.seed)?;
    let _device = Device::new(DEVICE_BYTES)?;
    let mut finding = Finding {
        tables: vec![table(), beside::table()],
        ..Finding::new(
            SECTION,
            "The memory to give",
            "issue 4, How good",
            "Each program was advised by `vellum run`, and then run on Vellum's memory in a memory cgroup without a limit, with the limit \
                    advised, and with two thirds of it. What a limit costs is CPU time, user and system.",
            Vec::new(),
        )
    };
    let mut delays = Vec::new();
    for program in PROGRAMS {
        let cell = program.cell();
        if !crate::chooses(asked.only, SECTION, &cell) {
            continue;
        }
        let Some(executable) = program.executable(folder.path()) else {
            finding.notes.push(format!("{}: missing; apt-get install {}", program.name, program.package));
            continue;
        };
        let setting = Setting { program, executable, folder: folder.path(), library };
        tell(&format!("{cell}: advice"));
        let advice = match advised(&setting, &asked.vellum) {
            Ok(advice) => advice,
            Err(_) if Interrupt::arrived().is_some() => {
                finding.notes.push(STOPPED.to_owned());
                break;
            }
            Err(why) => {
                finding.notes.push(format!("{}: no advice: {why}", program.name));
                continue;
            }
        };
        delays.push(advice.delay_ns);
        match measured(asked, &setting, &advice, &mut tell) {
            Ok(rounds) => add(&mut finding, &program, &advice, &rounds, asked.seed),
            Err(RunError::Asked) => {
                finding.notes.push(STOPPED.to_owned());
                break;
            }
            Err(error) => finding.notes.push(format!("{}: no figure: {error}", program.name)),
        }
    }
    finding.goals.extend(beside::goal(&finding.runs));
    let microseconds = delays.iter().map(|delay| format!("{:.1}", delay / 1e3));
    finding.notes.push(format!(
        "{} rounds in random order, seed {}; the paging device is a zram disk; S as measured before each advice: {} µs",
        asked.rounds,
        asked.seed,
        microseconds.collect::<Vec<_>>().join(", ")
    ));
    Ok(finding)
}

/// Runs the program under `vellum run` and reads the recommendation in its report.
fn advised(setting: &Setting<'_>, vellum: &Path) -> Result<Advice, String> {
    let file = setting.folder.join("report.json");
    let mut command = setting.command(&vellum.into()).map_err(|error| error.to_string())?;
    command.args(["run", "--quiet", "--json"]).arg(&file).arg("--lib").arg(setting.library).arg("--");
    command.arg(&setting.executable).args(&setting.program.words[1..]);
    let status = command.status().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("vellum run ended with {status}"));
    }
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let report: Json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    of_report(&report).ok_or_else(|| "its report has no working set; it may be too short".to_owned())
}

fn of_report(report: &Json) -> Option<Advice> {
    let set = report.get("working_set")?;
    let verdict = set.get("verdict")?;
    let give = verdict.get("give")?;
    let bytes = give.get("bytes")?.as_u64()?;
    let near =
        |limit: &&Json| limit["bytes"].as_f64().map_or(f64::MAX, |b| (b / bytes as f64 - 2.0 / 3.0).abs());
    let less = verdict.get("less")?.as_array()?.iter().min_by(|a, b| near(a).total_cmp(&near(b)))?;
    Some(Advice {
        give: bytes,
        slowdown: give.get("slowdown")?.as_f64()?,
        ground: verdict.get("ground")?.as_str()?.to_owned(),
        less: less.get("slowdown")?.as_f64()?,
        delay_ns: set.get("delay")?.get("mean_ns")?.as_f64()?,
    })
}

fn measured(
    asked: &Asked<'_>,
    setting: &Setting<'_>,
    advice: &Advice,
    tell: &mut impl FnMut(&str),
) -> Result<[Vec<Took>; ARMS.len()], RunError> {
    let mut rounds: [Vec<Took>; ARMS.len()] = Default::default();
    // This run does not count: it reads the files in, and the host then has backed the memory.
    let first = setting.run(NONE, None, UNLIMITED_LONGEST)?;
    let longest = Duration::from_nanos(first.ran.wall_ns as u64) * LONGEST;
    let mut executor = |Turn { round, arm, .. }: Turn| -> Result<(), RunError> {
        tell(&format!("{}: round {}, {}", setting.program.cell(), round + 1, ARMS[arm]));
        let (limit, longest) = match arm {
            0 | 1 => (NONE, UNLIMITED_LONGEST),
            2 => (advice.give, longest),
            3 => (advice.give / 3 * 2, longest),
            4 => (first.recommended, longest),
            _ => (NONE, longest),
        };
        let senpai = (arm == 5).then(|| Senpai::new(advice.delay_ns));
        rounds[arm].push(setting.run(limit, senpai, longest)?);
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
        "What limits cost",
        &[
            ("program", "program"),
            ("give_mib", "give,|MiB"),
            ("ground", "by"),
            ("foretold_percent", "fore-|told"),
            ("control", "A/A"),
            ("given", "given, over all"),
            ("given_system_percent", "of it|system"),
            ("given_faults", "faults"),
            ("less_foretold_percent", "2/3:|foretold"),
            ("less", "two thirds, over all"),
            ("less_system_percent", "of it|system"),
            ("less_faults", "faults"),
        ],
    )
}

fn add(
    finding: &mut Finding,
    program: &Program,
    advice: &Advice,
    rounds: &[Vec<Took>; ARMS.len()],
    seed: u64,
) {
    let [all, again, given, less, recommended, looped] = rounds;
    let ratio = |of: &[Took]| ratio(of, all, seed);
    let median = |runs: &[Took], of: fn(&Took) -> f64| {
        vellum_measure::median(&runs.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let system = |of: &[Took]| {
        let more = median(of, |took| took.ran.system_ns) - median(all, |took| took.ran.system_ns);
        Value::Percent(more / median(all, |took| took.ran.cpu_ns()) * 100.0)
    };
    let faults = |of: &[Took]| Value::of(Some(median(of, |took| took.ran.major_faults as f64)));
    finding.tables[0].rows.push(vec![
        Value::text(program.name),
        Value::Number(advice.give as f64 / MIB),
        Value::text(advice.ground.as_str()),
        Value::Percent(advice.slowdown * 100.0),
        Value::ratio(ratio(again)),
        Value::ratio(ratio(given)),
        system(given),
        faults(given),
        Value::Percent(advice.less * 100.0),
        Value::ratio(ratio(less)),
        system(less),
        faults(less),
    ]);
    finding.tables[1].rows.push(beside::row(program.name, advice.give, [all, recommended, looped], ratio));
    let cut = |of: &[Took]| of.iter().filter(|took| took.ran.cut).count();
    let told = |name: &str, of: &[Took]| {
        let relieved: u32 = of.iter().map(|took| took.ran.relieved).sum();
        let mut words = Vec::new();
        if cut(of) > 0 {
            words.push(format!("{} of {} runs cut short or killed, so a lower bound", cut(of), of.len()));
        }
        if relieved > 0 {
            words.push(format!(
                "the kernel found nothing to reclaim {relieved} times and was given a little for a moment"
            ));
        }
        (!words.is_empty()).then(|| format!("{}, {name}: {}", program.name, words.join("; ")))
    };
    finding.notes.extend([told("given", given), told("two thirds", less)].into_iter().flatten());
    // A run that was cut short has no valid time.
    let kept = if cut(given) > 0 { None } else { ratio(given) };
    finding.goals.push(Goal::within(
        format!("{}: CPU time with what was advised, over all", program.name),
        "x",
        Bound::AtMost(COST_MAX),
        kept,
    ));
    finding.goals.push(Goal::within(
        format!("{}: CPU time with two thirds of it, over all", program.name),
        "x",
        Bound::AtLeast(COST_CLEAR_MIN),
        ratio(less),
    ));
    for (arm, runs) in rounds.iter().enumerate() {
        finding.runs.extend(runs.iter().enumerate().map(|(round, took)| {
            json!({
                "cell": program.cell(), "arm": ARMS[arm], "round": round, "metrics": {
                    "give_bytes": advice.give, "user_ns": took.ran.user_ns, "system_ns": took.ran.system_ns, "wall_ns": took.ran.wall_ns,
                    "major_faults": took.ran.major_faults, "recommended_bytes": took.recommended, "settled_bytes": took.settled, "charged_bytes": took.ran.charged, "relieved": took.ran.relieved, "cut": took.ran.cut,
                },
            })
        }));
    }
}

fn ratio(of: &[Took], all: &[Took], seed: u64) -> Option<Interval> {
    let ran = |of: &[Took]| of.iter().map(|took| took.ran).collect::<Vec<_>>();
    cpu_ratio(&ran(of), &ran(all), seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confined;

    #[test]
    fn reports_are_parsed_and_may_lack_a_recommendation() {
        let report = json!({ "working_set": {
            "delay": { "mean_ns": 9000.0 },
            "verdict": {
                "give": { "bytes": 9000, "slowdown": 0.01 }, "ground": "curve",
                "less": [{ "bytes": 8100, "slowdown": 0.1 }, { "bytes": 6000, "slowdown": 0.7 }, { "bytes": 4500, "slowdown": 2.0 }],
            },
        }});
        let advice = of_report(&report).unwrap();
        assert_eq!((advice.give, advice.less, advice.delay_ns), (9000, 0.7, 9000.0));
        assert!(of_report(&json!({ "working_set": null })).is_none());
        assert!(of_report(&json!({})).is_none());
    }

    #[test]
    fn a_costly_limit_misses_its_goal_and_a_stopped_run_has_no_figure() {
        let took = |system_ns: f64, cut| {
            let ran = confined::Took { user_ns: 1e9, system_ns, cut, ..confined::Took::default() };
            Took { ran, ..Took::default() }
        };
        let rounds = |given, cut| {
            let all = vec![took(0.0, false); 5];
            let rivals = vec![took(0.0, false); 5];
            [all.clone(), all, vec![took(given, cut); 5], vec![took(9e8, false); 5], rivals.clone(), rivals]
        };
        let advice =
            Advice { give: 1 << 20, slowdown: 0.0, ground: "curve".into(), less: 0.5, delay_ns: 1e4 };
        let judged = |given, cut| {
            let mut finding = Finding {
                tables: vec![table(), beside::table()],
                ..Finding::new(String::new(), "", "", "", Vec::new())
            };
            add(&mut finding, &PROGRAMS[0], &advice, &rounds(given, cut), 1);
            (finding.goals.iter().map(|goal| goal.verdict.is_met()).collect::<Vec<_>>(), finding.runs.len())
        };
        assert_eq!(judged(1e7, false), (vec![true, true], 5 * ARMS.len()));
        assert_eq!(judged(2e8, false).0, [false, true]);
        assert_eq!(judged(1e7, true).0, [false, true]);
    }
}
