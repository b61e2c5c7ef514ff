//! Readers of bytes that others have written, and the writer of metrics: for the fuzz targets (`vellum-fuzz`)
//! and the tests of documents only.

use crate::group::Identity;
use crate::metrics;
use crate::pods::Names;
use crate::view::Page;
use std::sync::Arc;

/// A list of pods: whether it is one, and whether it knows this container.
#[must_use]
pub fn pods(json: &[u8], identity: &Identity) -> Option<bool> {
    let names = Names::parse(json).ok()?;
    Some(match identity {
        Identity::Kubernetes { pod, id } => names.of(pod, id).is_some(),
        _ => false,
    })
}

/// A page as metrics.
#[must_use]
pub fn metrics(page: Page) -> String {
    metrics::render(&Arc::new(page))
}
