//! `vellum recommend kubernetes`: turns Prometheus' history into the status of VerticalPodAutoscalers.
//!
//! ```text
//! Prometheus ─▶ history ─┐
//!                        ├─▶ status of each object (pure) ─▶ PATCH …/status, if anything changed
//! API server ─▶ object ──┘     target.rs: finds its pods    on a conflict (409): reads the object again
//!                              numbers.rs: recommended number and bounds
//! ```
//!
//! Only objects whose `spec.recommenders` names [`RECOMMENDER`] are changed, and only their status.
//!
//! Invariants: nothing is written before the whole history was read. A target (recommended number) is below
//! the largest recommendation in the history only if the object's `maxAllowed` is. If values are unknown, the
//! earlier numbers stay. Every patch names the version of the object that it was made for.
//!
//! Source: kubernetes/autoscaler, `vertical-pod-autoscaler`, API `autoscaling.k8s.io/v1`.

mod numbers;
mod object;
mod pass;
mod status;
mod target;

pub use pass::{Pass, Summary};

use super::decide::Rules;
use super::history::Memory;
use std::time::{Duration, SystemTime};

/// The patch for the object in these bytes, with this history of its containers. `None` if the object is
/// invalid, does not name this recommender, or needs no change.
#[doc(hidden)]
pub fn patch(object: &[u8], memory: &Memory) -> Option<String> {
    let object = object::Object::read(&serde_json::from_slice(object).ok()?).ok()?;
    let rules = Rules { least: Duration::ZERO, margin: 0.1 };
    let wanted = object.is_ours().then(|| status::wanted(&object, memory, &rules))?;
    wanted.patch(&object, SystemTime::UNIX_EPOCH).map(|patch| patch.to_string())
}

/// The recommender's name in `spec.recommenders`.
pub const RECOMMENDER: &str = "vellum";
