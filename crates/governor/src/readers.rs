//! Parsers of input from other programs, exported only for the fuzz targets (`vellum-fuzz`).

use crate::config::quantity;
use crate::snapshot::Snapshot;
use crate::{exposition, metrics};
use std::sync::Arc;

/// Parses a request for metrics: `None` if it is incomplete, else true if its resource is the metrics.
pub fn request(bytes: &[u8]) -> Option<bool> {
    exposition::asked(bytes).map(|(asked, _)| asked == exposition::Asked::Metrics)
}

/// A state as metrics.
pub fn metrics(snapshot: Snapshot) -> String {
    metrics::render(&Arc::new(snapshot))
}

/// Sizes, times and parts as a job table has them.
pub fn quantities(text: &str) {
    let _ = (quantity::budget(text), quantity::time(text), quantity::part(text));
}
