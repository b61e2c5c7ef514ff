//! Section `hardened`: Vellum with `VELLUM_HARDEN=1`, beside allocators that are made for hardening.
//!
//! The peers are mimalloc's secure build (the same source as mimalloc 3) and hardened_malloc with its
//! default settings (built by `lab/bench/hardened-malloc`). The section has no target, since the value of
//! hardening depends on the user.

use super::small::{Program, SINGLE};
use super::{Plan, Section, line, table};
use crate::{Arm, Cell, Unit, peer};

/// The section's name, with which all its cells begin.
pub(crate) const HARDENED: &str = "hardened";
const MODE: &str = "vellum-hardened";
/// The variable that switches the hardened mode on.
const VARIABLE: &str = "VELLUM_HARDEN";

/// The single-threaded programs of the section `small`. They run only if named.
#[must_use]
pub(crate) fn section(plan: &Plan) -> Section {
    let cells = SINGLE.iter().map(|program| cell(plan, program));
    let cells: Vec<Cell> = cells.filter(|cell| !cell.arms.is_empty()).collect();
    let lines = || cells.iter().map(|cell| line(cell.name.clone(), cell, None)).collect();
    let title = |figure: &str| format!("Hardened: small programs on one thread, {figure}");
    let tables = vec![
        table(&title("CPU time, user and system"), "process_cpu_ns", Unit::Millis, lines()),
        table(&title("peak resident memory"), "process_peak_bytes", Unit::Mebibytes, lines()),
    ];
    Section { name: HARDENED, cells, tables }
}

fn cell(plan: &Plan, program: &Program) -> Cell {
    let name = format!("{HARDENED}-{}", program.cell);
    let mut cell = plan.cell_of(&name, |peer| {
        let shown = [peer::GLIBC, peer::VELLUM, peer::MIMALLOC_SECURE, peer::HARDENED_MALLOC];
        shown.contains(&peer.name).then(|| program.launch(plan, peer)).flatten()
    });
    let hardened = cell.arms.iter().find(|arm| arm.label == peer::VELLUM).map(|arm| arm.launch.clone());
    if let Some(mut launch) = hardened {
        launch.env.push((VARIABLE.into(), "1".into()));
        cell.arms.push(Arm { label: MODE.to_owned(), launch });
    }
    cell
}
