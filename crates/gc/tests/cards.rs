//! The random program of `program`, collections in slices as short as can be, with writes told by the program.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there() {
    program::run(gc::Config { slice_ns: 1, tells_writes: true, ..gc::Config::DEFAULT }, 4);
}
