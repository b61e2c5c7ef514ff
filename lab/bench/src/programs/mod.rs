//! Section `programs` of the benchmark: whole real programs, under each allocator.
//!
//! ```text
//! program::{PROFILED, OTHERS} ──▶ cells: glibc, glibc', vellum, vellum', mimalloc … ──▶ Campaign ──▶ sheets
//!     ──▶ tables: CPU time and peak memory relative to glibc's, a line a program, and geometric means
//! ```
//!
//! A *cell* is one program. `glibc'` and `vellum'` repeat `glibc` and `vellum`, as controls. The programs
//! work on generated inputs in memory. A missing program is reported with the way to install it. The
//! section runs only if named (`--only programs`, or a cell of it).

pub(crate) mod program;

use crate::suite::{Plan, Section, line, table};
use crate::target::Against;
use crate::timing::Found;
use crate::topics::{Prepared, chooses};
use crate::{Cell, Launch, Missing, Table, Target, Unit, peer};
use program::{OTHERS, PROFILED, Program, Ready};
use std::path::Path;

/// The section's name, with which all its cells begin.
pub const SECTION: &str = "programs";

/// Goal of each row: no slower than glibc, beyond noise.
const ROW_MAX: f64 = 1.0;
/// Goals of the geometric means: CPU time at most 0.92 of glibc's, peak at most 0.95.
const CPU_MAX: f64 = 0.92;
const PEAK_MAX: f64 = 0.95;

fn all() -> impl Iterator<Item = &'static Program> {
    PROFILED.iter().chain(&OTHERS)
}

/// The names of all cells, for `--list`.
#[must_use]
pub fn names() -> Vec<String> {
    all().map(|program| name(program.name)).collect()
}

fn name(program: &str) -> String {
    format!("{SECTION}-{program}")
}

/// Makes the programs' inputs.
///
/// # Errors
/// If they cannot be written. A missing program is no error.
pub fn prepare(plan: &Plan, only: Option<&str>) -> anyhow::Result<Prepared> {
    let folder = program::folder(plan.seed)?;
    let (mut cells, mut missing) = (Vec::new(), Vec::new());
    for program in all().filter(|program| chooses(only, SECTION, &name(program.name))) {
        match program.ready(folder.path()) {
            Some(ready) => cells.push(cell(plan, program, &ready, folder.path())),
            None => missing.push(Missing { name: program.name, cure: program.cure.to_owned() }),
        }
    }
    let tables = tables(&cells);
    let finish = || Ok(folder.close().map(|()| Found::default())?);
    Ok(Prepared { section: Section { name: SECTION, cells, tables }, missing, finish: Box::new(finish) })
}

fn tables(cells: &[Cell]) -> Vec<Table> {
    let over = |times| Target::at_most(times, Against::Arm(peer::GLIBC));
    let lines = |target: Option<Target>| {
        let label = |cell: &Cell| cell.name.trim_start_matches(SECTION).trim_start_matches('-').to_owned();
        cells.iter().map(|cell| line(label(cell), cell, target.clone())).collect()
    };
    let cpu = table("Programs: CPU time", "process_cpu_ns", Unit::Millis, lines(Some(over(ROW_MAX))));
    let peak = table("Programs: peak memory", "process_peak_bytes", Unit::Mebibytes, lines(None));
    vec![Table { means: vec![over(CPU_MAX)], ..cpu }, Table { means: vec![over(PEAK_MAX)], ..peak }]
}

fn cell(plan: &Plan, program: &Program, ready: &Ready, folder: &Path) -> Cell {
    plan.cell_of(&name(program.name), |peer| {
        Some(Launch { preload: peer.library.clone(), ..ready.launch(folder) })
    })
}
