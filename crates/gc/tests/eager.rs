//! The random program of `program` where every allocation collects and every invariant is checked in every phase.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there() {
    let config = gc::Config { paranoid: true, eager: 1, poison: true, ..gc::Config::DEFAULT };
    let moved = program::run_steps(config, 4, 20_000);
    assert_eq!(moved, 0, "objects moved");
}
