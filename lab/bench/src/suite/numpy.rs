//! Section `numpy`: arrays of numpy, which requests huge pages for each array from 4 MiB up
//! (`MADV_HUGEPAGE`).
//!
//! If an allocator returns such memory to the kernel at each `free`, the next array faults again. The program
//! is a real Python interpreter with Debian's numpy. It reports its own figures, without its start-up.

use super::{MIB, Plan, Section, line, python, table};
use crate::target::{Against, Target};
use crate::{Arm, Cell, Peer, Unit, peer};

/// The section's name, with which all its cells begin.
pub(crate) const NUMPY: &str = "numpy";

/// Goal: CPU time at most 0.95 of glibc's.
const CPU: f64 = 0.95;
/// Goal: minor faults at most 1.1 times those without the advice.
const FAULTS: f64 = 1.1;
/// Vellum's arm in which numpy does not request huge pages.
const UNADVISED: &str = "unadvised";
/// The variable that stops numpy from requesting huge pages.
const ADVICE: &str = "NUMPY_MADVISE_HUGEPAGE";

/// Each array is written, and read by the next one. Prints the loop's CPU time and faults.
const SCRIPT: &str = "
import json, resource, sys
import numpy
count, rounds = int(sys.argv[1]) // 8, int(sys.argv[2])
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_minflt
base = numpy.ones(count)
cpu, faults = used()
for number in range(rounds):
    filled = numpy.full(count, float(number))
    total = base + filled
    doubled = total * 2
    assert doubled[0] == doubled[-1] == 2 * (number + 1)
cpu, faults = (after - before for after, before in zip(used(), (cpu, faults)))
print(json.dumps({'cpu_ns': cpu * 1e9, 'minor_faults': faults}))
";

/// The cells. They run only if named, since they need python3-numpy.
#[must_use]
pub(crate) fn section(plan: &Plan) -> Section {
    let sizes =
        plan.pick(vec![MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB], vec![4 * MIB, 16 * MIB, 64 * MIB]);
    let cells: Vec<Cell> = sizes.iter().map(|bytes| cell(plan, *bytes)).collect();
    let lines = |target: Target| {
        let rows = cells.iter().zip(&sizes);
        rows.map(|(cell, bytes)| line(super::size(*bytes), cell, Some(target.clone()))).collect()
    };
    let tables = vec![
        table(
            "numpy: three arrays a round, each written once: CPU time, user and system",
            "cpu_ns",
            Unit::Millis,
            lines(Target::at_most(CPU, Against::Arm(peer::GLIBC))),
        ),
        table(
            "numpy: the same, minor faults; unadvised: Vellum where numpy does not ask for huge pages",
            "minor_faults",
            Unit::Count,
            lines(Target::at_most(FAULTS, Against::Arm(UNADVISED))),
        ),
    ];
    Section { name: NUMPY, cells, tables }
}

fn cell(plan: &Plan, bytes: usize) -> Cell {
    // The same number of bytes for each size, but at least a few rounds of the largest arrays.
    let all = plan.pick(960 * MIB, 480 * MIB);
    let rounds = (all / bytes).max(6);
    let launch = |peer: &Peer| python(peer, SCRIPT, [bytes.to_string(), rounds.to_string()]);
    let name = format!("{NUMPY}-{}", super::tag(bytes));
    let mut cell = plan.cell_of(&name, |peer| Some(launch(peer)));
    if let Some(mut unadvised) = plan.roster.get(peer::VELLUM).map(launch) {
        unadvised.env.push((ADVICE.into(), "0".into()));
        cell.arms.push(Arm { label: UNADVISED.to_owned(), launch: unadvised });
    }
    cell
}
