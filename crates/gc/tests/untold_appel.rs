//! Nobody tells what is written: every collection is a major one, and counted as such.

mod program;

use vellum_gc as gc;
use vellum_sys::{Caps, caps};
#[test]
fn what_the_model_reaches_is_there_or_has_moved() {
    caps::drop(Caps::TRACK | Caps::PROTECT);
    let config = gc::Config { plan: gc::Plan::Appel, restless: true, ..gc::Config::DEFAULT };
    let moved = program::run(config, 12);
    let stats = gc::stats();
    eprintln!("{moved} objects moved, {} of {} collections were minor", stats.partial, stats.collections);
    assert!(moved > 1000, "only {moved} objects moved");
    assert!(stats.partial == 0 && stats.unsliced > 2, "{stats:?}");
}
