//! Section `govern`: the cost of a governor while memory is not short.
//!
//! Each run is two jobs of the same work side by side on one processor, as in [`watch`](super::watch); its
//! figure is the ratio of their CPU times. In column *glibc* neither job is governed, in *vellum* the first
//! one is. Each column has a second arm as its control.

use super::{MIB, Plan, Section, line, table};
use crate::target::{Against, Target, twin};
use crate::{Arm, Cell, Unit, peer};

/// The section's name, with which all its cells begin.
pub const GOVERN: &str = "govern";

/// Bound of the time with a governor, as for watching, which is most of the governor's work.
const OVERHEAD: f64 = 1.01;
/// Bytes of memory and number of touches of each job: some 4 seconds of work.
const JOBS: [(usize, usize); 2] = [(8 * MIB, 40_000_000), (64 * MIB, 30_000_000)];

/// The cells. They run only if named, since they take minutes.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let mut cells = Vec::new();
    let (mut all, mut slowdown, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for (bytes, touches) in JOBS {
        let Some(glibc) = plan.roster.get(peer::GLIBC) else { continue };
        let arm = |label: String, govern: usize| {
            let params = [("bytes", bytes), ("touches", touches), ("govern", govern)];
            Arm { label, launch: plan.launch(glibc, "governed", &params) }
        };
        let arms = vec![
            arm(peer::GLIBC.to_owned(), 0),
            arm(twin(peer::GLIBC), 0),
            arm(peer::VELLUM.to_owned(), 1),
            arm(twin(peer::VELLUM), 1),
        ];
        let name = format!("{GOVERN}-{}", super::tag(bytes));
        let cell = Cell { name, prepare: None, arms, rounds: plan.rounds, together: false };
        let label = format!("{} of memory", super::size(bytes));
        let target = || Some(Target::at_most(OVERHEAD, Against::Arm(peer::GLIBC)));
        all.push(line(label.clone(), &cell, target()));
        slowdown.push(line(label.clone(), &cell, target()));
        own.push(line(label, &cell, None));
        cells.push(cell);
    }
    let tables = vec![
        table(
            "Governing: CPU time of a job and its governor over that of a job beside it, not governed (glibc) and governed (vellum)",
            "ratio",
            Unit::Ratio,
            all,
        ),
        table(
            "Governing: CPU time of the job alone over that of the job beside it",
            "job_ratio",
            Unit::Ratio,
            slowdown,
        ),
        table(
            "Governing: CPU time of the governor for one job, in an hour",
            "governor_hour_ns",
            Unit::Millis,
            own,
        ),
    ];
    Section { name: GOVERN, cells, tables }
}
