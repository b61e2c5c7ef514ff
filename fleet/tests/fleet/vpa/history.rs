//! Tests of reading the history of a machine's units from a Prometheus that fails in every way.

use super::*;
use std::collections::BTreeMap;
use vellum_fleet::recommend::decide::History;
use vellum_fleet::recommend::history;

/// A history from these answers, one after the other, or the reason why there is none; and the requests.
fn asked(answers: &[Answer]) -> (Result<BTreeMap<String, History>, String>, Vec<server::Request>) {
    let (_file, access) = with_token("secret\n");
    let all = answers.to_vec();
    let prometheus = Server::start(move |_, number| all[number].clone());
    let history = history::units(&common::client(&prometheus.url, &access), None, Duration::from_secs(3600));
    let requests = prometheus.seen("GET");
    assert_eq!(requests.len(), answers.len());
    assert!(requests.iter().all(|request| request.head.contains("authorization: bearer secret\r\n")));
    (history.map_err(|why| why.to_string()), requests)
}

fn unit<'a>(unit: &str, instance: &str, value: &'a str) -> (Value, &'a str) {
    (json!({"unit": unit, "instance": instance}), value)
}

#[test]
fn history_merges_answers_and_retries() {
    let (histories, requests) = asked(&[
        Answer::status(429, ""),
        Answer::status(503, ""),
        vector(&[unit("a.service", "n", "7200")]),
        vector(&[unit("a.service", "n", "5e6"), unit("b.service", "n", "NaN")]),
        vector::<&str>(&[]),
        vector(&[unit("a.service", "n", "0.5")]),
        vector(&[unit("b.service", "n", "4e6")]),
    ]);
    let histories = histories.unwrap();
    let (known_seconds, advised, stalled) = (Some(7200.0), Some(5e6), Some(0.5));
    let a = History { known_seconds, advised, stalled, ..History::default() };
    assert_eq!(histories["a.service"], a);
    assert_eq!(histories["b.service"].killed_under, Some(4e6));
    assert!(histories["b.service"].advised.unwrap().is_nan());
    assert!(requests[2].path.starts_with("/api/v1/query?query=time%28%29"), "{}", requests[2].path);
}

#[test]
fn invalid_answers_are_errors_without_token() {
    let two = [unit("a.service", "n1:1", "1"), unit("a.service", "n2:1", "1")];
    let none = || vector::<&str>(&[]);
    for (answers, words) in [
        (vec![Answer::status(401, "")], "401"),
        (vec![Answer::ok("hello")], "cannot be used"),
        (vec![Answer::ok("{").cut(); 4], "disconnected"),
        (vec![Answer::ok(r#"{"status":"error","error":"too many samples"}"#)], "too many samples"),
        (vec![Answer::status(500, ""); 4], "500"),
        (vec![vector(&two), none(), none(), none(), none()], "n1:1, n2:1"),
    ] {
        let why = asked(&answers).0.unwrap_err();
        assert!(why.contains(words) && !why.contains("secret"), "{words}: {why}");
    }
}
