//! A real API server with etcd for tests, which has VerticalPodAutoscalers and leases.
//!
//! The server is `k8s.io/apiextensions-apiserver`, which serves only defined objects: it has no pods and
//! needs no other part of a cluster. Tests of whole fleets also use this file.

use super::PATIENCE;
use crate::common::FLEET;
use crate::common::certificate::{EC, HOST, certificate};
use crate::common::node::{Running, port, until};
use crate::common::prometheus::Prometheus;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vellum_fleet::kube::{Api, Method, Patience};
use vellum_fleet::{Access, Address};

/// Environment variable: the server's program, if it is not on the path.
const PROGRAM: &str = "VELLUM_TEST_APISERVER";
/// The objects of the test's namespace.
pub(crate) const OBJECTS: &str = "/apis/autoscaling.k8s.io/v1/namespaces/shop/verticalpodautoscalers";
/// Starts a process whose output goes to `log`.
fn logged(command: &mut Command, log: &Path) -> Running {
    let log = fs::File::create(log).unwrap();
    Running::start(command.stdout(log.try_clone().unwrap()).stderr(log))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Makes a certificate authority, and certificates signed by it.
fn certificates(folder: &Path) {
    let by_authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE"];
    let of_client = ["-addext", "extendedKeyUsage=clientAuth"];
    assert!(certificate(folder, "ca", "/CN=test", &[&EC]));
    assert!(certificate(folder, "server", "/CN=server", &[&EC, &by_authority, &HOST]));
    let admin = "/O=system:masters/CN=admin";
    assert!(certificate(folder, "admin", admin, &[&EC, &by_authority, &of_client]));
}

/// The required programs.
pub(crate) struct Programs {
    etcd: PathBuf,
    apiserver: PathBuf,
}

impl Programs {
    /// Finds the programs; `None`, with a message, if one is missing.
    pub(crate) fn find() -> Option<Programs> {
        let named = std::env::var_os(PROGRAM).map(PathBuf::from).filter(|path| path.is_file());
        let apiserver = named.or_else(|| on_path("apiextensions-apiserver"));
        if let (Some(etcd), Some(apiserver), Some(_)) = (on_path("etcd"), apiserver, on_path("openssl")) {
            return Some(Programs { etcd, apiserver });
        }
        vellum_skip::skip(
            "etcd (Debian: etcd-server), openssl and apiextensions-apiserver (go install \
             k8s.io/apiextensions-apiserver@v0.32.0; on the path, or named by VELLUM_TEST_APISERVER) are not all here",
        );
        None
    }
}

/// Called on each command before it runs.
pub(crate) type Prepare = Box<dyn Fn(&mut Command)>;

pub(crate) struct Cluster {
    folder: PathBuf,
    programs: Programs,
    prepare: Prepare,
    ports: [u16; 3],
    store: Option<Running>,
    _server: Running,
    pub(crate) url: String,
    /// An administrator's credentials.
    access: Access,
}

impl Cluster {
    /// Starts a cluster in this folder, which outlives it, and defines autoscalers and leases.
    pub(crate) fn start(folder: &Path, programs: Programs, prepare: Prepare) -> Cluster {
        let at = |name: &str| folder.join(name);
        certificates(folder);
        let ports = [port(), port(), port()];
        let url = format!("https://127.0.0.1:{}", ports[2]);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": at("ca.crt")}}],
            "users": [{"name": "test", "user": {"client-certificate": at("admin.crt"), "client-key": at("admin.key")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        fs::write(at("config"), config.to_string()).unwrap();
        let store = Some(store(&programs.etcd, folder, &ports, &prepare));
        let mut command = Command::new(&programs.apiserver);
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
        prepare(&mut command);
        let server = logged(&mut command, &at("apiserver.log"));
        let access = Access {
            authorities: Some(at("ca.crt")),
            identity: Some((at("admin.crt"), at("admin.key"))),
            ..Access::default()
        };
        let folder = folder.to_owned();
        let cluster = Cluster { folder, programs, prepare, ports, store, _server: server, url, access };
        cluster.define();
        cluster
    }

    fn define(&self) {
        let api = self.api();
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (group, plural) = ("autoscaling.k8s.io", "verticalpodautoscalers");
        let vpa = definition(group, plural, "VerticalPodAutoscaler", true, of_autoscalers());
        let lease = definition("coordination.k8s.io", "leases", "Lease", false, of_leases());
        until("a definition", || api.write(Method::Post, definitions, &vpa).ok());
        until("another definition", || api.write(Method::Post, definitions, &lease).ok());
        until("a list", || api.list("/apis/autoscaling.k8s.io/v1/verticalpodautoscalers").ok());
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

    pub(crate) fn server(&self) -> vellum_fleet::Server {
        vellum_fleet::Server::new(Address::parse(&self.url, "").unwrap(), &self.access).unwrap()
    }

    pub(crate) fn api(&self) -> Api {
        Api::new(self.server(), Patience { answer: Duration::from_secs(4), ..PATIENCE })
    }

    pub(crate) fn kill_store(&mut self) {
        self.store = None;
    }

    pub(crate) fn restore(&mut self) {
        self.store = Some(store(&self.programs.etcd, &self.folder, &self.ports, &self.prepare));
    }

    /// A client for a run of the recommender with this history.
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
            command.arg(option).arg(self.folder.join(file));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.folder.join("apiserver.log")).unwrap_or_default();
            eprintln!("the API server: {log}");
        }
    }
}

fn store(etcd: &Path, folder: &Path, ports: &[u16; 3], prepare: &Prepare) -> Running {
    let [client, peer] = [ports[0], ports[1]].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = Command::new(etcd);
    command.arg("--data-dir").arg(folder.join("etcd"));
    command.args(["--unsafe-no-fsync", "--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    prepare(&mut command);
    logged(&mut command, &folder.join("etcd.log"))
}

/// A definition of objects, with any fields besides those of `properties`.
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
