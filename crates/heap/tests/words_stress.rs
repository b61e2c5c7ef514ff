//! The program of `words` where nothing moves, and every allocation collects; and what words refuse.

mod words;

use std::panic::catch_unwind;
use vellum_heap::{Any, Array, Config, Heap, StartError, family};

family! { Small { Array<u8>: 3 } }

#[test]
fn what_the_model_reaches_is_there() {
    let only_starts = Config { only_starts: true, ..Config::DEFAULT };
    let refused = Heap::start(only_starts).expect_err("tags point into objects");
    assert_eq!(refused, StartError::NotServed("only_starts"));
    words::run(Config { eager: 1, poison: true, ..Config::DEFAULT }, 3000);
    assert!(catch_unwind(|| Any::<Small>::immediate(1 << 40)).is_err(), "an address is no immediate");
    let wrong = catch_unwind(|| {
        Heap::get().scope(|scope| Any::<Small>::of(scope.alloc_slice(b"x").expect("memory"), 4).tag())
    });
    assert!(wrong.is_err(), "a tag means its type");
    assert_eq!(Any::<Small>::immediate(0).bits(), Some(0));
}
