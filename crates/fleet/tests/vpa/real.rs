//! A real API server with etcd: definitions of the objects, TLS with certificates on both sides, conflicts, a
//! store that is killed. Where these programs are not, that is said.
//!
//! The server is `k8s.io/apiextensions-apiserver`, which serves nothing but what is defined: it has no pods,
//! and needs none of the rest of a cluster.

use super::*;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use vellum_fleet::kube::{Lease, LeaseName};

/// Names the server's program, where it is not on the path.
const PROGRAM: &str = "VELLUM_TEST_APISERVER";
const TURNS_HANG_INTO_FAILURE: Duration = Duration::from_secs(90);
const OBJECTS: &str = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers";

/// A process that ends with this value.
struct Process(Child);

impl Process {
    fn start(command: &mut Command, log: &Path) -> Process {
        let log = fs::File::create(log).unwrap();
        let command = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Process(command.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Ports that are free, below those that the kernel gives to others meanwhile.
fn ports() -> [u16; 3] {
    let from = 15_000 + (std::process::id() % 1000) as u16 * 10;
    let mut free = (from..32_000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    std::array::from_fn(|_| free.next().expect("a free port"))
}

fn openssl(folder: &Path, args: &[&str]) {
    let said = Command::new("openssl").current_dir(folder).args(args).output().unwrap();
    assert!(said.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
}

/// An authority, and what it vouches for.
fn certificates(folder: &Path) {
    const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let request = |more: &[&str]| openssl(folder, &[&["req"], &KEY[..], more].concat());
    request(&["-x509", "-days", "1", "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.crt"]);
    for (name, subject, extensions) in [
        ("server", "/CN=server", "subjectAltName=IP:127.0.0.1\n"),
        ("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth\n"),
    ] {
        let (key, csr, crt, ext) =
            (format!("{name}.key"), format!("{name}.csr"), format!("{name}.crt"), format!("{name}.ext"));
        fs::write(folder.join(&ext), extensions).unwrap();
        request(&["-subj", subject, "-keyout", &key, "-out", &csr]);
        openssl(
            folder,
            &[
                "x509",
                "-req",
                "-days",
                "1",
                "-in",
                &csr,
                "-CA",
                "ca.crt",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-extfile",
                &ext,
                "-out",
                &crt,
            ],
        );
    }
}

struct Cluster {
    folder: tempfile::TempDir,
    etcd: PathBuf,
    ports: [u16; 3],
    store: Option<Process>,
    _server: Process,
    api: vellum_fleet::Server,
}

impl Cluster {
    fn start(etcd: PathBuf, apiserver: &Path) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        certificates(folder.path());
        let ports = ports();
        let url = format!("https://127.0.0.1:{}", ports[2]);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": at("ca.crt")}}],
            "users": [{"name": "test", "user": {"client-certificate": at("admin.crt"), "client-key": at("admin.key")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        fs::write(at("config"), config.to_string()).unwrap();
        let store = Some(store(&etcd, folder.path(), &ports));
        let mut command = Command::new(apiserver);
        for kind in ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"] {
            command.arg(format!("--{kind}")).arg(at("config"));
        }
        command
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", ports[0]))
            .arg(format!("--secure-port={}", ports[2]))
            .arg("--bind-address=127.0.0.1")
            .args(["--authentication-skip-lookup", "--authentication-tolerate-lookup-failure"])
            .arg("--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionPolicy,ValidatingAdmissionWebhook");
        for (option, file) in [
            ("client-ca-file", "ca.crt"),
            ("tls-cert-file", "server.crt"),
            ("tls-private-key-file", "server.key"),
        ] {
            command.arg(format!("--{option}")).arg(at(file));
        }
        let server = Process::start(&mut command, &at("apiserver.log"));
        let access = Access {
            authorities: Some(at("ca.crt")),
            identity: Some((at("admin.crt"), at("admin.key"))),
            ..Access::default()
        };
        let api = vellum_fleet::Server::new(Address::parse(&url, "").unwrap(), &access).unwrap();
        Cluster { folder, etcd, ports, store, _server: server, api }
    }

    fn api(&self) -> Api {
        Api::new(self.api.clone(), Patience { tries: 3, answer: Duration::from_secs(4), ..PATIENCE })
    }

    fn kill_store(&mut self) {
        self.store = None;
    }

    fn restore(&mut self) {
        self.store = Some(store(&self.etcd, self.folder.path(), &self.ports));
    }

    fn until<T>(&self, what: &str, mut done: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(value) = done() {
                return value;
            }
            if began.elapsed() > TURNS_HANG_INTO_FAILURE {
                let log = fs::read_to_string(self.folder.path().join("apiserver.log")).unwrap_or_default();
                panic!("{what} did not come about: {log}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn store(etcd: &Path, folder: &Path, ports: &[u16; 3]) -> Process {
    let [client, peer] = [ports[0], ports[1]].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = Command::new(etcd);
    command.arg("--data-dir").arg(folder.join("etcd"));
    command.args(["--unsafe-no-fsync", "--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    Process::start(&mut command, &folder.join("etcd.log"))
}

/// A definition of objects, which are of any form but for what is in `properties`.
fn definition(group: &str, plural: &str, kind: &str, has_status: bool, properties: Value) -> Value {
    let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            }],
        },
    })
}

/// As upstream's, for what is written: the status must fit.
fn of_autoscalers() -> Value {
    let quantities = json!({"type": "object", "additionalProperties": {
        "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
        "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$"}});
    let text = json!({"type": "string"});
    json!({
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "status": {"type": "object", "properties": {
            "recommendation": {"type": "object", "properties": {"containerRecommendations": {"type": "array", "items": {
                "type": "object", "required": ["target"],
                "properties": {"containerName": text, "target": quantities, "lowerBound": quantities,
                               "upperBound": quantities, "uncappedTarget": quantities},
            }}}},
            "conditions": {"type": "array", "items": {
                "type": "object", "required": ["status", "type"],
                "properties": {"type": text, "status": text, "reason": text, "message": text,
                               "lastTransitionTime": {"type": "string", "format": "date-time"}},
            }},
        }},
    })
}

fn of_leases() -> Value {
    let (text, time) = (json!({"type": "string"}), json!({"type": "string", "format": "date-time"}));
    let number = json!({"type": "integer", "format": "int32"});
    json!({"spec": {"type": "object", "properties": {
        "holderIdentity": text, "leaseDurationSeconds": number, "leaseTransitions": number,
        "acquireTime": time, "renewTime": time,
    }}})
}

#[test]
fn a_real_server_takes_the_numbers() {
    let named = std::env::var_os(PROGRAM).map(PathBuf::from).filter(|path| path.is_file());
    let (Some(etcd), Some(apiserver), Some(_)) =
        (on_path("etcd"), named.or_else(|| on_path("apiextensions-apiserver")), on_path("openssl"))
    else {
        return vellum_skip::skip(
            "etcd (Debian: etcd-server), openssl and apiextensions-apiserver (go install \
             k8s.io/apiextensions-apiserver@v0.32.0; on the path, or named by VELLUM_TEST_APISERVER) are not all here",
        );
    };
    let mut cluster = Cluster::start(etcd, &apiserver);
    let api = cluster.api();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let vpa = definition(
        "autoscaling.k8s.io",
        "verticalpodautoscalers",
        "VerticalPodAutoscaler",
        true,
        of_autoscalers(),
    );
    let lease = definition("coordination.k8s.io", "leases", "Lease", false, of_leases());
    cluster.until("a definition", || api.create(definitions, &vpa).ok());
    cluster.until("another definition", || api.create(definitions, &lease).ok());
    cluster.until("a list", || api.list("/apis/autoscaling.k8s.io/v1/verticalpodautoscalers").ok());

    let object = |name: &str, kind: &str, policies: Value| {
        json!({
            "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": name},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
                "recommenders": [{"name": "vellum"}],
                "resourcePolicy": {"containerPolicies": policies},
            },
        })
    };
    for object in [
        object("web", "Deployment", json!([{"containerName": "*", "maxAllowed": {"memory": "120Mi"}}])),
        object("db", "StatefulSet", json!([{"containerName": "proxy", "mode": "Off"}])),
        object("new", "DaemonSet", json!([])),
    ] {
        cluster.until("an object", || api.create(OBJECTS, &object).ok());
    }
    let days = "691200";
    let prometheus = prometheus(&[
        ("shop", "web-5d4f8b9c6-x2k4z", "nginx", days, &(100 * MIB).to_string()),
        ("shop", "web-7bcd-bbbbb", "nginx", days, &(200 * MIB).to_string()),
        ("shop", "db-0", "postgres", days, &(300 * MIB).to_string()),
        ("shop", "db-0", "proxy", days, &(300 * MIB).to_string()),
        ("shop", "new-x2k4z", "main", "60", &(300 * MIB).to_string()),
    ]);
    let mut pass = pass(cluster.api.clone(), &prometheus);
    pass.api = cluster.api();
    pass.is_dry = true;
    assert_eq!(pass.run(|_| panic!("nobody writes")).unwrap().written, 3);
    pass.is_dry = false;
    // Somebody changes an object between reading and writing it: a real conflict.
    let mut meddled = false;
    let summary = pass
        .run(|api| {
            if !std::mem::replace(&mut meddled, true) {
                api.merge(&format!("{OBJECTS}/db"), &json!({"metadata": {"labels": {"a": "b"}}})).unwrap();
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
    let (mut first, mut second) = (Lease::new(name.clone(), "a".into()), Lease::new(name, "b".into()));
    assert!(first.hold(&api).unwrap() && !second.hold(&api).unwrap());
    first.give_back(&api);
    assert!(second.hold(&api).unwrap());

    cluster.kill_store();
    assert!(pass.run(|_| Ok(true)).is_err(), "without a store there is no list");
    cluster.restore();
    let again = cluster.until("recovery", || pass.run(|_| Ok(true)).ok());
    assert_eq!((again.objects, again.written), (3, 0), "{again:?}");
}
