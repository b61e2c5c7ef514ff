//! Section `lent`: a program that allocates after a pause, in a virtual machine that reports free pages to
//! its host.
//!
//! With free page reporting, the host takes back pieces of 2 MiB that have been free for two seconds.
//! After the pause, first touches of huge pages are expensive and those of base pages are not. Without a
//! pause both are cheap. An allocator that requests huge pages loses with a pause and gains without one.

use super::{Plan, Section, line, python, table};
use crate::target::{Against, Target};
use crate::{Arm, Cell, Peer, Unit, peer};

/// The section's name, with which all its cells begin.
pub(crate) const LENT: &str = "lent";

/// Goal: no row slower than glibc, in any state of the machine's memory.
const CPU: f64 = 1.02;
/// The variable that sets Vellum's policy for huge pages.
const HUGE: &str = "VELLUM_HUGE";
/// Seconds before the program begins: without and with time to return memory to the host.
const PAUSES: [u32; 2] = [0, 5];

/// Python tables that grow to hundreds of MiB and are freed.
const SCRIPT: &str = "
import json, resource, sys, time
time.sleep(float(sys.argv[1]))
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_minflt
cpu, faults = used()
for turn in range(3):
    rows = {row: (str(row), row * 0.5) for row in range(int(sys.argv[2]) * (turn + 1))}
    names = sorted(name for name, _ in rows.values())
    assert len(' '.join(names)) > len(names)
    del rows, names
cpu, faults = (after - before for after, before in zip(used(), (cpu, faults)))
print(json.dumps({'cpu_ns': cpu * 1e9, 'minor_faults': faults}))
";

/// The cells. They run only if named, since most of their time is waiting.
#[must_use]
pub(crate) fn section(plan: &Plan) -> Section {
    let rows = plan.pick(400_000, 200_000);
    let cells = PAUSES.map(|pause| cell(plan, pause, rows));
    let lines = |target: Option<Target>| {
        let rows = cells.iter().zip(PAUSES);
        rows.map(|(cell, pause)| line(format!("{pause} s before"), cell, target.clone())).collect()
    };
    let glibc = Target::at_most(CPU, Against::Arm(peer::GLIBC));
    let cpu =
        "lent: tables in Python: CPU time, user and system; never, always: Vellum with that for VELLUM_HUGE";
    let tables = vec![
        table(cpu, "cpu_ns", Unit::Millis, lines(Some(glibc))),
        table("lent: the same, minor faults", "minor_faults", Unit::Count, lines(None)),
    ];
    Section { name: LENT, cells: cells.into(), tables }
}

fn cell(plan: &Plan, pause: u32, rows: usize) -> Cell {
    let launch = |peer: &Peer| python(peer, SCRIPT, [pause.to_string(), rows.to_string()]);
    let mut cell = plan.cell_of(&format!("{LENT}-{pause}s"), |peer| Some(launch(peer)));
    for policy in ["never", "always"] {
        if let Some(mut launch) = plan.roster.get(peer::VELLUM).map(launch) {
            launch.env.push((HUGE.into(), policy.into()));
            cell.arms.push(Arm { label: policy.to_owned(), launch });
        }
    }
    cell
}
