//! Section `timing`: checks that `vellum bench` and `vellum cost` are as exact as documented, beside other
//! tools.
//!
//! The instructions of two kernels ([`Kernel`]) are known exactly; a second version of each does 1 % more.
//! The tools that time them are compared with this known difference. All repeats of all tools are
//! processes of one campaign in random order, so that no tool gets a quieter minute than others:
//!
//! ```text
//! tools.rs   program, google, hyperfine, valgrind, vellum   built, linked, or missing with a cure
//!    │
//! mod.rs     a cell for each question, an arm for each tool ──▶ Campaign ──▶ sheets ──▶ found.rs: tables
//!    │                                                             │
//! task/      the work of one process ◀─────────────────────────────┘  `vellum-bench time TASK name=value…`
//! ```
//!
//! The section runs only if named (`--only timing`, or a cell of it), since it takes long.

mod found;
mod kernel;
mod task;
mod tools;

pub use found::Found;
pub use kernel::{Kernel, Sizes};
pub use task::{TASKS, Task, TaskError, run};
pub use tools::Tool;

use crate::suite::{Plan, Section};
use crate::{Arm, Cell, Launch};
use std::path::{Path, PathBuf};
use vellum_campaign::Missing;
use vellum_campaign::cells::cell;
use vellum_timing::clock::ClockKind;

/// The section's name, with which all its cells begin.
pub const SECTION: &str = "timing";
/// The hidden command of the executable that runs a task: `time TASK [name=value]...`.
pub const TIME: &str = "time";

/// Default number of repeats.
pub const REPEATS: usize = 10;
/// Number of repeats with `--quick`.
pub const REPEATS_QUICK: usize = 3;

const VELLUM: &str = "vellum";
/// The arm without a planted disturbance.
const UNDISTURBED: &str = "undisturbed";
/// The peer that runs in one process.
const GOOGLE: &str = "google";
/// The peer that runs whole processes.
const HYPERFINE: &str = "hyperfine";

/// Goal: right sign in 1 s. This is the time of a duel, whose last round may take a little longer.
const DUEL_MS: u64 = 970;
/// The time of a short control run, and the number of control runs in a repeat.
const CONTROL_MS: u64 = 100;
const CONTROLS: u64 = 10;
/// Calls of the kernel in a process, which take a dozen milliseconds, …
const PROCESS_CALLS: u64 = 200;
/// … and the time of a duel of processes: hyperfine needs at least 3 s for each of two commands.
const PROCESS_MS: u64 = 5000;
/// Empty timings in a BASE.
const BASE_COUNT: u64 = 1000;
/// Disturbances: their rates, their length, and the time of observation.
const PLANTED_HZ: [u64; 2] = [250, 97];
const PLANT_US: u64 = 100;
const PLANTED_MS: u64 = 3000;
/// Calls of the allocating kernel under `vellum cost`: 0.1 s of work without it.
const COST_CALLS: u64 = 2000;
/// Threads and forked children under `vellum cost`, and the work of each: little, so that their start
/// counts too.
const FAMILY: [(&str, u64); 3] = [("threads", 8), ("forks", 20), ("pairs", 200_000)];

/// The cells, for this machine.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let maker = Maker { plan, tools: folder(&plan.worker) };
    let mut cells = Vec::new();
    for kernel in Kernel::ALL {
        let Sizes { a, b } = kernel.sizes();
        let both = [("kernel", kernel.name().to_owned()), ("a", a.to_string()), ("b", b.to_string())];
        let with = |more: &[(&'static str, u64)]| {
            let more = more.iter().map(|(name, value)| (*name, value.to_string()));
            both.iter().cloned().chain(more).collect::<Vec<_>>()
        };
        cells.push(maker.cell(
            kernel.name(),
            vec![maker.arm(VELLUM, "duel", &with(&[("ms", DUEL_MS)])), maker.arm(GOOGLE, GOOGLE, &with(&[]))],
        ));
        let control = with(&[("ms", CONTROL_MS), ("times", CONTROLS)]);
        cells.push(maker.cell(&format!("control-{kernel}"), vec![maker.arm(VELLUM, "control", &control)]));
        let counted = maker
            .cell(&format!("instructions-{kernel}"), vec![maker.arm(VELLUM, "instructions", &with(&[]))]);
        cells.push(Cell { rounds: 1, ..counted });
        match kernel {
            Kernel::Cpu => {
                let ours = with(&[("calls", PROCESS_CALLS), ("ms", PROCESS_MS)]);
                let theirs = with(&[("calls", PROCESS_CALLS)]);
                let arms =
                    vec![maker.arm(VELLUM, "process", &ours), maker.arm(HYPERFINE, HYPERFINE, &theirs)];
                cells.push(maker.cell("process", arms));
                let words = with(&[("plant_us", PLANT_US), ("ms", PLANTED_MS)]);
                let mut arms = vec![maker.arm(UNDISTURBED, UNDISTURBED, &words)];
                arms.extend(PLANTED_HZ.map(|hz| {
                    let words = with(&[("plant_us", PLANT_US), ("ms", PLANTED_MS), ("hz", hz)]);
                    maker.arm(&planted(hz), "planted", &words)
                }));
                cells.push(maker.cell("planted", arms));
            }
            Kernel::Alloc => {
                cells.push(
                    maker.cell("cost", vec![maker.arm(VELLUM, "cost", &with(&[("calls", COST_CALLS)]))]),
                );
                let family = FAMILY.map(|(name, value)| (name, value.to_string()));
                cells.push(maker.cell("cost-family", vec![maker.arm(VELLUM, "family", &family)]));
            }
        }
    }
    let bases = clocks().map(|clock| {
        maker.arm(clock.name(), "base", &[("clock", clock.name().to_owned()), ("n", BASE_COUNT.to_string())])
    });
    cells.push(maker.cell("base", bases.collect()));
    Section { name: SECTION, cells, tables: Vec::new() }
}

