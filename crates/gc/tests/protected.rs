//! The random program of `program`, collections in slices as short as can be, with writes found out by page protection.

mod program;

use vellum_gc as gc;
use vellum_sys::{Caps, caps};

#[test]
fn what_the_model_reaches_is_there() {
    caps::drop(Caps::TRACK);
    program::run(gc::Config { slice_ns: 1, ..gc::Config::DEFAULT }, 4);
    let stats = gc::stats();
    assert!(stats.protected > 3 && stats.partial == 0 && stats.unsliced == 0, "{stats:?}");
}
