//! Reads the history of each systemd unit of a machine from Prometheus.
//!
//! Load varies by day and by week, so the default length is eight days. A unit is identified by its name,
//! so its history continues after a restart.

use super::decide::History;
use crate::http::Server;
use crate::metrics::{BY_AGE, JOB_PRESSURE, OOM_LIMIT};
use crate::prometheus::{HistoryError, known, quoted, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use vellum_governor::families::{ADVISED, Family};

/// The server and the range of a query.
#[derive(Debug, Clone)]
pub struct Question {
    /// The Prometheus server.
    pub prometheus: Server,
    /// The node's label `instance`; `None` if Prometheus has only one node.
    pub instance: Option<String>,
    /// The length of the history.
    pub over: Duration,
}

/// Reads the history of each service of the machine's systemd.
///
/// # Errors
/// [`HistoryError`] if any part of the history cannot be read.
pub fn ask(question: &Question) -> Result<BTreeMap<String, History>, HistoryError> {
    let instance = question.instance.as_deref().map(|instance| format!(",instance={}", quoted(instance)));
    let of = |family: Family, more: &str| {
        format!("{family}{{unit!=\"\",user=\"\"{more}{}}}", instance.as_deref().unwrap_or_default())
    };
    let over = question.over.as_secs().max(1);
    let largest = |family| format!("max_over_time({}[{over}s])", of(family, ""));
    let advised = of(ADVISED, "");
    let by_age = of(BY_AGE, "");
    let stall = of(JOB_PRESSURE, ",stall=\"full\"");
    let queries = [
        known(&format!("{advised} or {by_age}"), over),
        largest(ADVISED),
        largest(BY_AGE),
        format!("max_over_time(rate({stall}[10m])[1d:5m])"),
        largest(OOM_LIMIT),
    ];
    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    let mut instances = BTreeSet::new();
    for (number, query) in queries.iter().enumerate() {
        for mut row in rows(&question.prometheus, query)? {
            instances.extend(row.take("instance"));
            let (Some(unit), Some(value)) = (row.take("unit"), row.number()) else { continue };
            let history = histories.entry(unit).or_default();
            let History { known_seconds, advised, by_age, stalled, killed_under } = history;
            *[known_seconds, advised, by_age, stalled, killed_under][number] = Some(value);
        }
    }
    if instances.len() > 1 {
        return Err(HistoryError::Several(instances.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Ok(histories)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenFile;
    use crate::address::Address;
    use crate::http::Access;
    use crate::prometheus::TRIES;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// A server that gives the answers one after the other and then closes.
    fn serving(answers: Vec<String>) -> (Question, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let prometheus = Address::parse(&format!("http://{}", listener.local_addr().unwrap()), "").unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret\n").unwrap();
        let token = Some(TokenFile::open(file.path()).unwrap());
        let thread = std::thread::spawn(move || {
            // The file is removed after the last request.
            let _file = file;
            let answer = |answer: String| {
                let mut stream = listener.accept().unwrap().0;
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                let _ = stream.write_all(answer.as_bytes());
                String::from_utf8_lossy(&request[..read]).into_owned()
            };
            answers.into_iter().map(answer).collect()
        });
        let prometheus = Server::new(prometheus, &Access { token, ..Access::default() }).unwrap();
        (Question { prometheus, instance: None, over: Duration::from_secs(3600) }, thread)
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
    fn history_merges_answers_and_retries() {
        let (question, thread) = serving(vec![
            "HTTP/1.1 429 Too Many Requests\r\n\r\n".into(),
            "HTTP/1.1 503 Service Unavailable\r\n\r\n".into(),
            ok(&row("a.service", "n", "7200")),
            ok(&format!("{},{}", row("a.service", "n", "5e6"), row("b.service", "n", "NaN"))),
            ok(""),
            ok(&row("a.service", "n", "0.5")),
            ok(&row("b.service", "n", "4e6")),
        ]);
        let histories = ask(&question).unwrap();
        let requests = thread.join().unwrap();
        let a = History {
            known_seconds: Some(7200.0),
            advised: Some(5e6),
            stalled: Some(0.5),
            ..History::default()
        };
        assert_eq!(histories["a.service"], a);
        assert_eq!(histories["b.service"].killed_under, Some(4e6));
        assert!(histories["b.service"].advised.unwrap().is_nan());
        assert!(requests.iter().all(|request| request.contains("authorization: Bearer secret\r\n")));
        assert!(requests[2].starts_with("GET /api/v1/query?query=time%28%29"), "{}", requests[2]);
    }

    #[test]
    fn invalid_answers_are_errors_without_token() {
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
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_owned();
        assert!(failed(vec![cut; TRIES as usize]).contains("disconnected"));
        let said = "HTTP/1.1 200 OK\r\n\r\n{\"status\":\"error\",\"error\":\"too many samples\"}";
        assert!(failed(one(said)).contains("too many samples"));
        assert!(failed(vec!["HTTP/1.1 500 X\r\n\r\n".to_owned(); TRIES as usize]).contains("500"));
        let two = format!("{},{}", row("a.service", "n1:1", "1"), row("a.service", "n2:1", "1"));
        assert!(failed(vec![ok(&two), ok(""), ok(""), ok(""), ok("")]).contains("n1:1, n2:1"));
    }
}
