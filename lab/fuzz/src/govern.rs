//! Fuzz targets for the governor, which divides memory among jobs: its table of jobs, requests for
//! metrics, and its state, which `vellum top` reads.

use std::path::Path;
use vellum_governor::{Config, Snapshot, readers};

pub(crate) const JOBS_WORDS: &[&str] = &[
    "[[job]]\n",
    "[governor]\n",
    "name = \"a\"\n",
    "command = [\"true\"]\n",
    "pid = 1\n",
    "cgroup = \"/\"\n",
    "budget = \"1 GiB\"\n",
    "delta = \"1 s\"\n",
    "environment = {A = \"b\"}\n",
    "metrics = \"127.0.0.1:1\"\n",
    "priority = 9223372036854775807\n",
    "alpha = nan\n",
    "alpha = 1e308\n",
    "[[[[[[[[",
    "{a={a={a={a=",
    "\"\"\"",
    "\\u0000",
    "99999999999999999999",
];
pub(crate) const HTTP_WORDS: &[&str] =
    &["GET ", "POST ", "/metrics", " HTTP/1.1\r\n", "Host: a\r\n", "\r\n\r\n", "?"];
pub(crate) const STATE_WORDS: &[&str] = &[
    "\"jobs\":[",
    "\"limit\":\"",
    "\"state\":\"running\"",
    "null",
    "1e999",
    "1e308",
    "18446744073709551615",
    "[[[[",
];

/// A table of jobs, and the quantities in it.
pub fn jobs(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = Config::parse(text, Path::new("jobs.toml"), Path::new(".")) {
        assert!(!error.to_string().is_empty(), "an error says why");
    }
    text.lines().for_each(readers::quantities);
}

/// A state; the state read is written, also as metrics, and read again.
pub fn state(data: &[u8]) {
    let Ok(snapshot) = serde_json::from_slice::<Snapshot>(data) else { return };
    let written = serde_json::to_vec(&snapshot).expect("plain data");
    let again: Snapshot = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, snapshot, "read again");
    assert!(readers::metrics(snapshot).ends_with("# EOF\n"), "metrics are whole");
}

/// A request for metrics: once it is complete, the answer does not depend on how it was split.
pub fn http_request(data: &[u8]) {
    let whole = readers::request(data);
    let first = (0..=data.len()).find_map(|end| readers::request(&data[..end]));
    assert_eq!(first.is_some(), whole.is_some(), "a request that is answered stays so");
}
