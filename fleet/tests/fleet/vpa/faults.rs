//! Tests with a fake Prometheus and an API server that refuses, stalls, or sends conflicts or garbage.

use super::*;
use crate::common::node::until;
use std::sync::{Arc, Mutex};
use vellum_fleet::Error;
use vellum_fleet::kube::Lease;
use vellum_fleet::recommend::vpa::Summary;

const LIST: &str = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers";
const DAYS: &str = "691200";
const POD: &str = "web-5d4f8b9c6-x2k4z";

fn vpa(name: &str, version: &str) -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": name, "uid": format!("u-{name}"), "resourceVersion": version},
        "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "recommenders": [{"name": "vellum"}]},
    })
}

fn advice(mib: u64) -> String {
    (mib * MIB).to_string()
}

/// A server of objects that answers each patch by `patch`, with the patch's number from 0.
fn api(items: Vec<Value>, patch: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Server {
    let count = Mutex::new(0);
    Server::start(move |request, _| match request.method.as_str() {
        "GET" if request.path.starts_with(&format!("{LIST}?")) => {
            Answer::ok(&json!({"kind": "List", "metadata": {}, "items": items}).to_string())
        }
        "GET" => Answer::ok(&vpa("web", "8").to_string()),
        _ => {
            let mut count = count.lock().unwrap();
            *count += 1;
            patch(*count - 1)
        }
    })
}

/// A pass with a history of one container: its length and the recommendation.
fn run_with(api: &Server, known: &str, advised: &str) -> Result<Summary, Error> {
    pass(client(&api.url), &prometheus(&[("shop", POD, "nginx", known, advised)])).run(|_| Ok(true))
}

fn run(api: &Server) -> Result<Summary, Error> {
    run_with(api, DAYS, &advice(100))
}

/// All patches so far.
fn patches(api: &Server) -> Vec<Value> {
    api.seen("PATCH").iter().map(|patch| serde_json::from_str(&patch.body).unwrap()).collect()
}

fn target(patch: &Value) -> u64 {
    let entry = &patch["status"]["recommendation"]["containerRecommendations"][0];
    assert_eq!(entry["containerName"], "nginx", "{patch}");
    entry["target"]["memory"].as_str().unwrap().parse().unwrap()
}

#[test]
fn only_matching_objects_are_patched_with_their_version() {
    let _turn = crate::common::beside();
    let mut other = vpa("other", "7");
    other["spec"]["recommenders"] = json!(null);
    let foreign = json!({"metadata": {"name": "../../secrets", "namespace": "shop", "resourceVersion": "1"}, "spec": {}});
    let api = api(vec![other, foreign, json!(7), vpa("web", "7")], |_| Answer::ok("{}"));
    let summary = run(&api).unwrap();
    assert_eq!((summary.objects, summary.written, summary.failed), (1, 1, 2), "{summary:?}");
    let path = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers/web/status";
    assert_eq!(api.seen("PATCH")[0].path, path);
    let [patch] = &patches(&api)[..] else { panic!("one patch") };
    assert_eq!(patch["metadata"], json!({"resourceVersion": "7"}));
    let entry = &patch["status"]["recommendation"]["containerRecommendations"][0];
    let memory = |mib: u64| json!({"memory": (mib * MIB).to_string()});
    assert_eq!(entry["target"], memory(110));
    assert_eq!(entry["uncappedTarget"], memory(110));
    assert_eq!((&entry["lowerBound"], &entry["upperBound"]), (&memory(100), &memory(138)));
    let condition = &patch["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"]),
        (&json!("RecommendationProvided"), &json!("True"))
    );
}

#[test]
fn only_temporary_failures_are_retried() {
    let _turn = crate::common::beside();
    let slow = || Answer::ok("{}").after(Duration::from_secs(2));
    let conflict = || Answer::status(409, "{}");
    let cases: Vec<(&str, Vec<Answer>, bool, usize)> = vec![
        ("too many", vec![Answer::status(429, "{}").header("Retry-After: 3600")], true, 2),
        ("broken", vec![Answer::status(500, "x"), Answer::status(503, "")], true, 3),
        ("slow", vec![slow()], true, 2),
        ("garbage", vec![Answer::garbage()], false, 1),
        ("cut off", vec![Answer::ok("{\"a\":1}").cut()], true, 2),
        ("forbidden", vec![Answer::status(403, "{\"message\":\"no right\"}")], false, 1),
        ("always broken", vec![Answer::status(500, "x"); 9], false, 4),
        ("no JSON", vec![Answer::ok("hello")], false, 1),
        ("a conflict", vec![conflict()], true, 2),
        ("always a conflict", vec![conflict(); 9], false, 5),
        ("redirected", vec![Answer::status(307, "").header("Location: http://192.0.2.1/")], false, 1),
    ];
    for (name, answers, is_written, tries) in cases {
        let api = api(vec![vpa("web", "7")], move |number| {
            answers.get(number).cloned().unwrap_or_else(|| Answer::ok("{}"))
        });
        let summary = run(&api).unwrap();
        assert_eq!(summary.written == 1, is_written, "{name}: {summary:?}");
        assert_eq!(summary.failed == 0, is_written, "{name}: {summary:?}");
        let patches = patches(&api);
        assert_eq!(patches.len(), tries, "{name}");
        assert!(patches.iter().all(|patch| target(patch) == 110 * MIB), "{name}");
        let version = patches.last().unwrap()["metadata"]["resourceVersion"].clone();
        assert_eq!(version == "8", name.ends_with("conflict"), "{name}: it is read again: {version}");
    }
}

