//! The plan of a test program: the one that the environment names (`rows`), or else the program. In
//! `X_copying` everything moves that may, in `X_appel` there are generations.

use vellum_gc as gc;

/// Starts the heap by the program's plan, if it has not started.
#[allow(dead_code, reason = "each program needs some of these")]
pub(crate) fn begin() {
    begin_with(gc::Config { restless: true, ..gc::Config::DEFAULT });
}

/// The same with settings besides the plan.
#[allow(dead_code, reason = "each program needs some of these")]
pub(crate) fn begin_with(config: gc::Config) {
    let begun = gc::init(gc::Config { plan: this(), ..config });
    assert!(begun != Err(gc::Already::OutOfMemory), "memory for a heap");
}

/// The program's plan.
pub(crate) fn this() -> gc::Plan {
    let asked = std::env::var("VELLUM_TEST_PLAN");
    let name = asked.as_deref().unwrap_or(env!("CARGO_CRATE_NAME"));
    match () {
        () if name.ends_with("_copying") => gc::Plan::MostlyCopying,
        () if name.ends_with("_appel") => gc::Plan::Appel,
        () => gc::Plan::MarkSweep,
    }
}
