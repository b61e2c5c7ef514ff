//! Section `heap` of the benchmark: compares the cost and the findings of `vellum heap`, the heap
//! profiler, with those of heaptrack and memray.
//!
//! ```text
//! programs ──▶ cells: glibc, vellum, vellum', every 512 KiB, every 32 KiB, every block,
//!              heaptrack, memray
//!    ──▶ Campaign ──▶ sheets ──▶ tables: CPU time and peak memory, relative to runs without a profile
//! faults.c, faults.py ──▶ each tool ──▶ tools: does it name the faulty line, how long does it take to open
//! programs ──▶ vellum heap, once exactly and once by samples ──▶ exact: the error of each line's bytes
//!    ──▶ callgrind ──▶ instructions: the cost without disturbance by other programs
//! ```
//!
//! A *cell* is one real program (`programs/program.rs`); `vellum'` repeats `vellum`, as a control.
//! `every N` is the sampling interval. A profiled program gets the profile's file by its environment, as
//! under `vellum heap`. Its CPU time therefore excludes the program that reads the profile afterwards. For
//! heaptrack and memray the CPU time is that of their commands, which start the program. heaptrack's later
//! processing is left out (`--raw`) and counts as part of opening the result. The section runs only if
//! named (`--only heap`, or a cell of it).

mod exact;
mod instructions;
mod tools;

use crate::programs::program::{self, PROFILED, Ready};
use crate::suite::{Plan, Section, line, table};
use crate::target::{Against, twin};
use crate::timing::Found;
use crate::topics::{Prepared, chooses};
use crate::{Arm, Cell, Launch, Missing, Target, Unit, peer};
use std::io;
use std::path::Path;
use vellum_campaign::cells::cell;
use vellum_cost::HeldFile;
use vellum_wire::held::HELD_ENV;

/// The section's name, with which all its cells begin.
pub const SECTION: &str = "heap";
/// The parts of the section that run no cell.
const FAULTS: &str = "faults";
const EXACT: &str = "exact";
const INSTRUCTIONS: &str = "instructions";

/// The arms with a profile: their names and the bytes between samples.
const INTERVALS: [(&str, u64); 2] = [("512 KiB", 512 << 10), ("32 KiB", 32 << 10)];
/// Goals for their CPU time: at 512 KiB at most 1 % more, at 32 KiB at most 5 % more, over ten programs.
const COST_MAX: [f64; 2] = [1.01, 1.05];
/// The arm that records every block, and the bound of its CPU time over heaptrack's, which does the same.
const EVERY: (&str, u64) = ("every block", 1);
const EVERY_MAX: f64 = 2.0;
/// Goal: peak resident memory at most 1 MiB higher.
const PEAK_PLUS: f64 = 1048576.0;
const HEAPTRACK: &str = "heaptrack";
const MEMRAY: &str = "memray";

/// The names of all cells, for `--list`.
#[must_use]
pub fn names() -> Vec<String> {
    PROFILED.iter().map(|program| program.name).chain([FAULTS, EXACT, INSTRUCTIONS]).map(name).collect()
}

fn name(cell: &str) -> String {
    format!("{SECTION}-{cell}")
}

