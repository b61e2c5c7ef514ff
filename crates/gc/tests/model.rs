//! The random program of `program` on a heap in which nothing moves.

mod program;

use vellum_gc::{Config, Plan};

#[test]
fn what_the_model_reaches_is_there() {
    let moved = program::run(Config { plan: Plan::MarkSweep, ..Config::DEFAULT }, 4);
    assert_eq!(moved, 0, "objects moved");
}
