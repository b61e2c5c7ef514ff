//! Threads that come and go, free for each other, and sleep on memory they have freed.

use vellum_conformance::{Place, check_all};

#[test]
fn threads() {
    let place = Place::new();
    check_all(&place.program("threads.c", &["-pthread"]));
}
