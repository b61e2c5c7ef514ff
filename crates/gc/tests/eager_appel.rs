//! The random program of `program` where every allocation collects, mostly new objects only, and every invariant is checked in every phase.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there_or_has_moved() {
    let config = gc::Config {
        plan: gc::Plan::Appel,
        restless: true,
        tells_writes: true,
        paranoid: true,
        eager: 1,
        poison: true,
        ..gc::Config::DEFAULT
    };
    let moved = program::run_steps(config, 12, 20000);
    let stats = gc::stats();
    eprintln!("{moved} objects moved, {} of {} collections were minor", stats.partial, stats.collections);
    assert!(moved > 1000, "only {moved} objects moved");
    assert!(stats.partial * 2 > stats.collections || stats.unsliced > 0, "{stats:?}");
}