/// Makes the programs' inputs. The command `vellum` lies beside this executable.
///
/// # Errors
/// If there is nothing to run. A missing program or tool is no error.
pub fn prepare(plan: &Plan, only: Option<&str>) -> anyhow::Result<Prepared> {
    let (vellum, library) = (plan.worker.with_file_name("vellum"), plan.library.clone());
    if let Some(absent) = [&vellum, &library].into_iter().find(|file| !file.exists()) {
        anyhow::bail!("{} is not there; build everything with ./build", absent.display());
    }
    // The files are in memory, like those of `vellum heap`.
    let folder = program::folder(plan.seed)?;
    let wanted = |cell: &str| chooses(only, SECTION, &name(cell));
    let mut missing = Vec::new();
    if tools::heaptrack().is_none() {
        missing.push(Missing { name: HEAPTRACK, cure: "apt-get install heaptrack".to_owned() });
    }
    if !tools::has_memray() {
        missing.push(Missing {
            name: MEMRAY,
            cure: "a python3 first in the PATH that has it (pip install memray)".to_owned(),
        });
    }
    if !instructions::is_possible() {
        missing.push(Missing { name: "valgrind", cure: "apt-get install valgrind".to_owned() });
    }
    let (mut held, mut cells, mut ready) = (Vec::new(), Vec::new(), Vec::new());
    let besides: Vec<_> = [FAULTS, EXACT, INSTRUCTIONS].into_iter().filter(|cell| wanted(cell)).collect();
    for program in PROFILED.iter().filter(|program| wanted(program.name) || !besides.is_empty()) {
        match program.ready(folder.path()) {
            Some(program) => ready.push(program),
            None => missing.push(Missing { name: program.name, cure: program.cure.to_owned() }),
        }
    }
    for program in ready.iter().filter(|ready| wanted(ready.program.name)) {
        let arms = arms(program, &library, folder.path(), &mut held)?;
        cells.push(cell(name(program.program.name), plan.rounds, arms));
    }
    let tables = shown(&cells);
    let section = Section { name: SECTION, cells, tables };
    let finish = move || {
        let (folder, mut tables, mut goals) = (folder.path(), Vec::new(), Vec::new());
        for cell in besides {
            match cell {
                FAULTS => tables.push(tools::faults(folder, &vellum, &library, &mut goals)?),
                EXACT => tables.push(exact::table(&ready, folder, &vellum, &library, &mut goals)),
                _ => tables.extend(instructions::table(&ready, folder, &library, &mut goals)),
            }
        }
        // Profiled processes have written into these files until now.
        drop(held);
        Ok(Found::besides(&tables, goals))
    };
    Ok(Prepared { section, missing, finish: Box::new(finish) })
}

fn shown(cells: &[Cell]) -> Vec<crate::Table> {
    let without = || Against::Arm(peer::VELLUM);
    let mut cpu = table(
        "Profiles: CPU time",
        "process_cpu_ns",
        Unit::Millis,
        cells.iter().map(|cell| line(cell.name.clone(), cell, None)).collect(),
    );
    let means = INTERVALS.into_iter().zip(COST_MAX);
    cpu.means = means.map(|((label, _), most)| Target::at_most(most, without()).of(label)).collect();
    cpu.means.push(Target::at_most(EVERY_MAX, Against::Arm(HEAPTRACK)).of(EVERY.0));
    let peak = |label| Target::at_most(1.0, without()).or_within(PEAK_PLUS).of(label);
    let lines = cells.iter().flat_map(|cell| {
        INTERVALS.map(|interval| line(format!("{}, {}", cell.name, interval.0), cell, Some(peak(interval.0))))
    });
    let lines = lines.collect();
    vec![cpu, table("Profiles: peak memory", "process_peak_bytes", Unit::Mebibytes, lines)]
}

fn arms(ready: &Ready, library: &Path, folder: &Path, held: &mut Vec<HeldFile>) -> io::Result<Vec<Arm>> {
    let plain = ready.launch(folder);
    let arm = |label: &str, launch: Launch| Arm { label: label.to_owned(), launch };
    let on_vellum = Launch { preload: Some(library.to_path_buf()), ..plain.clone() };
    let mut arms = vec![
        arm(peer::GLIBC, plain.clone()),
        arm(peer::VELLUM, on_vellum.clone()),
        arm(&twin(peer::VELLUM), on_vellum.clone()),
    ];
    for (label, interval) in INTERVALS.into_iter().chain([EVERY]) {
        let place = folder.join(format!("held-{}-{interval}", ready.program.name));
        std::fs::create_dir(&place)?;
        let file = HeldFile::create(&place, interval)?;
        let mut launch = on_vellum.clone();
        launch.env.push((HELD_ENV.into(), file.path().into()));
        held.push(file);
        arms.push(arm(label, launch));
    }
    if let Some(heaptrack) = tools::heaptrack() {
        arms.push(arm(HEAPTRACK, tools::under_heaptrack(&heaptrack, &plain, &folder.join("heaptrack.raw"))));
    }
    if ready.program.is_python && tools::has_memray() {
        arms.push(arm(MEMRAY, tools::under_memray(&plain, &folder.join("memray.bin"))));
    }
    Ok(arms)
}
