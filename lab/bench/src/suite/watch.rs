//! Section `watch`: the cost of watching a working set.
//!
//! Each run is two jobs of the same work side by side, and its figure is the ratio of their CPU times. No
//! allocators are compared, so the columns have another meaning: in *glibc* neither job is watched, in
//! *vellum* the first job is. Each column has a second arm as its control.

use super::{MIB, Plan, Section, jobs_beside, line, table};
use crate::target::{Against, Target};
use crate::{Unit, peer};

/// The section's name, with which all its cells begin.
pub(crate) const WATCH: &str = "watch";

/// Goal: under 1 % of the job's CPU time at default settings.
const OVERHEAD: f64 = 1.01;
/// Goal for the cost that the watch itself reports, as a fraction.
const SAID: f64 = 0.01;
/// Bytes of memory and number of touches of each job: some 2, 3 and 12 seconds of work. The larger a job,
/// the longer it runs until the budget allows a sample of its pages.
const JOBS: [(usize, usize); 3] = [(8 * MIB, 20_000_000), (64 * MIB, 20_000_000), (256 * MIB, 50_000_000)];

/// The cells. They run only if named, since they take minutes.
#[must_use]
pub(crate) fn section(plan: &Plan) -> Section {
    let cells = jobs_beside(plan, WATCH, "watched", "watch", &JOBS);
    let lines = |target: Target| {
        cells.iter().map(|(label, cell)| line(label.clone(), cell, Some(target.clone()))).collect()
    };
    let glibc = Target::at_most(OVERHEAD, Against::Arm(peer::GLIBC));
    let itself = Target::at_most(SAID, Against::Itself);
    let title = "Watching: CPU time of a job and its watcher over that of a job beside it, unwatched (glibc) and watched (vellum)";
    let own = "Watching: what the watch itself says that it cost, as a part of the job's CPU time";
    let tables = vec![
        table(title, "ratio", Unit::Ratio, lines(glibc)),
        table(own, "said_share", Unit::Ratio, lines(itself)),
    ];
    Section { name: WATCH, cells: cells.into_iter().map(|(_, cell)| cell).collect(), tables }
}
