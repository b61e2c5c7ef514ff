//! Named figures of one run of one workload.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures by name; the name ends with the unit (`wall_ns`, `peak_bytes`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// No figures yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a figure. Infinities and NaN are dropped, since JSON cannot represent them.
    pub fn set(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// The figure, if it was measured.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Adds all figures of `other`.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// All figures, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_one_json_object() {
        let mut metrics = Metrics::new();
        metrics.set("wall_ns", 12.5);
        metrics.set("nothing", f64::NAN);
        let text = serde_json::to_string(&metrics).unwrap();
        assert_eq!(text, r#"{"wall_ns":12.5}"#);
        assert_eq!(serde_json::from_str::<Metrics>(&text).unwrap(), metrics);
    }
}
