//! A real API server with etcd for tests, which has VerticalPodAutoscalers and leases.
//!
//! The server is `k8s.io/apiextensions-apiserver`, which serves only defined objects: it has no pods and
//! needs no other part of a cluster. Tests of whole fleets also use this file.

use super::PATIENCE;
use crate::common::certificate::{EC, HOST, certificate};
use crate::common::node::{Running, port, until};
use crate::common::prometheus::Prometheus;
use crate::common::{FLEET, client, has};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vellum_fleet::Access;
use vellum_fleet::kube::{Api, Method, Patience};

/// Environment variable: the server's program, if it is not on the path.
const PROGRAM: &str = "VELLUM_TEST_APISERVER";
/// The objects of the test's namespace.
pub(crate) const OBJECTS: &str = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers";
/// Makes a certificate authority, and certificates signed by it.
fn certificates(folder: &Path) {
    let by_authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE"];
    let of_client = ["-addext", "extendedKeyUsage=clientAuth"];
    assert!(certificate(folder, "ca", "/CN=test", &[&EC]));
    assert!(certificate(folder, "server", "/CN=server", &[&EC, &by_authority, &HOST]));
    let admin = "/O=system:masters/CN=admin";
    assert!(certificate(folder, "admin", admin, &[&EC, &by_authority, &of_client]));
}

pub(crate) struct Cluster {
    folder: PathBuf,
    /// Called on each command before it runs.
    prepare: Box<dyn Fn(&mut Command)>,
    /// The ports of etcd for clients and peers, and the server's.
    ports: [u16; 3],
    store: Option<Running>,
    server: Option<Running>,
    pub(crate) url: String,
}

impl Cluster {
    /// Starts a cluster in this folder, which outlives it, and defines autoscalers and leases. `None`, with a
    /// message, if a program is missing.
    pub(crate) fn start(folder: &Path, prepare: Box<dyn Fn(&mut Command)>) -> Option<Cluster> {
        let program = std::env::var(PROGRAM).unwrap_or_else(|_| "apiextensions-apiserver".to_owned());
        let made = "go install k8s.io/apiextensions-apiserver@v0.32.0, and name it by VELLUM_TEST_APISERVER";
        if !has("etcd", "Debian: etcd-server") || !has("openssl", "Debian: openssl") || !has(&program, made) {
            return None;
        }
        fs::create_dir_all(folder).unwrap();
        certificates(folder);
        let ports = [port(), port(), port()];
        let (folder, url) = (folder.to_owned(), format!("https://127.0.0.1:{}", ports[2]));
        let mut cluster = Cluster { folder, prepare, ports, store: None, server: None, url };
        cluster.restore();
        cluster.serve(&program);
        cluster.define();
        Some(cluster)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts a process whose output goes to a file of this name.
    fn run(&self, command: &mut Command, log: &str) -> Option<Running> {
        let log = fs::File::create(self.at(log)).unwrap();
        (self.prepare)(command);
        Some(Running::start(command.stdout(log.try_clone().unwrap()).stderr(log)))
    }

    fn serve(&mut self, program: &str) {
        let (url, authority) = (&self.url, self.at("ca.crt"));
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": authority}}],
            "users": [{"name": "test", "user": {"client-certificate": self.at("admin.crt"), "client-key": self.at("admin.key")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        fs::write(self.at("config"), config.to_string()).unwrap();
        let mut command = Command::new(program);
        command
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.ports[0]))
            .arg(format!("--secure-port={}", self.ports[2]))
            .arg("--bind-address=127.0.0.1")
            .args(["--authentication-skip-lookup", "--authentication-tolerate-lookup-failure"])
            .arg("--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionPolicy,ValidatingAdmissionWebhook");
        for (option, file) in [
            ("kubeconfig", "config"),
            ("authentication-kubeconfig", "config"),
            ("authorization-kubeconfig", "config"),
            ("client-ca-file", "ca.crt"),
            ("tls-cert-file", "server.crt"),
            ("tls-private-key-file", "server.key"),
        ] {
            command.arg(format!("--{option}")).arg(self.at(file));
        }
        self.server = self.run(&mut command, "apiserver.log");
    }

    /// Starts etcd (again).
    pub(crate) fn restore(&mut self) {
        let [client, peer] = [0, 1].map(|at| format!("http://127.0.0.1:{}", self.ports[at]));
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(self.at("etcd")).arg("--unsafe-no-fsync");
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("default={peer}")]);
        self.store = self.run(&mut command, "etcd.log");
    }

