//! Which plan a test program is for: one heap a process, so one program a plan. `X_copying` is `X` where all moves that may.

use vellum_gc as gc;

/// Starts the heap by the program's plan, if it has not started.
#[allow(dead_code, reason = "each program needs one of the two")]
pub(crate) fn begin() {
    begin_with(gc::Config { restless: true, ..gc::Config::DEFAULT });
}

/// The same with settings besides the plan.
#[allow(dead_code, reason = "each program needs one of the two")]
pub(crate) fn begin_with(config: gc::Config) {
    let copying = env!("CARGO_CRATE_NAME").ends_with("_copying");
    let plan = if copying { gc::Plan::MostlyCopying } else { gc::Plan::MarkSweep };
    let begun = gc::init(gc::Config { plan, ..config });
    assert!(begun != Err(gc::Already::OutOfMemory), "memory for a heap");
}
