//! Tests with a real API server and etcd: definitions of objects, TLS with certificates on both sides,
//! conflicts, and an etcd that is killed. Without these programs, they are skipped with a message.

use super::cluster::{Cluster, OBJECTS};
use super::*;
use crate::common::node::until;
use vellum_fleet::kube::{Lease, LeaseName, Method};

#[test]
fn real_server_accepts_the_numbers() {
    let _turn = crate::common::alone();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut cluster) = Cluster::start(folder.path(), Box::new(|_| ())) else { return };
    let api = cluster.api();
    for (name, kind, policies) in [
        ("web", "Deployment", json!([{"containerName": "*", "maxAllowed": {"memory": "120Mi"}}])),
        ("db", "StatefulSet", json!([{"containerName": "proxy", "mode": "Off"}])),
        ("new", "DaemonSet", json!([])),
    ] {
        cluster.autoscaler(name, kind, &policies);
    }
    let days = "691200";
    let prometheus = prometheus(&[
        ("shop", "web-5d4f8b9c6-x2k4z", "nginx", days, &(100 * MIB).to_string()),
        ("shop", "web-7bcd-bbbbb", "nginx", days, &(200 * MIB).to_string()),
        ("shop", "db-0", "postgres", days, &(300 * MIB).to_string()),
        ("shop", "db-0", "proxy", days, &(300 * MIB).to_string()),
        ("shop", "new-x2k4z", "main", "60", &(300 * MIB).to_string()),
    ]);
    let mut pass = pass(cluster.server(), &prometheus);
    pass.api = cluster.api();
    let watch = pass.watch().unwrap();
    pass.is_dry = true;
    assert_eq!(pass.run(|_| panic!("nobody writes")).unwrap().written, 3);
    pass.is_dry = false;
    // Another client changes an object between reading and writing it: a real conflict.
    let mut meddled = false;
    let summary = pass
        .run(|api| {
            if !std::mem::replace(&mut meddled, true) {
                api.write(
                    Method::Merge,
                    &format!("{OBJECTS}/db"),
                    &json!({"metadata": {"labels": {"a": "b"}}}),
                )
                .unwrap();
            }
            Ok(true)
        })
        .unwrap();
    assert_eq!((summary.written, summary.failed), (3, 0), "{summary:?}");
    let target = |name: &str, number: usize| {
        let object = api.get(&format!("{OBJECTS}/{name}")).unwrap();
        object["status"]["recommendation"]["containerRecommendations"][number].clone()
    };
    let memory = |mib: u64| json!({"memory": (mib * MIB).to_string()});
    assert_eq!(target("web", 0)["target"], memory(120), "maxAllowed");
    assert_eq!(target("web", 0)["uncappedTarget"], memory(220), "the hungriest pod");
    assert_eq!((target("db", 0)["target"].clone(), target("db", 1)), (memory(330), Value::Null));
    let new = api.get(&format!("{OBJECTS}/new")).unwrap();
    assert_eq!(new["status"]["conditions"][0]["reason"], "TooLittleKnown", "{new}");
    assert_eq!(pass.run(|_| Ok(true)).unwrap().written, 0, "nothing has changed");

    let name: LeaseName = "kube-system/vellum-recommender".parse().unwrap();
    let [mut first, mut second] = ["a", "b"].map(|who| Lease::new(name.clone(), who.into(), Lease::DURATION));
    assert!(first.hold(&api).unwrap() && !second.hold(&api).unwrap());
    first.give_back(&api);
    assert!(second.hold(&api).unwrap());

    // Earlier writes are no changes. The watch may begin late, after the first new object.
    let (mut late, mut changes) = (0, 0);
    until("a new object is noticed", || {
        cluster.autoscaler(&format!("late{late}"), "Deployment", &json!([]));
        late += 1;
        changes += watch.take();
        (changes > 0).then_some(())
    });
    assert!(changes <= late && watch.trouble().is_none(), "{changes} of {late}: {:?}", watch.trouble());
    assert_eq!(pass.run(|_| Ok(true)).unwrap().objects, 3 + late);

    cluster.kill_store();
    assert!(pass.run(|_| Ok(true)).is_err(), "without a store there is no list");
    cluster.restore();
    let again = until("recovery", || pass.run(|_| Ok(true)).ok());
    assert_eq!((again.objects, again.written), (3 + late, 0), "{again:?}");
    let mut last = watch.take();
    until("and so is one after the trouble", || {
        cluster.autoscaler(&format!("late{late}"), "Deployment", &json!([]));
        late += 1;
        last += watch.take();
        (last > 0).then_some(())
    });
}
