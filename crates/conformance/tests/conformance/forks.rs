//! `fork` at any moment in a threaded process.

use vellum_conformance::{Place, check_all};

#[test]
fn forks() {
    let place = Place::new();
    check_all(&place.program("forks.c", &["-pthread"]));
}
