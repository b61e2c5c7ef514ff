//! Lets the heap profile sample the collector's objects.

use vellum_gc::{Sampler, Token};
use vellum_heapprofile::collected;

static SAMPLER: Sampler = Sampler {
    passing: collected::passing,
    is_due: collected::is_due,
    record: |bytes, whole| collected::record(bytes, whole).map(Token),
    forget: |token| collected::remove(token.0),
};

/// Enables samples of objects while the heap profile is on.
pub(crate) fn begin() {
    collected::on_change(|is_on| vellum_gc::sample(is_on.then_some(&SAMPLER)));
}
