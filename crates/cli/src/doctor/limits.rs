//! Rows of `vellum doctor`: limits on memory, and ways to reclaim it (cgroups, swap, paging out).

use super::row::{Row, Section, State};
use vellum_kernel::Version;
use vellum_process::attempt_group;
use vellum_report::units::bytes;
use vellum_sys::limits::{Limits, SCRATCH};

/// The name of the temporary group, followed by this process's id.
const GROUP: &str = "vellum-doctor";

pub(super) fn rows() -> Vec<Row> {
    let limits = Limits::discover(&mut [0; SCRATCH]);
    vec![limit(&limits), group(), swap(&limits), page_out()]
}

fn limit(limits: &Limits) -> Row {
    let row = |what: String| Row::works(Section::Limits, "memory-limit", what);
    let version = match limits.versions() {
        [false, false] => {
            return row("limits of control groups are heeded".to_owned()).missing(
                "only the machine's memory counts: a process may be killed by its limit",
                "/proc/self/cgroup and /proc/self/mountinfo name no memory group",
                "mount /sys/fs/cgroup in the container (read-only will do)",
            );
        }
        [true, false] => "version 1",
        [false, true] => "version 2",
        [true, true] => "versions 1 and 2",
    };
    let there = limits.available(0);
    let limit = match there.limit {
        u64::MAX => "no limit".to_owned(),
        limit => format!("limit {}", bytes(limit)),
    };
    row(format!("control groups, {version}: {limit}, {} left", bytes(there.bytes)))
}

fn group() -> Row {
    let row = |what: String| Row::works(Section::Limits, "groups", what);
    match attempt_group(GROUP) {
        Ok(version) => {
            let number = if version == Version::V1 { 1 } else { 2 };
            row(format!("a memory group of version {number} can be made"))
        }
        Err(error) => row("jobs get groups of their own".to_owned()).absent(
            State::FallsBack,
            "jobs are followed and stopped process by process; papers that limit memory do not run",
            &error.to_string(),
        ),
    }
}

fn swap(limits: &Limits) -> Row {
    let free = limits.available(u64::MAX).swap;
    let row = Row::works(Section::Limits, "swap", format!("{} may be paged out", bytes(free)));
    if free > 0 {
        return row;
    }
    Row { what: "memory that is written can be paged out".to_owned(), ..row }.falls_back(
        "govern advises and suspends; the delay of a fault is that of files; a limit below what a program has written \
         kills it",
        "no swap is free (/proc/swaps, and the control group's limit)",
        "swapon a device, a file or zram; run --frames needs none",
    )
}

fn page_out() -> Row {
    let row = Row::works(Section::Limits, "page-out", "govern has idle memory of jobs paged out");
    row.unless(
        vellum_governor::may_page_out(),
        "advice and suspension, or memory.reclaim of a group that may be written to",
        "CAP_SYS_NICE and CAP_SYS_PTRACE are not both in force",
        "run govern as root",
    )
}