/// Every clock that reads a stamp without a system call.
fn clocks() -> impl Iterator<Item = ClockKind> {
    ClockKind::ALL.into_iter().filter(|kind| *kind != ClockKind::ThreadCpu)
}

/// The arm in which a timer disturbs `hz` times a second.
fn planted(hz: u64) -> String {
    format!("{hz}hz")
}

/// The folder of the tools, beside the worker.
fn folder(worker: &Path) -> PathBuf {
    worker.with_file_name("timing-tools")
}

/// Makes or finds the tools of the cells. Arms without their tool are removed from their cell, and the
/// missing tools are returned.
pub fn prepare(worker: &Path, cells: &mut Vec<Cell>) -> Vec<Missing> {
    let folder = folder(worker);
    let needs = |arm: &Arm| {
        arm.launch.args.get(1).and_then(|name| task::find(name.to_str()?)).map_or(&[][..], |task| task.needs)
    };
    let mut tools: Vec<Tool> = Vec::new();
    for tool in cells.iter().flat_map(|cell| &cell.arms).flat_map(needs) {
        if !tools.contains(tool) {
            tools.push(*tool);
        }
    }
    let failed: Vec<(Tool, Missing)> =
        tools.into_iter().filter_map(|tool| Some((tool, tool.prepare(worker, &folder).err()?))).collect();
    let is_here =
        |arm: &Arm| !needs(arm).iter().any(|tool| failed.iter().any(|(missing, _)| missing == tool));
    cells.iter_mut().for_each(|cell| cell.arms.retain(is_here));
    cells.retain(|cell| !cell.arms.is_empty());
    failed.into_iter().map(|(_, missing)| missing).collect()
}

struct Maker<'a> {
    plan: &'a Plan,
    tools: PathBuf,
}

impl Maker<'_> {
    fn cell(&self, name: &str, arms: Vec<Arm>) -> Cell {
        let name = format!("{SECTION}-{name}");
        cell(name, self.plan.rounds, arms)
    }

    fn arm(&self, label: &str, task: &str, words: &[(&'static str, String)]) -> Arm {
        let tools = format!("tools={}", self.tools.display());
        let words = words.iter().map(|(name, value)| format!("{name}={value}")).chain([tools]);
        let args = [TIME.to_owned(), task.to_owned()].into_iter().chain(words);
        let launch = Launch {
            program: self.plan.worker.clone(),
            args: args.map(Into::into).collect(),
            env: Vec::new(),
            folder: None,
            preload: None,
            reports: true,
        };
        Arm { label: label.to_owned(), launch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;

    fn cells() -> Vec<Cell> {
        let plan = Plan {
            worker: "/nonexistent/bench".into(),
            roster: Roster::default(),
            quick: true,
            rounds: 3,
            seed: 1,
            threads: 2,
            mimalloc_bench: None,
        };
        section(&plan).cells
    }

    #[test]
    fn every_arm_runs_an_existing_task_and_cell_names_begin_with_the_section() {
        let cells = cells();
        for cell in &cells {
            assert!(crate::names_section(&cell.name, SECTION) && !cell.arms.is_empty(), "{}", cell.name);
            for arm in &cell.arms {
                let name = arm.launch.args[1].to_str().unwrap();
                assert!(task::find(name).is_some(), "{} runs {name}", cell.name);
            }
        }
        let names: std::collections::BTreeSet<_> = cells.iter().map(|cell| &cell.name).collect();
        assert_eq!(names.len(), cells.len());
    }

    #[test]
    fn arms_without_their_tool_are_removed() {
        let (worker, mut cells) = (PathBuf::from("/dev/null/bench"), cells());
        cells.retain(|cell| ["timing-base", "timing-process"].contains(&cell.name.as_str()));
        let missing = prepare(&worker, &mut cells);
        assert_eq!(cells.iter().map(|cell| cell.name.as_str()).collect::<Vec<_>>(), ["timing-base"]);
        assert!(missing.iter().any(|one| one.name == "program" && one.cure.contains("gcc")), "{missing:?}");
    }
}
