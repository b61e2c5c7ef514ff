//! The random program of `program` with collections at random points that move what may be moved, and every invariant checked in every phase.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there_or_has_moved() {
    let plan = gc::Plan::MostlyCopying;
    let config =
        gc::Config { plan, restless: true, paranoid: true, eager: 60, poison: true, ..gc::Config::DEFAULT };
    let moved = program::run(config, 12);
    assert!(moved > 1000, "only {moved} objects moved");
}
