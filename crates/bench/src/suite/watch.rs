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
/// What the watch says that it cost, as a part: the same goal.
const SAID: f64 = 0.01;
/// Rounds. A run differs from another by a fraction of one percent, on a machine that is busy by more: so many pairs tell 1 % from nothing.
pub const ROUNDS: usize = 15;
/// The same for `--quick`.
pub const ROUNDS_QUICK: usize = 5;
/// How much memory, and how many touches: some 3, 5 and 12 seconds. The larger a job, the later a look at it can be paid for.
const JOBS: [(usize, usize); 3] = [(8 * MIB, 33_000_000), (64 * MIB, 35_000_000), (256 * MIB, 35_000_000)];

/// The cells. They run only when named: they are about watching, and take minutes.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let mut cells = Vec::new();
    let (mut lines, mut said) = (Vec::new(), Vec::new());
    for (bytes, touches) in JOBS {
        let Some(glibc) = plan.roster.get(peer::GLIBC) else { continue };
        let arm = |label: String, watch: usize| {
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
        let label = format!("{} of memory", super::size(bytes));
        lines.push(line(label.clone(), &cell, Some(target)));
        said.push(line(label, &cell, Some(Target::at_most(SAID, Against::Itself))));
        cells.push(cell);
    }
    let title = "Watching: CPU time of a job and its watcher, alone (glibc) and watched (vellum)";
    let own = "Watching: what the watch itself says that it cost, as a part of the job's CPU time";
    let tables =
        vec![table(title, "all_ns", Unit::Millis, lines), table(own, "said_share", Unit::Ratio, said)];
    Section { name: WATCH, cells, tables }
}

/// Whether `--only` means this section or cells of it.
#[must_use]
pub fn is_named(only: &str) -> bool {
    only.starts_with(WATCH)
}
