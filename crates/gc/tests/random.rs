//! The random program of `program` with collections at random points, and every invariant checked in every phase.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there() {
    let config = gc::Config { paranoid: true, eager: 60, poison: true, ..gc::Config::DEFAULT };
    let moved = program::run(config, 4);
    assert_eq!(moved, 0, "objects moved");
}
