//! A real Prometheus for a test.

use super::node::{Running, ask, port};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A Prometheus with its files.
pub(crate) struct Prometheus {
    running: Option<Running>,
    folder: PathBuf,
    /// HOST:PORT
    pub(crate) listen: String,
}

impl Prometheus {
    /// Starts a Prometheus with this configuration, in a folder that outlives it; `None`, with a message, if
    /// Prometheus is missing. `prepare` is called on each command before it runs.
    pub(crate) fn start(folder: &Path, config: &str, prepare: impl Fn(&mut Command)) -> Option<Prometheus> {
        if !super::has("prometheus", "Debian: prometheus") {
            return None;
        }
        fs::write(folder.join("prometheus.yml"), config).unwrap();
        let listen = format!("127.0.0.1:{}", port());
        let mut prometheus = Prometheus { running: None, folder: folder.to_owned(), listen };
        prometheus.begin(prepare);
        Some(prometheus)
    }

    /// Stores a file of OpenMetrics as the history in blocks; false, with a message, if promtool is missing.
    pub(crate) fn import(folder: &Path, file: &Path, options: &[&str]) -> bool {
        if !super::has("promtool", "Debian: prometheus") {
            return false;
        }
        let mut promtool = Command::new("promtool");
        promtool.args(["tsdb", "create-blocks-from", "openmetrics"]).args(options);
        let made = promtool.arg(file).arg(folder.join("data")).output().unwrap();
        assert!(made.status.success(), "{}", super::said(&made));
        true
    }

    /// Starts Prometheus (again) with its stored data.
    pub(crate) fn begin(&mut self, prepare: impl Fn(&mut Command)) {
        let at = |name: &str| self.folder.join(name).display().to_string();
        let log = fs::File::options().create(true).append(true).open(at("prometheus.log")).unwrap();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", at("prometheus.yml")))
            .arg(format!("--storage.tsdb.path={}", at("data")))
            .arg(format!("--web.listen-address={}", self.listen))
            .stdout(Stdio::null())
            .stderr(log);
        prepare(&mut command);
        self.running = Some(Running::start(&mut command));
    }

    /// Kills Prometheus by `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    /// The rows of a query; `None` while there is no answer.
    pub(crate) fn rows(&self, query: &str) -> Option<Vec<serde_json::Value>> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = ask(&self.listen, &format!("/api/v1/query?query={encoded}"), "").ok()?;
        let answer: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        answer["data"]["result"].as_array().cloned()
    }

    /// The first row of a query.
    pub(crate) fn first(&self, query: &str) -> Option<serde_json::Value> {
        self.rows(query)?.first().cloned()
    }
}
