//! Section `pager`: Vellum's pager beside the kernel's.
//!
//! A program touches a block of base pages that is several times as large as the memory that it may use.
//! In column *glibc* the kernel pages the block to a swap file, in a memory cgroup with that limit (needs
//! root). In *vellum*, Vellum pages it to a file on the same file system, with page frames of the same
//! total size. Each column has a second arm as its control.
//!
//! A second cell measures the cost of paging while there are enough frames. Both columns are Vellum's
//! library, without frames in *glibc* and with frames in *vellum*.

use super::{MIB, Plan, Section, columns, line, size, table, tag};
use crate::target::{Against, Target};
use crate::{Cell, Launch, Table, Unit, peer};

/// The section's name, with which all its cells begin.
pub(crate) const PAGER: &str = "pager";

/// The block's memory, and the block's size as a multiple of it.
const FRAMES: usize = 64 * MIB;
const TIMES: usize = 4;
/// Random touches of each kind, in a full and in a quick run.
const TOUCHES: (usize, usize) = (20_000, 4_000);

/// Goals over the kernel's anonymous memory: first touches at most 1.3 in order, and 2 at random.
const NEW: f64 = 1.3;
const NEW_AT_RANDOM: f64 = 2.0;
/// Goal over the kernel's swap file: at most 0.5 in order.
const SCAN: f64 = 0.5;
/// Goal within frames: at most 1.02.
const FITS: f64 = 1.02;
/// The part of the frames that the program needs, in quarters.
const FITS_QUARTERS: usize = 3;
/// Goal: no slower than the kernel.
const KERNEL: f64 = 1.0;

/// The cells. They run only if named, since the kernel's arm needs root and makes swap.
#[must_use]
pub(crate) fn section(plan: &Plan) -> Section {
    let params = [("frames", FRAMES), ("times", TIMES), ("touches", plan.pick(TOUCHES.0, TOUCHES.1))];
    let kernel = [&params[..], &[("kernel", 1)]].concat();
    let launches = [
        plan.roster.get(peer::GLIBC).map(|glibc| plan.launch(glibc, "paged", &kernel)),
        plan.roster.get(peer::VELLUM).map(|vellum| framed(plan.launch(vellum, "paged", &params))),
    ];
    let cell = columns(plan, format!("{PAGER}-{}", tag(FRAMES)), launches);
    let of = size(FRAMES);
    let one = |title: &str, metric, most: f64| {
        let target = Target::at_most(most, Against::Arm(peer::GLIBC));
        table(&format!("Paging: {title}"), metric, Unit::Nanos, vec![line(&of, &cell, Some(target))])
    };
    let tables = vec![
        one("CPU time of a zero-filled page, in random order", "zero_cpu_ns", NEW_AT_RANDOM),
        one("CPU time of a new page, in order, with the page that it writes out", "new_cpu_ns", NEW),
        one("the same, wall time", "new_ns", KERNEL),
        one("CPU time of a page that is read back, in order", "scan_cpu_ns", KERNEL),
        one("the same, wall time", "scan_ns", SCAN),
        one("CPU time of a page that is read back, in random order", "read_cpu_ns", KERNEL),
        one("the same, wall time", "read_ns", KERNEL),
        one("CPU time of a page that is written to, in random order", "write_cpu_ns", KERNEL),
        one("the same, wall time", "write_ns", KERNEL),
    ];
    let (fits, more) = fits(plan);
    Section { name: PAGER, cells: vec![cell, fits], tables: tables.into_iter().chain(more).collect() }
}

/// The same process with [`FRAMES`] bytes of frames.
fn framed(mut launch: Launch) -> Launch {
    launch.env.push(("VELLUM_FRAMES".into(), FRAMES.to_string().into()));
    launch
}

/// The cost of paging while there are enough frames.
fn fits(plan: &Plan) -> (Cell, [Table; 2]) {
    let bytes = FRAMES / 4 * FITS_QUARTERS;
    let launch = plan.roster.get(peer::VELLUM).map(|vellum| plan.launch(vellum, "fits", &[("bytes", bytes)]));
    let cell = columns(plan, format!("{PAGER}-fits"), [launch.clone(), launch.map(framed)]);
    let one = |title: &str, metric| {
        let target = Target::at_most(FITS, Against::Arm(peer::GLIBC));
        let label = format!("{} in {}", size(bytes), size(FRAMES));
        table(&format!("Paging: {title}"), metric, Unit::Millis, vec![line(label, &cell, Some(target))])
    };
    let tables = [
        one("a sort that fits its frames, beside one without limit (glibc), wall time", "wall_ns"),
        one("the same, CPU time", "cpu_ns"),
    ];
    (cell, tables)
}
