//! Sends instant queries (for values at one time) to Prometheus, by its HTTP API.
//!
//! Values are returned unchecked: the callers decide whether they make sense.
//!
//! Source: Prometheus' documentation, "HTTP API", expression queries.

use crate::Error;
use crate::address::encoded;
use crate::http::{Method, Patience, Server};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

/// The maximum length of an answer: 30,000 containers with twelve points each take about 60 MB.
const BYTES_MAX: u64 = 256 << 20;

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

/// The rows of a query, now or at this time in seconds since 1970.
pub(crate) fn rows(server: &Server, query: &str, time: Option<i64>) -> Result<Vec<Row>, Error> {
    let failed = |why: &dyn Display| {
        Error(format!("--prometheus {}: {why}; nothing was changed", server.address.authority))
    };
    let nonsense = |why: &dyn Display| failed(&format!("the answer cannot be used ({why})"));
    let time = time.map(|time| format!("&time={time}")).unwrap_or_default();
    let path = format!("/api/v1/query?query={}{time}", encoded(query));
    let patience = Patience { tries: 4, answer: Duration::from_secs(60), ..Patience::default() };
    let json = server.ask(Method::Get, &path, &[], BYTES_MAX, &patience).map_err(|why| failed(&why))?;
    let answer: Answer = serde_json::from_slice(&json).map_err(|why| nonsense(&why))?;
    let data = answer.data.map(|data| data.result);
    data.ok_or_else(|| nonsense(&answer.error.unwrap_or_else(|| "no data".into())))
}

/// A PromQL string.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_within_their_quotes() {
        assert_eq!(quoted("a\"} or x{b=\"\\"), "\"a\\\"} or x{b=\\\"\\\\\"");
    }
}
