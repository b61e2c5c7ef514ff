//! Entry points for the fuzz targets (`vellum-fuzz`): parsers of other programs' data, and the function that
//! renders metrics.

pub use crate::kube::{bytes as quantity, version as event};
pub use crate::recommend::vpa::patch;

use crate::group::Identity;
use crate::pods::Names;
use crate::view::{Page, View};
use vellum_governor::families;

/// Parses a list of pods: `None` if it is invalid, else whether it contains this container.
#[must_use]
pub fn pods(json: &[u8], identity: &Identity) -> Option<bool> {
    let names = Names::parse(json).ok()?;
    Some(matches!(identity, Identity::Kubernetes { pod, id } if names.of(pod, id).is_some()))
}

/// Renders the metrics of a group with this name and path.
#[must_use]
pub fn metrics(name: &str) -> String {
    let view = View { name: name.to_owned(), path: name.to_owned(), ..View::default() };
    families::page(Page { groups: vec![view.into()], ..Page::default() })
}
