//! What watching a working set costs: the same work, watched and not.
//!
//! No allocator is compared here, so the columns keep their names and mean something else: *glibc* is the job alone, *vellum* the
//! same job under a watch, each with its second arm as the control.

use super::{MIB, Plan, Section, line, table};
use crate::target::{Against, Target, twin};
use crate::{Arm, Cell, Unit, peer};

/// The section's name, with which all its cells begin.
pub const WATCH: &str = "watch";

/// "under 1 % of the job's CPU at default settings".
const OVERHEAD: f64 = 1.01;
/// Touches of a run: ten to twenty seconds.
const TOUCHES: usize = 1_000_000_000;
/// The same for `--quick`.
const TOUCHES_QUICK: usize = 100_000_000;

/// The cells. They run only when named: they are about watching, and take minutes.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let mut cells = Vec::new();
    let mut lines = Vec::new();
    for bytes in [8 * MIB, 64 * MIB, 256 * MIB] {
        let Some(glibc) = plan.roster.get(peer::GLIBC) else { continue };
        let arm = |label: String, watch: usize| {
            let touches = plan.pick(TOUCHES, TOUCHES_QUICK);
            let params = [("bytes", bytes), ("touches", touches), ("watch", watch)];
            Arm { label, launch: plan.launch(glibc, "watched", &params) }
        };
        let arms = vec![
            arm(peer::GLIBC.to_owned(), 0),
            arm(twin(peer::GLIBC), 0),
            arm(peer::VELLUM.to_owned(), 1),
            arm(twin(peer::VELLUM), 1),
        ];
        let name = format!("{WATCH}-{}", super::tag(bytes));
        let cell = Cell { name, prepare: None, arms, rounds: plan.rounds, together: false };
        let target = Target::at_most(OVERHEAD, Against::Arm(peer::GLIBC));
        lines.push(line(format!("{} of memory", super::size(bytes)), &cell, Some(target)));
        cells.push(cell);
    }
    let title = "Watching: CPU time of a job and its watcher, alone (glibc) and watched (vellum)";
    let tables = vec![table(title, "all_ns", Unit::Millis, lines)];
    Section { name: WATCH, cells, tables }
}

/// Whether `--only` means this section or cells of it.
#[must_use]
pub fn is_named(only: &str) -> bool {
    only.starts_with(WATCH)
}
