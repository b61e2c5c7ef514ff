//! What Prometheus remembers of each unit, by its HTTP API.
//!
//! Seasons last a day and a week, so eight days are asked for unless told otherwise. A unit is known by its
//! name: a restart changes nothing.

use super::decide::History;
use crate::http::{self, Address, HttpError, Limits};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Bounds of an answer.
const LIMITS: Limits = Limits { bytes: 64 << 20, time: Duration::from_secs(20) };
/// How often a question is asked, if the answer is one that may pass, and how long between.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// Whose history.
#[derive(Debug, Clone)]
pub struct Question {
    /// Prometheus.
    pub prometheus: Address,
    /// The token for it.
    pub token: Option<String>,
    /// The node, as Prometheus' label `instance` has it; `None` where there is one only.
    pub instance: Option<String>,
    /// How far back.
    pub over: Duration,
}

/// There is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Prometheus does not answer.
    #[error("--prometheus {authority}: {source}; nothing was changed")]
    Http {
        /// Where.
        authority: String,
        /// Why.
        source: HttpError,
    },
    /// Its answer is none.
    #[error("--prometheus {authority}: the answer cannot be used ({why}); nothing was changed")]
    Nonsense {
        /// Where.
        authority: String,
        /// Why.
        why: String,
    },
    /// There are several nodes.
    #[error("Prometheus has units of {0}; say with --instance which of them this is")]
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

