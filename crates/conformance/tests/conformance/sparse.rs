//! Pages among survivors: slabs of which little is in use give back the rest.

use crate::storms::settings_kept;
use vellum_conformance::{Place, check_all};

#[test]
fn sparse() {
    let _held = settings_kept();
    let place = Place::new();
    check_all(&place.program("sparse.c", &["-pthread"]));
}
