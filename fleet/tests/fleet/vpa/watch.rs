//! Tests of watches on objects. The fake server ends or refuses them, drops versions or sends garbage.

use super::*;
use crate::common::node::until;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn object(name: &str, recommender: &str, generation: u64, version: u64) -> Value {
    json!({
        "metadata": {
            "namespace": "shop", "name": name, "uid": format!("u-{name}"), "generation": generation,
            "resourceVersion": version.to_string(),
        },
        "spec": {"targetRef": {"kind": "Deployment", "name": name}, "recommenders": [{"name": recommender}]},
    })
}

fn event(kind: &str, object: &Value) -> String {
    json!({"type": kind, "object": object}).to_string() + "\n"
}

#[test]
fn watch_counts_changed_objects_and_gaps() {
    let _turn = crate::common::beside();
    let (lists, watches) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let forbidden = Arc::new(AtomicBool::new(true));
    let is_forbidden = Arc::clone(&forbidden);
    let gone = json!({"kind": "Status", "code": 410, "message": "too old"});
    let server = Server::start(move |request, _| {
        if !request.path.contains("watch=true") {
            let version = [5, 20, 30, 40].get(lists.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or(50);
            let list = json!({"metadata": {"resourceVersion": version.to_string()}, "items": [object("web", "vellum", 1, 4)]});
            return Answer::ok(&list.to_string());
        }
        let from = request.path.split("resourceVersion=").nth(1).unwrap();
        if from == "40" && is_forbidden.load(Ordering::Relaxed) {
            return Answer::status(403, "{\"message\":\"no right to watch\"}");
        }
        match (watches.fetch_add(1, Ordering::Relaxed), from) {
            (0, "5") => Answer::ok(
                &[
                    event("BOOKMARK", &json!({"metadata": {"resourceVersion": "6"}})),
                    event("MODIFIED", &object("web", "vellum", 1, 7)),
                    event("MODIFIED", &object("web", "vellum", 2, 8)),
                    event("ADDED", &object("other", "default", 1, 9)),
                    event("DELETED", &object("gone", "vellum", 1, 10)),
                ]
                .concat(),
            ),
            (1, "10") => Answer::status(410, "{}"),
            (2, "20") => Answer::ok(&event("ERROR", &gone)),
            (3, "30") => Answer::ok("hello\n"),
            (4, "40") => Answer::ok(&event("ADDED", &object("late", "vellum", 1, 41))),
            // From then on nothing happens.
            (5.., "41") => Answer::ok("").after(Duration::from_millis(20)),
            (number, from) => panic!("watch {number} from {from}"),
        }
    });
    let prometheus = prometheus(&[]);
    let watch = pass(client(&server.url), &prometheus).watch().unwrap();
    until("it is refused", || watch.trouble().filter(|why| why.contains("no right to watch")));
    let changes = watch.take();
    assert_eq!(changes, 4, "another generation, and three gaps");
    forbidden.store(false, Ordering::Relaxed);
    until("a new object is noticed", || (watch.take() == 1).then_some(()));
    let seen = || server.seen("GET").iter().filter(|request| request.path.ends_with("=41")).count();
    until("it goes on from the last version", || (seen() > 2).then_some(()));
    assert_eq!((watch.take(), watch.trouble()), (0, None));
}
