//! The random program of `program` on a heap with generations, where most objects are untyped or atomic, and every invariant is checked.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there_or_has_moved() {
    let config = gc::Config {
        plan: gc::Plan::Appel,
        after_major: gc::AfterMajor::Reuse,
        paranoid: true,
        poison: true,
        ..gc::Config::DEFAULT
    };
    let moved = program::run(config, 5);
    let stats = gc::stats();
    eprintln!("{moved} objects moved, {} of {} collections were minor", stats.partial, stats.collections);
    assert!(moved > 1000, "only {moved} objects moved");
}
