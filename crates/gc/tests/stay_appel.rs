//! The random program of `program` on a heap whose dense blocks stay where they are, in both kinds of collection.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there_or_has_moved() {
    let config = gc::Config {
        plan: gc::Plan::Appel,
        after_major: gc::AfterMajor::Stay,
        paranoid: true,
        ..gc::Config::DEFAULT
    };
    let moved = program::run(config, 100);
    let stats = gc::stats();
    eprintln!("{moved} objects moved, {} of {} collections were minor", stats.partial, stats.collections);
    assert!(moved > 100, "only {moved} objects moved");
}