#[test]
fn invalid_history_gives_no_numbers() {
    let _turn = crate::common::beside();
    let huge = "1e300";
    for (known, advised, word) in [
        (DAYS, "NaN", "absurd"),
        (DAYS, "+Inf", "absurd"),
        (DAYS, "-5", "absurd"),
        (DAYS, huge, "absurd"),
        (DAYS, "1152921504606846977", "absurd"),
        ("60", "1e8", "its history covers"),
        ("NaN", "1e8", "its history covers"),
        (DAYS, "hello", "no advice"),
    ] {
        let api = api(vec![vpa("web", "7")], |_| Answer::ok("{}"));
        let summary = run_with(&api, known, advised).unwrap();
        assert!(summary.lines.iter().any(|line| line.contains(word)), "{advised}: {summary:?}");
        let patch = &patches(&api)[0];
        assert!(patch["status"].get("recommendation").is_none_or(Value::is_null), "{patch}");
        assert_eq!(patch["status"]["conditions"][0]["status"], "False", "{patch}");
        assert!(patch["status"]["conditions"][0]["message"].as_str().unwrap().contains(word), "{patch}");
    }
}

#[test]
fn labels_with_invalid_names_are_left_out() {
    let _turn = crate::common::beside();
    let api = api(vec![vpa("web", "7")], |_| Answer::ok("{}"));
    let hundred = advice(100);
    let evil = "x\",\"target\":{\"memory\":\"1\"}";
    let prometheus = prometheus(&[
        ("shop", POD, evil, DAYS, &hundred),
        ("shop", "web-5d4f8b9c6-x2k4z/../../x", "nginx", DAYS, &hundred),
        ("../shop", POD, "nginx", DAYS, &hundred),
        ("shop", POD, "nginx\nnginx", DAYS, &hundred),
        ("store", POD, "nginx", DAYS, &advice(999)),
        ("shop", "web-5d4f8b9c6-x2k4z", "nginx", DAYS, &advice(50)),
    ]);
    let summary = pass(client(&api.url), &prometheus).run(|_| Ok(true)).unwrap();
    assert!(summary.lines[0].contains("8 series were left out"), "{summary:?}");
    assert_eq!(target(&patches(&api)[0]), 55 * MIB);
    assert!(summary.lines.iter().all(|line| !line.contains('\n')));
}