#[derive(Deserialize)]
struct Row {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

/// The history of each service of the machine's own systemd.
///
/// # Errors
/// [`HistoryError`] if any part of it cannot be had.
pub fn ask(question: &Question) -> Result<BTreeMap<String, History>, HistoryError> {
    let instance = question.instance.as_deref().map(|instance| format!(",instance={}", quoted(instance)));
    let of = |name: &str, more: &str| {
        format!("{name}{{unit!=\"\",user=\"\"{more}{}}}", instance.as_deref().unwrap_or_default())
    };
    let over = question.over.as_secs().max(1);
    let largest = |name: &str| format!("max_over_time({}[{over}s])", of(name, ""));
    let advised = of("vellum_job_advised_bytes", "");
    let by_age = of("vellum_job_advised_by_age_bytes", "");
    let stall = of("vellum_job_pressure_seconds_total", ",stall=\"full\"");
    // A step of a hundredth shows when a series began well enough, and keeps the answer cheap.
    let step = (over / 100).max(1);
    let queries = [
        format!("time() - min_over_time(timestamp({advised} or {by_age})[{over}s:{step}s])"),
        largest("vellum_job_advised_bytes"),
        largest("vellum_job_advised_by_age_bytes"),
        format!("max_over_time(rate({stall}[10m])[1d:5m])"),
    ];
    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    let mut instances = BTreeSet::new();
    for (number, query) in queries.iter().enumerate() {
        for Row { mut metric, value } in rows(question, query)? {
            instances.extend(metric.remove("instance"));
            let (Some(unit), Ok(value)) = (metric.remove("unit"), value.1.parse::<f64>()) else { continue };
            let history = histories.entry(unit).or_default();
            *[&mut history.known_seconds, &mut history.advised, &mut history.by_age, &mut history.stalled]
                [number] = Some(value);
        }
    }
    if instances.len() > 1 {
        return Err(HistoryError::Several(instances.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Ok(histories)
}

fn rows(question: &Question, query: &str) -> Result<Vec<Row>, HistoryError> {
    let authority = question.prometheus.authority.clone();
    let path =
        format!("{}/api/v1/query?query={}", question.prometheus.path.trim_end_matches('/'), encoded(query));
    let address = Address { authority: authority.clone(), path };
    let mut tries = 0;
    let json = loop {
        match http::get(&address, question.token.as_deref(), &LIMITS) {
            Ok(json) => break json,
            // Too busy, or broken for the moment.
            Err(HttpError::Io(_) | HttpError::Status(429 | 500..=599)) if tries + 1 < TRIES => {
                std::thread::sleep(PAUSE * 2_u32.pow(tries));
                tries += 1;
            }
            Err(source) => return Err(HistoryError::Http { authority, source }),
        }
    };
    let nonsense = |why: String| HistoryError::Nonsense { authority: authority.clone(), why };
    let answer: Answer = serde_json::from_slice(&json).map_err(|why| nonsense(why.to_string()))?;
    answer
        .data
        .map(|data| data.result)
        .ok_or_else(|| nonsense(answer.error.unwrap_or_else(|| "no data".into())))
}

/// A string of PromQL.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Text within an address.
fn encoded(text: &str) -> String {
    let each = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that gives one answer after the other, and closes then.
    fn serving(answers: Vec<String>) -> (Question, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let prometheus = Address::parse(&format!("http://{}", listener.local_addr().unwrap()), "").unwrap();
        let thread = std::thread::spawn(move || {
            let answer = |answer: String| {
                let mut stream = listener.accept().unwrap().0;
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                let _ = stream.write_all(answer.as_bytes());
                String::from_utf8_lossy(&request[..read]).into_owned()
            };
            answers.into_iter().map(answer).collect()
        });
        let token = Some("secret".to_owned());
        (Question { prometheus, token, instance: None, over: Duration::from_secs(3600) }, thread)
    }

    fn ok(rows: &str) -> String {
        format!(
            "HTTP/1.0 200 OK\r\n\r\n{{\"status\":\"success\",\"data\":{{\"resultType\":\"vector\",\"result\":[{rows}]}}}}"
        )
    }

    fn row(unit: &str, instance: &str, value: &str) -> String {
        format!(
            "{{\"metric\":{{\"unit\":\"{unit}\",\"instance\":\"{instance}\"}},\"value\":[1.5,\"{value}\"]}}"
        )
    }

    #[test]
    fn answers_are_put_together_by_unit_and_passing_trouble_is_passed() {
        let (question, thread) = serving(vec![
            "HTTP/1.1 429 Too Many Requests\r\n\r\n".into(),
            "HTTP/1.1 503 Service Unavailable\r\n\r\n".into(),
            ok(&row("a.service", "n", "7200")),
            ok(&format!("{},{}", row("a.service", "n", "5e6"), row("b.service", "n", "NaN"))),
            ok(""),
            ok(&row("a.service", "n", "0.5")),
        ]);
        let histories = ask(&question).unwrap();
        let requests = thread.join().unwrap();
        let a = History { known_seconds: Some(7200.0), advised: Some(5e6), by_age: None, stalled: Some(0.5) };
        assert_eq!(histories["a.service"], a);
        assert!(histories["b.service"].advised.unwrap().is_nan());
        assert!(requests.iter().all(|request| request.contains("Authorization: Bearer secret\r\n")));
        assert!(requests[2].starts_with("GET /api/v1/query?query=time%28%29"), "{}", requests[2]);
    }

    #[test]
    fn anything_else_is_an_error_and_no_token_is_told() {
        let failed = |answers: Vec<String>| {
            let (question, thread) = serving(answers);
            let why = ask(&question).unwrap_err().to_string();
            thread.join().unwrap();
            assert!(!why.contains("secret"), "{why}");
            why
        };
        let one = |text: &str| vec![text.to_owned()];
        assert!(failed(one("HTTP/1.1 401 Unauthorized\r\n\r\n")).contains("401"));
        assert!(failed(one("HTTP/1.1 200 OK\r\n\r\nhello")).contains("cannot be used"));
        assert!(failed(one("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")).contains("cut off"));
        let said = "HTTP/1.1 200 OK\r\n\r\n{\"status\":\"error\",\"error\":\"too many samples\"}";
        assert!(failed(one(said)).contains("too many samples"));
        assert!(failed(vec!["HTTP/1.1 500 X\r\n\r\n".to_owned(); TRIES as usize]).contains("500"));
        let two = format!("{},{}", row("a.service", "n1:1", "1"), row("a.service", "n2:1", "1"));
        assert!(failed(vec![ok(&two), ok(""), ok(""), ok("")]).contains("n1:1, n2:1"));
    }

    #[test]
    fn labels_stay_within_their_quotes() {
        assert_eq!(quoted("a\"} or x{b=\"\\"), "\"a\\\"} or x{b=\\\"\\\\\"");
        assert_eq!(encoded("a b\n&%é"), "a%20b%0A%26%25%C3%A9");
    }
}
