//! Fuzz targets for the inputs of `vellum agent` and `vellum recommend`: cgroup paths, lists of pods,
//! Kubernetes objects and events, Slurm's accounting output.

use serde_json::Value;
use std::collections::BTreeMap;
use vellum_fleet::group::{Identity, Place, place};
use vellum_fleet::readers;
use vellum_fleet::recommend::decide::History;
use vellum_fleet::recommend::history::Memory;
use vellum_fleet::recommend::slurm;

/// Words in the formats of an agent's readers.
pub(crate) const NODE_WORDS: &[&str] = &[
    "kubepods.slice/",
    "kubepods/burstable/pod",
    "1f3a9c1e-7d54-4c88-9a51-3b2f4d5e6f70",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "cri-containerd-",
    ".slice",
    ".scope",
    ".service",
    "slurm/uid_1/job_2/step_3",
    "user@1.service/",
    "\\x2d",
    "{\"items\":[",
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\"}}",
    "\"status\":{\"containerStatuses\":[{\"name\":\"a\",\"containerID\":\"x://y\"}]}",
    "null",
];

/// Words in the formats of a recommender's readers.
pub(crate) const RECOMMEND_WORDS: &[&str] = &[
    "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"resourceVersion\":\"7\"},\"spec\":{",
    "\"targetRef\":{\"kind\":\"StatefulSet\",\"name\":\"web\"},",
    "\"recommenders\":[{\"name\":\"vellum\"}]",
    "\"resourcePolicy\":{\"containerPolicies\":[{\"containerName\":\"*\",\"minAllowed\":{\"memory\":\"64Mi\"}}]}",
    "\"maxAllowed\":{\"memory\":",
    "\"status\":{\"recommendation\":{\"containerRecommendations\":[",
    "{\"containerName\":\"nginx\",\"target\":{\"memory\":\"115343360\"}}",
    "\"conditions\":[{\"type\":\"RecommendationProvided\",\"status\":\"True\"}]",
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}",
    "{\"type\":\"ERROR\",\"object\":{\"code\":410}}",
    "1|1000|train|COMPLETED\n",
    "OUT_OF_MEMORY",
    "1.5Gi",
    "1e9",
    "null",
];

/// A list, and paths. A name taken from them must stay within its line of the metrics.
pub fn node(data: &[u8]) {
    let _ = readers::pods(data, &Identity::Kubernetes { pod: "c".into(), id: "y".into() });
    let Ok(text) = std::str::from_utf8(data) else { return };
    for path in text.lines() {
        if let Place::Job(identity) = place(path) {
            assert!(!identity.name(path).is_empty(), "{path:?}");
        }
    }
    let metrics = readers::metrics(text);
    assert!(metrics.lines().all(|line| line.starts_with("# ") || line.starts_with("vellum_")), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "metrics are whole");
}

/// The stored advice of the one container.
const ADVISED: f64 = 100.0 * 1048576.0;

/// Objects, events and tables. A patch is JSON with the object's version, and its numbers are in order. They
/// are at least the advice, unless the object's own bounds are lower. An event from which a watch can
/// continue has a version. A table has a line for each row.
pub fn recommend(data: &[u8]) {
    let history = History { known_seconds: Some(1e6), advised: Some(ADVISED), ..History::default() };
    let containers = [("nginx".to_owned(), history)].into();
    let pods = [("web-0".to_owned(), containers)].into();
    let memory = Memory { namespaces: [("shop".to_owned(), pods)].into(), refused: 0 };
    if let Some(patch) = readers::patch(data, &memory) {
        let patch: Value = serde_json::from_str(&patch).expect("a patch is JSON");
        assert!(patch["metadata"]["resourceVersion"].is_string(), "{patch}");
        let entries = patch["status"]["recommendation"]["containerRecommendations"].as_array();
        for entry in entries.into_iter().flatten() {
            let of =
                |number: &str| entry[number]["memory"].as_str().and_then(|text| text.parse::<u64>().ok());
            let numbers = ["lowerBound", "target", "upperBound", "uncappedTarget"].map(of);
            let [Some(lower), Some(target), Some(upper), Some(_)] = numbers else { panic!("{patch}") };
            assert!(lower <= target && target <= upper && upper <= 1 << 60, "{patch}");
        }
    }
    assert!(readers::event(data).is_none_or(|version| !version.is_empty()));
    let Ok(text) = std::str::from_utf8(data) else { return };
    assert!(readers::quantity(text).is_none_or(|bytes| bytes <= 1 << 60), "{text:?}");
    let needs: BTreeMap<String, f64> = [("1".to_owned(), ADVISED)].into();
    let table = slurm::table(&needs, text, 1, 0.1);
    assert_eq!(table.csv().lines().count(), 1 + table.rows.len(), "{table:?}");
    assert!(table.rows.iter().all(|row| row.mib >= 100), "{table:?}");
}
