//! The random program of `program` with slices of random lengths at random points, and every invariant checked at each one's end.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there() {
    let config = gc::Config { slice_ns: 1, paranoid: true, eager: 20, poison: true, ..gc::Config::DEFAULT };
    program::run(config, 4);
}
