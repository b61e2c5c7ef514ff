//! Readers of bytes that others have written, each from a slice: for the fuzz targets (`vellum-fuzz`) only.

use crate::config::quantity;
use crate::snapshot::Snapshot;
use crate::{exposition, members, metrics, take};
use std::sync::Arc;

/// A request for metrics: whether it is whole, and if so whether metrics are what it asks for.
#[must_use]
pub fn request(bytes: &[u8]) -> Option<bool> {
    exposition::asked(bytes).map(|(asked, _)| asked == exposition::Asked::Metrics)
}

/// A state as metrics.
#[must_use]
pub fn metrics(snapshot: Snapshot) -> String {
    metrics::render(&Arc::new(snapshot))
}

/// Sizes, times and parts as a job table has them.
pub fn quantities(text: &str) {
    let _ = (quantity::budget(text), quantity::time(text), quantity::part(text));
}

/// The text of `smaps`, as it is read before memory is taken: the longest mapping it tells of.
#[must_use]
pub fn smaps(text: &str) -> u64 {
    take::mappings(text).map(|mapping| mapping.span()).max().unwrap_or(0)
}

/// The session in the text of `stat`.
#[must_use]
pub fn session(bytes: &[u8]) -> Option<i32> {
    members::session(bytes).map(|pid| pid.0)
}
