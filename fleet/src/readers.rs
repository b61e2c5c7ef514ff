//! Entry points for the fuzz targets (`vellum-fuzz`) and for tests of documents: readers of foreign bytes,
//! and the writer of metrics.

use crate::group::Identity;
use crate::metrics;
use crate::pods::Names;
use crate::recommend::containers::Memory;
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

/// The patch that an object of Kubernetes gets, for containers about which this much is known; `None` if it
/// is no object, does not ask, or is as it should be.
#[must_use]
pub fn patch(object: &[u8], memory: &Memory) -> Option<String> {
    crate::recommend::vpa::patch(object, memory)
}

/// The version of the object that an event of a watch is about.
#[must_use]
pub fn event(line: &[u8]) -> Option<String> {
    crate::kube::version(line)
}

/// A quantity of Kubernetes, in bytes.
#[must_use]
pub fn quantity(text: &str) -> Option<u64> {
    crate::kube::bytes(text)
}

/// A page as metrics.
#[must_use]
pub fn metrics(page: Page) -> String {
    metrics::render(&Arc::new(page))
}
