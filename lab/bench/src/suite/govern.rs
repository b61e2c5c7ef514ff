//! Section `govern`: the cost of `vellum govern`, which divides memory among jobs, while memory is not short.
//!
//! Each run is two jobs of the same work side by side on one processor, as in [`watch`](super::watch); its
//! figure is the ratio of their CPU times. No allocators are compared: in column *glibc* neither job is
//! governed, in *vellum* the first job is. Each column has a second arm as its control.

use super::{MIB, Plan, Section, jobs_beside, line, table};
use crate::target::{Against, Target};
use crate::{Unit, peer};

/// The section's name, with which all its cells begin.
pub(crate) const GOVERN: &str = "govern";

/// Bound of the time with a governor, as for watching, which is most of the governor's work.
const OVERHEAD: f64 = 1.01;
/// Bytes of memory and number of touches of each job: some 4 seconds of work.
const JOBS: [(usize, usize); 2] = [(8 * MIB, 40_000_000), (64 * MIB, 30_000_000)];

/// The cells. They run only if named, since they take minutes.
#[must_use]
pub(crate) fn section(plan: &Plan) -> Section {
    let cells = jobs_beside(plan, GOVERN, "governed", "govern", &JOBS);
    let of = |title: &str, metric, unit, target: Option<Target>| {
        let lines = cells.iter().map(|(label, cell)| line(label.clone(), cell, target.clone()));
        table(&format!("Governing: CPU time of {title}"), metric, unit, lines.collect())
    };
    let glibc = Target::at_most(OVERHEAD, Against::Arm(peer::GLIBC));
    let tables = vec![
        of(
            "a job and its governor over that of a job beside it, not governed (glibc) and governed (vellum)",
            "ratio",
            Unit::Ratio,
            Some(glibc.clone()),
        ),
        of("the job alone over that of the job beside it", "job_ratio", Unit::Ratio, Some(glibc)),
        of("the governor for one job, in an hour", "governor_hour_ns", Unit::Millis, None),
    ];
    Section { name: GOVERN, cells: cells.into_iter().map(|(_, cell)| cell).collect(), tables }
}
