//! The random program of `program` where every allocation collects and moves what may be moved, and every invariant is checked in every phase.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there_or_has_moved() {
    let plan = gc::Plan::MostlyCopying;
    let config =
        gc::Config { plan, restless: true, paranoid: true, eager: 1, poison: true, ..gc::Config::DEFAULT };
    let moved = program::run_steps(config, 12, 20_000);
    assert!(moved > 1000, "only {moved} objects moved");
}
