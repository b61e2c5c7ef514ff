//! Slices are asked for, and nobody tells what is written: collections are made at one go, and counted as such.

mod program;

use vellum_gc as gc;
use vellum_sys::{Caps, caps};

#[test]
fn what_the_model_reaches_is_there() {
    caps::drop(Caps::TRACK | Caps::PROTECT);
    program::run(gc::Config { slice_ns: 1, ..gc::Config::DEFAULT }, 4);
    let stats = gc::stats();
    assert!(!gc::can_slice() && stats.slices == 0 && stats.unsliced > 2, "{stats:?}");
}
