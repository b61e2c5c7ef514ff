//! The program of `words` where everything moves that may, at every allocation, and every invariant is
//! checked in every phase.

mod words;

use vellum_heap::{Config, Plan};

#[test]
fn what_the_model_reaches_is_there() {
    let config = Config { eager: 1, poison: true, restless: true, paranoid: true, ..Config::DEFAULT };
    words::run(Config { plan: Plan::MostlyCopying, ..config }, 1000);
}
