//! The random program of `program`, marked by two threads at once however little lives.

mod program;

use vellum_gc as gc;

#[test]
fn what_the_model_reaches_is_there() {
    program::run(gc::Config { markers: 2, paranoid: true, ..gc::Config::DEFAULT }, 4);
    let stats = gc::stats();
    let is_alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
    assert!(stats.parallel > 20 || is_alone, "{stats:?}");
}
