//! Entry points for the fuzz targets (`vellum-fuzz`): parsers of other programs' data, and the function that
//! renders metrics.

use crate::group::Identity;
use crate::metrics;
use crate::pods::Names;
use crate::recommend::containers::Memory;
use crate::view::{Page, View};
use std::sync::Arc;

/// Parses a list of pods: `None` if it is invalid, else whether it contains this container.
#[must_use]
pub fn pods(json: &[u8], identity: &Identity) -> Option<bool> {
    let names = Names::parse(json).ok()?;
    Some(match identity {
        Identity::Kubernetes { pod, id } => names.of(pod, id).is_some(),
        _ => false,
    })
}

/// The patch for a Kubernetes object, with this history of its containers. `None` if the object is invalid,
/// does not name this recommender, or needs no change.
#[must_use]
pub fn patch(object: &[u8], memory: &Memory) -> Option<String> {
    crate::recommend::vpa::patch(object, memory)
}

/// The version of the object in an event of a watch.
#[must_use]
pub fn event(line: &[u8]) -> Option<String> {
    crate::kube::version(line)
}

/// Parses a Kubernetes quantity, in bytes.
#[must_use]
pub fn quantity(text: &str) -> Option<u64> {
    crate::kube::bytes(text)
}

/// Renders the metrics of a group with this name and path.
#[must_use]
pub fn metrics(name: &str) -> String {
    let view = View { name: name.to_owned(), path: name.to_owned(), ..View::default() };
    metrics::render(&Arc::new(Page { groups: vec![view.into()], ..Page::default() }))
}
