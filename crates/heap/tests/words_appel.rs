//! The program of `words` where there are generations, a collection at every allocation, and every invariant
//! is checked in every phase.

mod words;

use vellum_heap::{Config, Plan};

#[test]
fn what_the_model_reaches_is_there() {
    let config = Config { eager: 1, poison: true, paranoid: true, ..Config::DEFAULT };
    words::run(Config { plan: Plan::Appel, ..config }, 1000);
}
