//! What the agent of a node reads: paths of control groups and lists of pods.

use vellum_fleet::group::{Identity, Place, place};
use vellum_fleet::{Page, View, readers};

pub(crate) const WORDS: &[&str] = &[
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

/// A list, and paths. A name that comes of them stays within its line of the metrics.
pub fn fleet(data: &[u8]) {
    let _ = readers::pods(data, &Identity::Kubernetes { pod: "c".into(), id: "y".into() });
    let Ok(text) = std::str::from_utf8(data) else { return };
    for path in text.lines() {
        if let Place::Job(identity) = place(path) {
            assert!(!identity.name(path).is_empty(), "{path:?}");
        }
    }
    let view = View { name: text.to_owned(), path: text.to_owned(), ..View::default() };
    let metrics = readers::metrics(Page { groups: vec![view.into()], ..Page::default() });
    assert!(metrics.lines().all(|line| line.starts_with("# ") || line.starts_with("vellum_")), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "metrics are whole");
}
