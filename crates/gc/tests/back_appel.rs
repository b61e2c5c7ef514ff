//! The random program of `program` on a heap that is copied back.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there_or_has_moved() {
    let config = gc::Config {
        plan: gc::Plan::Appel,
        restless: true,
        after_major: gc::AfterMajor::CopyBack,
        paranoid: true,
        ..gc::Config::DEFAULT
    };
    let moved = program::run(config, 12);
    let stats = gc::stats();
    eprintln!("{moved} objects moved, {} of {} collections were minor", stats.partial, stats.collections);
    assert!(moved > 1000, "only {moved} objects moved");
}
