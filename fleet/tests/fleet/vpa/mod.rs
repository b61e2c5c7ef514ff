//! Tests of recommendations for Kubernetes, against a server that fails in every way and a real API server.

pub(crate) mod cluster;
mod faults;
mod real;
mod server;
mod watch;

use server::{Answer, Server};
use std::time::Duration;
use vellum_fleet::kube::{Api, Patience};
use vellum_fleet::recommend::decide::Rules;
use vellum_fleet::recommend::vpa::Pass;
use vellum_fleet::{Access, Address};

const MIB: u64 = 1 << 20;

/// A client of a test's server.
fn client(url: &str) -> vellum_fleet::Server {
    vellum_fleet::Server::new(Address::parse(url, "").unwrap(), &Access::default()).unwrap()
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

/// A Prometheus with these containers: namespace, pod, container, seconds, recommendation.
fn prometheus(containers: &[(&str, &str, &str, &str, &str)]) -> Server {
    let rows = |value: fn(&(&str, &str, &str, &str, &str)) -> String| {
        let row = |it: &(&str, &str, &str, &str, &str)| serde_json::json!({"metric": {"namespace": it.0, "pod": it.1, "container": it.2}, "value": [1.5, value(it)]});
        let rows: Vec<_> = containers.iter().map(row).collect();
        serde_json::json!({"status": "success", "data": {"resultType": "vector", "result": rows}}).to_string()
    };
    let (known, advised) = (rows(|it| it.3.to_owned()), rows(|it| it.4.to_owned()));
    let none = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    Server::start(move |request, _| {
        Answer::ok(if request.path.contains("min_over_time") {
            &known
        } else if request.path.contains("advised_bytes") {
            &advised
        } else {
            none
        })
    })
}
