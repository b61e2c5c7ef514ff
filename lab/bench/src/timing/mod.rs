//! Section `timing`: checks that `vellum bench` (timing) and `vellum cost` (time and counts of malloc
//! calls by source line) are as exact as documented, beside other tools.
//!
//! The work of two kernels ([`Kernel`]) is known exactly; a second version of each does 1 % more. The tools
//! that time them are compared with this known difference. All repeats of all tools are processes of one
//! campaign in random order, so that no tool gets a quieter minute than others:
//!
//! ```text
//! tools.rs   program, google, hyperfine, vellum   built, linked, or reported as missing
//!    │
//! mod.rs     a cell for each question, an arm for each tool ──▶ Campaign ──▶ sheets ──▶ found.rs: tables
//!    │                                                             │
//! task/      the work of one process ◀─────────────────────────────┘  `vellum-bench work TASK name=value…`
//! ```
//!
//! The section runs only if named (`--only timing`, or a cell of it), since it takes long.

mod found;
mod kernel;
pub(crate) mod task;
mod tools;

pub use found::Found;
pub use kernel::{Kernel, Sizes};
pub use tools::Tool;

use crate::suite::{Plan, Section};
use crate::work::{COMMAND, WORKLOADS};
use crate::{Arm, Cell, Launch};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use vellum_campaign::Missing;
use vellum_campaign::cells::cell;

/// The section's name, with which all its cells begin.
pub const SECTION: &str = "timing";

const VELLUM: &str = "vellum";
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
/// Calls of the allocating kernel under `vellum cost`: 0.1 s of work without it.
const COST_CALLS: u64 = 2000;

/// The cells, for this machine.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let tools = folder(&plan.worker);
    let mut cells = Vec::new();
    for kernel in Kernel::ALL {
        let (name, Sizes { a, b }) = (kernel.name(), kernel.sizes());
        let arm = |label: &str, task: &str, more: &[(&str, u64)]| {
            let word = |name: &str, value: &dyn Display| format!("{name}={value}");
            let mut args = vec![
                COMMAND.to_owned(),
                task.to_owned(),
                word("kernel", &name),
                word("a", &a),
                word("b", &b),
            ];
            args.extend(more.iter().map(|(name, value)| word(name, value)));
            args.push(word("tools", &tools.display()));
            let launch = Launch { reports: true, ..Launch::new(&plan.worker, args) };
            Arm { label: label.to_owned(), launch }
        };
        let mut add =
            |name: &str, arms: Vec<Arm>| cells.push(cell(format!("{SECTION}-{name}"), plan.rounds, arms));
        add(name, vec![arm(VELLUM, "duel", &[("ms", DUEL_MS)]), arm(GOOGLE, GOOGLE, &[])]);
        let control = arm(VELLUM, "control", &[("ms", CONTROL_MS), ("times", CONTROLS)]);
        add(&format!("control-{name}"), vec![control]);
        match kernel {
            Kernel::Cpu => {
                let ours = arm(VELLUM, "process", &[("calls", PROCESS_CALLS), ("ms", PROCESS_MS)]);
                add("process", vec![ours, arm(HYPERFINE, HYPERFINE, &[("calls", PROCESS_CALLS)])]);
            }
            Kernel::Alloc => add("cost", vec![arm(VELLUM, "cost", &[("calls", COST_CALLS)])]),
        }
    }
    Section { name: SECTION, cells, tables: Vec::new() }
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
        let is_it = |name: &str| arm.launch.args.get(1).is_some_and(|task| task == name);
        WORKLOADS.iter().find(|work| is_it(work.name)).map_or(&[][..], |work| work.needs)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tests::plan;

    fn cells() -> Vec<Cell> {
        section(&plan(true)).cells
    }

    #[test]
    fn every_arm_runs_an_existing_workload() {
        for cell in cells() {
            assert!(!cell.arms.is_empty(), "{}", cell.name);
            for arm in &cell.arms {
                let name = arm.launch.args[1].to_str().unwrap();
                assert!(WORKLOADS.iter().any(|work| work.name == name), "{} runs {name}", cell.name);
            }
        }
    }

    #[test]
    fn arms_without_their_tool_are_removed() {
        let (worker, mut cells) = (PathBuf::from("/dev/null/bench"), cells());
        cells.retain(|cell| ["timing-cpu", "timing-process"].contains(&cell.name.as_str()));
        let missing = prepare(&worker, &mut cells);
        assert_eq!(cells.iter().map(|cell| cell.name.as_str()).collect::<Vec<_>>(), ["timing-cpu"]);
        assert!(missing.iter().any(|one| one.name == "program" && one.cure.contains("gcc")), "{missing:?}");
    }
}
