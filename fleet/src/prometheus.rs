//! Instant queries of Prometheus, by its HTTP API.
//!
//! Temporary failures (no answer, 429, 5xx) are retried a bounded number of times. Values are returned
//! unchecked: the callers decide whether they make sense.
//!
//! Source: Prometheus' documentation, "HTTP API", expression queries.

use crate::address::encoded;
use crate::http::{HttpError, Limits, Server};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bounds of an answer: 30,000 containers with twelve points each take about 60 MB.
const LIMITS: Limits = Limits { bytes: 256 << 20, time: Duration::from_secs(60) };
/// The maximum number of attempts after temporary failures, and the first pause.
pub(crate) const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// The history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Prometheus does not answer.
    #[error("--prometheus {authority}: {source}; nothing was changed")]
    Http {
        /// The server.
        authority: String,
        /// The reason.
        source: HttpError,
    },
    /// The answer is invalid.
    #[error("--prometheus {authority}: the answer cannot be used ({why}); nothing was changed")]
    Nonsense {
        /// The server.
        authority: String,
        /// The reason.
        why: String,
    },
    /// The history has units of several nodes.
    #[error("Prometheus has units of {0}; choose this machine's with --instance")]
    Several(String),
}

#[derive(Deserialize)]
struct Answer {
    data: Option<Data>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Row>,
}

/// A series and its value.
#[derive(Deserialize)]
pub(crate) struct Row {
    pub(crate) metric: BTreeMap<String, String>,
    value: (f64, String),
}

impl Row {
    /// Takes a label out of the row.
    pub(crate) fn take(&mut self, label: &str) -> Option<String> {
        self.metric.remove(label)
    }

    /// The value: any number, including NaN.
    pub(crate) fn number(&self) -> Option<f64> {
        self.value.1.parse().ok()
    }
}

/// The current rows of a query.
pub(crate) fn rows(server: &Server, query: &str) -> Result<Vec<Row>, HistoryError> {
    rows_at(server, query, None)
}

/// The rows of a query at this time, in seconds since 1970.
pub(crate) fn rows_at(server: &Server, query: &str, time: Option<i64>) -> Result<Vec<Row>, HistoryError> {
    let authority = || server.address.authority.clone();
    let time = time.map(|time| format!("&time={time}")).unwrap_or_default();
    let path = format!("/api/v1/query?query={}{time}", encoded(query));
    let mut tries = 0;
    let json = loop {
        match server.get(&path, &LIMITS) {
            Ok(json) => break json,
            Err(why) if why.may_pass() && tries + 1 < TRIES => {
                std::thread::sleep(PAUSE * 2_u32.pow(tries));
                tries += 1;
            }
            Err(source) => return Err(HistoryError::Http { authority: authority(), source }),
        }
    };
    let nonsense = |why: String| HistoryError::Nonsense { authority: authority(), why };
    let answer: Answer = serde_json::from_slice(&json).map_err(|why| nonsense(why.to_string()))?;
    let data = answer.data.map(|data| data.result);
    data.ok_or_else(|| nonsense(answer.error.unwrap_or_else(|| "no data".into())))
}

/// A PromQL string.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The step of subqueries over this many seconds: a hundredth, which locates the start of a series well
/// enough and keeps the query cheap.
pub(crate) fn step(over: u64) -> u64 {
    (over / 100).max(1)
}

/// A query for the age of each series in seconds, limited to the last `over` seconds.
pub(crate) fn known(series: &str, over: u64) -> String {
    format!("time() - min_over_time(timestamp({series})[{over}s:{}s])", step(over))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_within_their_quotes() {
        assert_eq!(quoted("a\"} or x{b=\"\\"), "\"a\\\"} or x{b=\\\"\\\\\"");
    }
}