#[test]
fn unchanged_status_is_not_written_and_unknown_numbers_stay() {
    let _turn = crate::common::beside();
    let entry = |target: u64| {
        let memory = |mib: u64| json!({"memory": (mib * MIB).to_string()});
        json!({"containerName": "nginx", "target": memory(target), "lowerBound": memory(target * 10 / 11),
               "upperBound": memory((target * 5).div_ceil(4)), "uncappedTarget": memory(target)})
    };
    let with = |target: u64| {
        let mut object = vpa("web", "7");
        object["status"] = json!({
            "recommendation": {"containerRecommendations": [entry(target)]},
            "conditions": [
                {"type": "RecommendationProvided", "status": "True", "reason": "Remembered", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                {"type": "Other", "status": "True"},
            ],
        });
        object
    };
    for (known, advised, count) in [
        (DAYS, advice(100), 0),
        (DAYS, advice(98), 0),
        (DAYS, "NaN".to_owned(), 0),
        ("60", advice(100), 0),
        (DAYS, advice(101), 1),
        (DAYS, advice(50), 1),
    ] {
        let api = api(vec![with(110)], |_| Answer::ok("{}"));
        run_with(&api, known, &advised).unwrap();
        let patches = patches(&api);
        assert_eq!(patches.len(), count, "{advised}: {patches:?}");
        for patch in patches {
            let conditions = patch["status"]["conditions"].as_array().unwrap();
            let has = |key: &str, value: &str| conditions.iter().any(|condition| condition[key] == value);
            assert!(has("type", "Other") && has("lastTransitionTime", "2026-01-01T00:00:00Z"), "{patch}");
        }
    }
}

#[test]
fn token_is_never_printed() {
    let _turn = crate::common::beside();
    let (_file, access) = with_token("s3cr3t-t0ken");
    let api =
        api(vec![vpa("web", "7")], |_| Answer::status(403, r#"{"message":"Bearer s3cr3t-t0ken is nobody"}"#));
    let client = common::client(&api.url, &access);
    assert!(!format!("{client:?}").contains("s3cr3t"));
    let prometheus = prometheus(&[("shop", POD, "nginx", DAYS, &advice(100))]);
    let summary = pass(client, &prometheus).run(|_| Ok(true)).unwrap();
    assert!(api.seen("PATCH")[0].head.contains("bearer s3cr3t-t0ken"), "it was sent");
    assert!(summary.failed == 1 && !format!("{summary:?}").contains("s3cr3t"), "{summary:?}");
}

#[test]
fn nothing_is_written_without_history_or_full_list() {
    let _turn = crate::common::beside();
    let api_server = api(vec![vpa("web", "7")], |_| Answer::ok("{}"));
    let broken =
        Server::start(|_, _| Answer::status(400, "{\"status\":\"error\",\"error\":\"no such thing\"}"));
    let why = pass(client(&api_server.url), &broken).run(|_| Ok(true)).unwrap_err().to_string();
    assert!(why.contains("400") && why.contains("no such thing"), "{why}");
    assert_eq!(api_server.seen("GET").len(), 0, "nobody asks for objects");

    for answer in [
        Answer::status(403, "{\"message\":\"forbidden\"}"),
        Answer::ok("[]"),
        Answer::ok("{\"items\":7}"),
        Answer::garbage(),
        Answer::status(500, "x"),
        Answer::status(404, "x"),
    ] {
        let api = Server::start(move |_, _| answer.clone());
        assert!(run(&api).is_err());
        assert!(api.seen("PATCH").is_empty() && api.seen("GET").len() <= 4);
    }
    // The second page is missing.
    let first = json!({"metadata": {"continue": "a&b"}, "items": [vpa("web", "7")]}).to_string();
    let halved = Server::start(move |request, _| match request.path.contains("continue=a%26b") {
        true => Answer::status(410, "{}"),
        false => Answer::ok(&first),
    });
    assert!(run(&halved).is_err());
    assert!(halved.seen("PATCH").is_empty());
}

#[test]
fn pass_ends_after_repeated_refusals() {
    let _turn = crate::common::beside();
    let items = (0..50).map(|number| vpa(&format!("web{number}"), "7")).collect();
    let api = api(items, |_| Answer::status(403, "{}"));
    let why = run(&api).unwrap_err().to_string();
    assert!(why.contains("5 objects in a row"), "{why}");
    assert_eq!(api.seen("PATCH").len(), 5);
}

#[test]
fn only_the_leader_writes_and_a_lease_passes_on() {
    let _turn = crate::common::beside();
    let objects = api(vec![vpa("web", "7")], |_| Answer::ok("{}"));
    let prometheus = prometheus(&[("shop", POD, "nginx", DAYS, &advice(100))]);
    let summary = pass(client(&objects.url), &prometheus).run(|_| Ok(false)).unwrap();
    assert_eq!((summary.written, objects.seen("PATCH").len()), (0, 0), "{summary:?}");

    // A single lease, with versions as in Kubernetes.
    let lease: Arc<Mutex<Option<Value>>> = Arc::default();
    let server = Server::start(move |request, number| {
        let mut lease = lease.lock().unwrap();
        let mut sent = serde_json::from_str::<Value>(&request.body).unwrap_or_default();
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        match &*lease {
            None if request.method == "GET" => return Answer::status(404, "{}"),
            Some(lease) if request.method == "GET" => return Answer::ok(&lease.to_string()),
            // A lease that is created has no version yet.
            lease if lease.as_ref().map_or(Value::Null, version) != version(&sent) => {
                return Answer::status(409, "{}");
            }
            _ => sent["metadata"]["resourceVersion"] = json!(number.to_string()),
        }
        Answer::ok(&lease.insert(sent).to_string())
    });
    let api = Api::new(client(&server.url), PATIENCE);
    let name = "kube-system/vellum-recommender";
    let lasting = Duration::from_secs(1);
    let mut first = Lease::new(name.parse().unwrap(), "first".into(), lasting);
    let mut second = Lease::new(name.parse().unwrap(), "second".into(), lasting);
    assert!(first.hold(&api).unwrap());
    assert!(!second.hold(&api).unwrap());
    first.give_back(&api);
    assert!(second.hold(&api).unwrap(), "what is given back is taken at once");
    assert!(!first.hold(&api).unwrap());
    // The second recommender stops without giving the lease back.
    until("a lease that is not renewed passes on", || first.hold(&api).unwrap().then_some(()));
    assert!(!second.hold(&api).unwrap(), "and who had it sees that");
    assert!("x".parse::<vellum_fleet::kube::LeaseName>().is_err());
}
