//! Section `programs`: whole programs that people run, under each allocator.
//!
//! ```text
//! program::{PROFILED, OTHERS} ──▶ cells: glibc, glibc', vellum, vellum', mimalloc … ──▶ Campaign ──▶ sheets
//!     ──▶ found: CPU time and peak memory over glibc's, a row a program, and the geometric means
//! ```
//!
//! The programs are on inputs made anew, in memory. One that is not here is named with its cure. The section
//! runs when it is named (`--only programs`, or a cell of it).

mod found;
pub(crate) mod program;

pub use found::{found, markdown};

use crate::suite::{Plan, Section};
use crate::target::twin;
use crate::{Arm, Cell, Launch, Missing, peer};
use program::{OTHERS, PROFILED, Program, Ready};
use std::io;
use std::path::Path;

/// The section's name, with which all its cells begin.
pub const SECTION: &str = "programs";
/// Rounds when none are asked for.
pub const ROUNDS: usize = 9;
/// The same for `--quick`.
pub const ROUNDS_QUICK: usize = 2;

/// The section, and what is not here.
#[derive(Debug)]
pub struct Prepared {
    /// What is run.
    pub section: Section,
    /// Programs that are missing.
    pub missing: Vec<Missing>,
    /// What they work on.
    _folder: tempfile::TempDir,
}

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
/// If they cannot be written. A program that is missing is no error.
pub fn prepare(plan: &Plan, only: Option<&str>) -> io::Result<Prepared> {
    let place = [Path::new("/dev/shm").to_path_buf(), std::env::temp_dir()];
    let place = place.into_iter().find(|place| place.is_dir()).unwrap_or_default();
    let folder = tempfile::Builder::new().prefix("vellum-bench-programs-").tempdir_in(place)?;
    program::prepare(folder.path(), plan.seed)?;
    let (mut cells, mut missing) = (Vec::new(), plan.roster.missing.clone());
    for program in all().filter(|program| crate::chooses(only, SECTION, &name(program.name))) {
        match program.ready(folder.path()) {
            Some(ready) => cells.push(cell(plan, program, &ready, folder.path())),
            None => missing.push(Missing { name: program.name, cure: program.cure.to_owned() }),
        }
    }
    Ok(Prepared { section: Section { name: SECTION, cells, tables: Vec::new() }, missing, _folder: folder })
}

fn cell(plan: &Plan, program: &Program, ready: &Ready, folder: &Path) -> Cell {
    let mut arms = Vec::new();
    for peer in &plan.roster.peers {
        let launch = Launch { preload: peer.library.clone(), ..ready.launch(folder) };
        if [peer::GLIBC, peer::VELLUM].contains(&peer.name) {
            arms.push(Arm { label: twin(peer.name), launch: launch.clone() });
        }
        arms.push(Arm { label: peer.name.to_owned(), launch });
    }
    Cell { name: name(program.name), prepare: None, arms, rounds: plan.rounds, together: false }
}
