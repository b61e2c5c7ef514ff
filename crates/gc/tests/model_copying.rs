//! The random program of `program` on a heap in which everything moves that may.

mod program;

use vellum_gc::{Config, Plan};

#[test]
fn what_the_model_reaches_is_there_or_has_moved() {
    let config = Config { plan: Plan::MostlyCopying, restless: true, ..Config::DEFAULT };
    let moved = program::run(config, 12);
    eprintln!("{moved} objects moved");
    assert!(moved > 1000, "only {moved} objects moved");
}
