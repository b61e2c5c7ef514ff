//! The random program of `program` with a slice of a collection at every allocation, and every invariant checked at each one's end.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there() {
    let config = gc::Config { slice_ns: 1, paranoid: true, eager: 1, poison: true, ..gc::Config::DEFAULT };
    program::run_steps(config, 4, 30_000);
}
