//! What hardening costs: Vellum with `VELLUM_HARDEN=1` beside the allocators made for that.
//!
//! The peers are mimalloc's secure build (the same source as mimalloc 3) and hardened_malloc with its default
//! settings (`crates/bench/hardened-malloc` makes it). No target: the figure is stated, and the reader
//! decides.

use super::{Plan, Section, line, table};
use crate::target::twin;
use crate::{Arm, Cell, Peer, Unit, peer};

/// The section's name, with which all its cells begin.
pub const HARDENED: &str = "hardened";
/// The arm of Vellum in its hardened mode.
const MODE: &str = "vellum-hardened";
/// The variable that switches it on.
const VARIABLE: &str = "VELLUM_HARDEN";

/// Programs of the section `small`, on one thread.
const PROGRAMS: [&str; 7] = ["cfrac", "espresso", "alloc-test", "sh6", "redis", "lua", "python"];

/// The cells, with `peers` beside glibc and Vellum. They run only when named.
#[must_use]
pub fn section(plan: &Plan, peers: &[Peer]) -> Section {
    let cells: Vec<Cell> = PROGRAMS.iter().map(|program| cell(plan, peers, program)).collect();
    let lines = || cells.iter().zip(PROGRAMS).map(|(cell, program)| line(program, cell, None)).collect();
    let title = |figure: &str| format!("Hardened: small programs on one thread, {figure}");
    let tables = vec![
        table(&title("CPU time, user and system"), "cpu_ns", Unit::Millis, lines()),
        table(&title("peak resident memory"), "peak_bytes", Unit::Mebibytes, lines()),
    ];
    Section { name: HARDENED, cells, tables }
}

fn cell(plan: &Plan, peers: &[Peer], program: &str) -> Cell {
    let params = [("threads", 1), ("permille", plan.pick(1000, 70))];
    let mut arms = Vec::new();
    let usual = [peer::GLIBC, peer::VELLUM].into_iter().filter_map(|name| plan.roster.get(name));
    for peer in usual.chain(peers) {
        let launch = plan.launch(peer, program, &params);
        if [peer::GLIBC, peer::VELLUM].contains(&peer.name) {
            arms.push(Arm { label: twin(peer.name), launch: launch.clone() });
        }
        if peer.name == peer::VELLUM {
            let mut hardened = launch.clone();
            hardened.env.push((VARIABLE.into(), "1".into()));
            arms.push(Arm { label: MODE.to_owned(), launch: hardened });
        }
        arms.push(Arm { label: peer.name.to_owned(), launch });
    }
    let name = format!("{HARDENED}-{program}");
    Cell { name, prepare: None, arms, rounds: plan.rounds, together: false }
}