    fn define(&self) {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let vpa = ("autoscaling.k8s.io", "VerticalPodAutoscaler", json!({"status": {}}), of_autoscalers());
        let lease = ("coordination.k8s.io", "Lease", json!({}), of_leases());
        for (group, kind, subresources, properties) in [vpa, lease] {
            let singular = kind.to_lowercase();
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {
                    "name": format!("{singular}s.{group}"),
                    "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
                },
                "spec": {
                    "group": group, "scope": "Namespaced",
                    "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true, "subresources": subresources,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    }],
                },
            });
            until("a definition", || self.api().write(Method::Post, definitions, &definition).ok());
        }
        until("a list", || self.api().list("/apis/autoscaling.k8s.io/v1/verticalpodautoscalers").ok());
    }

    /// Creates an object that names the recommender `vellum`.
    pub(crate) fn autoscaler(&self, name: &str, kind: &str, policies: &Value) {
        let object = json!({
            "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": name},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name},
                "recommenders": [{"name": "vellum"}],
                "resourcePolicy": {"containerPolicies": policies},
            },
        });
        let api = self.api();
        until("an object", || api.write(Method::Post, OBJECTS, &object).ok());
    }

    /// A client with an administrator's credentials.
    pub(crate) fn server(&self) -> vellum_fleet::Server {
        let identity = Some((self.at("admin.crt"), self.at("admin.key")));
        client(&self.url, &Access { authorities: Some(self.at("ca.crt")), identity, ..Access::default() })
    }

    pub(crate) fn api(&self) -> Api {
        Api::new(self.server(), Patience { answer: Duration::from_secs(4), ..PATIENCE })
    }

    pub(crate) fn kill_store(&mut self) {
        self.store = None;
    }

    /// A command of the recommender with this history.
    pub(crate) fn recommender(&self, prometheus: &Prometheus) -> Command {
        let mut command = Command::new(FLEET);
        command.args(["recommend", "kubernetes", "--api", &self.url, "--prometheus"]);
        command.arg(format!("http://{}", prometheus.listen));
        self.identify(&mut command, ["--api-ca-file", "--client-certificate", "--client-key"]);
        command
    }

    /// Names the files of an administrator's credentials in options for authority, certificate and key.
    pub(crate) fn identify(&self, command: &mut Command, options: [&str; 3]) {
        for (option, file) in options.into_iter().zip(["ca.crt", "admin.crt", "admin.key"]) {
            command.arg(option).arg(self.at(file));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.at("apiserver.log")).unwrap_or_default();
            eprintln!("the API server: {log}");
        }
    }
}

/// The numbers of an object's container `main`, in bytes: lower bound, target, uncapped target, upper bound.
pub(crate) fn numbers(object: &Value) -> Option<[f64; 4]> {
    let entry = object["status"]["recommendation"]["containerRecommendations"].get(0)?;
    assert_eq!(entry["containerName"], "main", "{object}");
    let bytes = |number: &str| -> Option<f64> { entry[number]["memory"].as_str()?.parse().ok() };
    let numbers = ["lowerBound", "target", "uncappedTarget", "upperBound"].map(bytes);
    Some(numbers.map(|number| number.unwrap_or_else(|| panic!("{object}"))))
}

/// Upstream's definition of the fields that are written, so the status must fit.
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
