//! The program of `all` where nothing moves, and every allocation collects.

mod all;

use vellum_heap::Config;

#[test]
fn what_the_model_reaches_is_there() {
    all::run(Config { eager: 1, poison: true, ..Config::DEFAULT }, 2000);
}
