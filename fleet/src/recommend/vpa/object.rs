//! Parses a VerticalPodAutoscaler object: the fields that a recommender needs.
//!
//! A missing field has Kubernetes' default. If a name, a list or a quantity has the wrong type, the whole
//! object is rejected, with the reason.

use super::RECOMMENDER;
use super::numbers::{Allowed, Numbers};
use crate::kube::{bytes, is_label, is_name};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The policy for containers without a policy.
const ANY: &str = "*";

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Object {
    pub(super) metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    pub(super) status: Option<Status>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) namespace: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) uid: String,
    pub(super) resource_version: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    target_ref: Option<TargetRef>,
    recommenders: Option<Vec<Named>>,
    resource_policy: Option<ResourcePolicy>,
}

#[derive(Debug, Clone, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct TargetRef {
    pub(super) kind: String,
    pub(super) name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourcePolicy {
    container_policies: Option<Vec<ContainerPolicy>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerPolicy {
    container_name: Option<String>,
    mode: Option<String>,
    min_allowed: Option<BTreeMap<String, Value>>,
    max_allowed: Option<BTreeMap<String, Value>>,
    controlled_resources: Option<Vec<String>>,
}

/// The status as last written.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Status {
    #[serde(default)]
    recommendation: Option<Recommendation>,
    #[serde(default)]
    pub(super) conditions: Option<Vec<Value>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recommendation {
    container_recommendations: Option<Vec<Value>>,
}

impl Object {
    /// Parses the object, or returns the reason for which it is invalid.
    pub(super) fn read(value: &Value) -> Result<Object, String> {
        let object = Object::deserialize(value).map_err(|why| why.to_string())?;
        let Metadata { namespace, name, .. } = &object.metadata;
        if !is_label(namespace) || !is_name(name) {
            return Err("its name is none".to_owned());
        }
        Ok(object)
    }

    /// True if the object names this recommender.
    pub(super) fn is_ours(&self) -> bool {
        self.spec.recommenders.iter().flatten().any(|named| named.name == RECOMMENDER)
    }

    /// The workload of the object.
    pub(super) fn target(&self) -> Option<&TargetRef> {
        self.spec.target_ref.as_ref()
    }

    /// The bounds for a container by its policy, or the reason for which it gets no numbers.
    pub(super) fn allowed(&self, container: &str) -> Result<Allowed, String> {
        let policies =
            || self.spec.resource_policy.iter().flat_map(|policy| policy.container_policies.iter().flatten());
        let of = |name: &str| policies().find(|policy| policy.container_name.as_deref() == Some(name));
        let Some(policy) = of(container).or_else(|| of(ANY)) else { return Ok((None, None)) };
        if policy.mode.as_deref() == Some("Off") {
            return Err("its policy's mode is Off".to_owned());
        }
        let controlled = policy.controlled_resources.as_ref();
        if controlled.is_some_and(|names| !names.iter().any(|name| name == "memory")) {
            return Err("its policy's controlledResources have no memory".to_owned());
        }
        let bound = |bounds: &Option<BTreeMap<String, Value>>, which: &str| {
            let Some(value) = bounds.as_ref().and_then(|bounds| bounds.get("memory")) else {
                return Ok(None);
            };
            quantity(value).map(Some).ok_or_else(|| format!("{which} {value} is no quantity of memory"))
        };
        Ok((bound(&policy.min_allowed, "minAllowed")?, bound(&policy.max_allowed, "maxAllowed")?))
    }

    /// The last written numbers by container: valid numbers of memory.
    pub(super) fn before(&self) -> BTreeMap<String, Numbers> {
        let read = |entry: &Value| {
            let name = entry["containerName"].as_str().filter(|name| is_label(name))?;
            let of = |number: &str| quantity(&entry[number]["memory"]).filter(|bytes| *bytes > 0);
            let target = of("target")?;
            let numbers = Numbers {
                target,
                lower: of("lowerBound")?,
                upper: of("upperBound")?,
                uncapped: of("uncappedTarget").unwrap_or(target),
            };
            (numbers.lower <= target && target <= numbers.upper).then(|| (name.to_owned(), numbers))
        };
        self.entries().iter().filter_map(read).collect()
    }

    /// The last written entries, unchanged.
    pub(super) fn entries(&self) -> &[Value] {
        let recommendation = self.status.as_ref().and_then(|status| status.recommendation.as_ref());
        recommendation.and_then(|it| it.container_recommendations.as_deref()).unwrap_or_default()
    }
}

/// Parses a quantity, which may also be a JSON number.
fn quantity(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => bytes(text),
        Value::Number(number) => bytes(&number.to_string()),
        _ => None,
    }
}
