//! Tests of recommendations for Kubernetes, against a server that fails in every way and a real API server.

pub(crate) mod cluster;
mod faults;
mod history;
mod real;
pub(crate) mod server;
mod watch;

use crate::common;
use serde_json::{Value, json};
use server::{Answer, Server};
use std::time::Duration;
use vellum_fleet::Access;
use vellum_fleet::kube::{Api, Patience};
use vellum_fleet::recommend::decide::Rules;
use vellum_fleet::recommend::vpa::Pass;

const MIB: u64 = 1 << 20;

/// A file with a bearer token, and credentials that name it.
fn with_token(token: &str) -> (tempfile::NamedTempFile, Access) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), token).unwrap();
    let token = Some(vellum_fleet::TokenFile::open(file.path()).unwrap());
    (file, Access { token, ..Access::default() })
}

/// A client without credentials.
fn client(url: &str) -> vellum_fleet::Server {
    common::client(url, &Access::default())
}

/// Short waits, so that the test is fast.
const PATIENCE: Patience = Patience {
    tries: 4,
    pause: Duration::from_millis(1),
    most: Duration::from_millis(5),
    answer: Duration::from_millis(500),
};

fn pass(api: vellum_fleet::Server, prometheus: &Server) -> Pass {
    Pass {
        api: Api::new(api, PATIENCE),
        prometheus: client(&prometheus.url),
        namespace: None,
        over: Duration::from_secs(8 * 86_400),
        rules: Rules { least: Duration::from_secs(86_400), margin: 0.1 },
        is_dry: false,
    }
}

/// Prometheus' answer with these rows: labels and value.
fn vector<V: AsRef<str>>(rows: &[(Value, V)]) -> Answer {
    let row = |(labels, value): &(Value, V)| json!({"metric": labels, "value": [1.5, value.as_ref()]});
    let rows: Vec<Value> = rows.iter().map(row).collect();
    let vector = json!({"status": "success", "data": {"resultType": "vector", "result": rows}});
    Answer::ok(&vector.to_string())
}

/// Namespace, pod, container, the length of the history in seconds, and the recommendation.
type Container<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// A Prometheus with these containers.
fn prometheus(containers: &[Container]) -> Server {
    let rows = |value: fn(&Container) -> String| {
        let row = |it: &Container| (json!({"namespace": it.0, "pod": it.1, "container": it.2}), value(it));
        vector(&containers.iter().map(row).collect::<Vec<_>>())
    };
    let (known, advised) = (rows(|it| it.3.to_owned()), rows(|it| it.4.to_owned()));
    Server::start(move |request, _| match &request.path {
        path if path.contains("min_over_time") => known.clone(),
        path if path.contains("advised_bytes") => advised.clone(),
        _ => vector::<&str>(&[]),
    })
}
