//! Pages among survivors: slabs of which little is in use give back the rest.

use crate::storms::SETTINGS;
use std::sync::PoisonError;
use vellum_conformance::{Place, check_all};

#[test]
fn sparse() {
    let _held = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    check_all(&place.program("sparse.c", &["-pthread"]));
}
