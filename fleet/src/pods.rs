//! Finds the names of containers in a list of the node's pods. The list comes from the kubelet's read-only
//! endpoint (`/pods`), or from a file like the output of `kubectl get pods -o json`, which another program
//! updates.
//!
//! The list is read again when a container appears that is not in it, and seldom otherwise. Without a
//! list, containers are named by their cgroups' paths, and a notice gives the reason ([`Pods::trouble`]).
//!
//! Invariants: a list is bounded in length, an answer also in time ([`LIMITS`]). After an unreadable list the
//! last readable one stays in force. A list only gives names: it adds no cgroup to those watched.

use crate::Error;
use crate::address::Address;
use crate::http::{Access, Limits, Server};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bounds of a list. The kubelet's has about 10 KiB per pod.
const LIMITS: Limits = Limits { bytes: 64 << 20, time: Duration::from_secs(3) };
/// The time between two requests while a container is missing from the list, …
const AGAIN: Duration = Duration::from_secs(5);
/// … and while none is.
const AGAIN_IDLE: Duration = Duration::from_secs(300);
/// The kubelet's reason for the end of an OOM-killed container.
const OOM_KILLED: &str = "OOMKilled";
/// The annotation with the UID in the name of a static pod's group.
const STATIC_UID: &str = "kubernetes.io/config.hash";

/// The source of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodsFrom {
    /// An HTTP endpoint.
    Address(Address),
    /// A file.
    File(PathBuf),
}

impl std::str::FromStr for PodsFrom {
    type Err = Error;

    fn from_str(text: &str) -> Result<PodsFrom, Error> {
        if !text.is_empty() && !text.contains("://") {
            return Ok(PodsFrom::File(text.into()));
        }
        Address::parse(text, "/pods").map(PodsFrom::Address).map_err(|_| {
            Error(format!("{text:?}: write http://HOST:PORT/pods, https://HOST:PORT/pods, or a file's path"))
        })
    }
}

/// The name of a container.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Named {
    pub(crate) namespace: String,
    pub(crate) pod: String,
    /// `None` for the pod's sandbox, which keeps its namespaces.
    pub(crate) container: Option<String>,
    /// True if the previous container in the pod was killed because of a lack of memory.
    pub(crate) was_oom_killed: bool,
}

/// Names by container ids and by pod UIDs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    containers: HashMap<String, Named>,
    pods: HashMap<String, Named>,
}

#[derive(Deserialize)]
struct PodList {
    items: Option<Vec<Pod>>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    status: Option<Status>,
}

#[derive(Deserialize)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    annotations: Option<HashMap<String, serde_json::Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
    ephemeral_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Deserialize)]
struct ContainerStatus {
    name: String,
    /// `containerd://ID`; missing before the container starts.
    #[serde(rename = "containerID")]
    id: Option<String>,
    #[serde(default, rename = "lastState")]
    last: serde_json::Value,
}

impl Names {
    pub(crate) fn parse(json: &[u8]) -> Result<Names, Error> {
        let list = serde_json::from_slice(json);
        let list: PodList = list.map_err(|why| Error(format!("it is no list of pods: {why}")))?;
        let mut names = Names::default();
        for Pod { metadata, status } in list.items.unwrap_or_default() {
            let (Some(pod), Some(namespace)) = (metadata.name, metadata.namespace) else { continue };
            let named = Named { namespace, pod, ..Named::default() };
            let noted = metadata.annotations.as_ref().and_then(|notes| notes.get(STATIC_UID)?.as_str());
            let uids = metadata.uid.as_deref().into_iter().chain(noted);
            names.pods.extend(uids.map(|uid| (uid.to_owned(), named.clone())));
            let Some(status) = status else { continue };
            let groups = [
                status.container_statuses,
                status.init_container_statuses,
                status.ephemeral_container_statuses,
            ];
            for container in groups.into_iter().flatten().flatten() {
                let Some(id) = container.id.as_deref().and_then(|id| id.rsplit("://").next()) else {
                    continue;
                };
                let was_oom_killed = container.last["terminated"]["reason"] == OOM_KILLED;
                let named = Named { container: Some(container.name), was_oom_killed, ..named.clone() };
                names.containers.insert(id.to_owned(), named);
            }
        }
        Ok(names)
    }

    /// The name of the container with this id, or else of its pod.
    pub(crate) fn of(&self, pod: &str, id: &str) -> Option<&Named> {
        self.containers.get(id).or_else(|| self.pods.get(pod))
    }

    fn knows(&self, id: &str) -> bool {
        self.containers.contains_key(id)
    }
}

/// The opened source of the list.
#[derive(Debug)]
enum Source {
    Server(Server),
    File(PathBuf),
}

/// The list and its updates.
#[derive(Debug)]
pub(crate) struct Pods {
    source: Source,
    pub(crate) names: Names,
    asked: Option<Instant>,
    again: Duration,
    /// Containers that were missing from the last list.
    unknown: HashSet<String>,
    trouble: Option<String>,
}

impl Pods {
    pub(crate) fn new(from: PodsFrom, access: &Access) -> Result<Pods, Error> {
        let source = match from {
            PodsFrom::Address(address) => Source::Server(Server::new(address, access)?),
            PodsFrom::File(path) => Source::File(path),
        };
        let (names, unknown) = (Names::default(), HashSet::new());
        Ok(Pods { source, names, asked: None, again: AGAIN, unknown, trouble: None })
    }

    /// The reason for which the list is not current.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Reads the list if that is due; `ids` are the existing containers. Returns whether anything may have
    /// changed.
    pub(crate) fn refresh<'a>(&mut self, ids: impl Iterator<Item = &'a str> + Clone) -> bool {
        if ids.clone().next().is_none() {
            return false;
        }
        let is_new = |id: &str| !self.names.knows(id) && !self.unknown.contains(id);
        if let Some(asked) = self.asked {
            // Sandboxes are in no list, so the wait grows while only they are missing.
            let due = if ids.clone().any(is_new) { AGAIN } else { self.again };
            if asked.elapsed() < due {
                return false;
            }
        }
        let before = self.trouble.take();
        let list = self.fetch().and_then(|json| Names::parse(&json));
        self.asked = Some(Instant::now());
        let was_new = ids.clone().any(is_new);
        let changed = match list {
            Ok(names) => {
                let changed = names != self.names;
                self.names = names;
                changed || before.is_some()
            }
            Err(why) => {
                self.trouble = Some(why.to_string());
                before != self.trouble
            }
        };
        self.unknown = ids.filter(|id| !self.names.knows(id)).map(str::to_owned).collect();
        self.again = match (self.unknown.is_empty() && self.trouble.is_none(), was_new) {
            (true, _) => AGAIN_IDLE,
            (false, true) => AGAIN,
            (false, false) => (self.again * 2).min(AGAIN_IDLE),
        };
        changed
    }

    fn fetch(&self) -> Result<Vec<u8>, Error> {
        match &self.source {
            Source::Server(server) => server.get("", &LIMITS).map_err(|why| Error(why.to_string())),
            Source::File(path) => {
                let mut bytes = Vec::new();
                let read =
                    fs::File::open(path).and_then(|file| file.take(LIMITS.bytes).read_to_end(&mut bytes));
                let read = read.map_err(|why| Error(format!("the list of pods cannot be read: {why}")));
                read.map(|_| bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    const LIST: &str = r#"{"kind":"PodList","items":[
        {"metadata":{"name":"web-0","namespace":"shop","uid":"u1"},"spec":{"containers":[]},
         "status":{"containerStatuses":[{"name":"nginx","containerID":"containerd://aa","restartCount":3,
                     "lastState":{"terminated":{"reason":"OOMKilled","exitCode":137}}},{"name":"new","lastState":{}}],
                   "initContainerStatuses":[{"name":"init","containerID":"cri-o://bb","lastState":{"terminated":{"reason":"Error"}}}],"ephemeralContainerStatuses":null}},
        {"metadata":{"name":"etcd","namespace":"kube-system","uid":"u2","annotations":{"kubernetes.io/config.hash":"h2"}},"status":{}},
        {"metadata":{"namespace":"x"}}]}"#;

    #[test]
    fn names_are_found_by_container_id_or_pod() {
        let names = Names::parse(LIST.as_bytes()).unwrap();
        let told = |pod: &str, id: &str| {
            names.of(pod, id).map(|named| format!("{}/{} {:?}", named.namespace, named.pod, named.container))
        };
        assert_eq!(told("?", "aa").unwrap(), "shop/web-0 Some(\"nginx\")");
        assert_eq!(told("?", "bb").unwrap(), "shop/web-0 Some(\"init\")");
        assert_eq!(told("u1", "sandbox").unwrap(), "shop/web-0 None");
        assert_eq!(told("h2", "?").unwrap(), "kube-system/etcd None");
        assert_eq!(told("?", "?"), None);
        let was_oom_killed = |id: &str| names.of("?", id).unwrap().was_oom_killed;
        assert!(was_oom_killed("aa") && !was_oom_killed("bb"));
        assert_eq!(Names::parse(b"{\"items\":null}").unwrap(), Names::default());
        for wrong in [&b""[..], b"[]", b"{\"items\":[{}]}", b"{\"items\":7}", b"\xff"] {
            assert!(Names::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    /// A server that gives the answers one after the other.
    fn serving(answers: Vec<Vec<u8>>) -> (PodsFrom, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let from = format!("http://{}/pods", listener.local_addr().unwrap()).parse().unwrap();
        let thread = std::thread::spawn(move || {
            for answer in answers {
                let mut stream = listener.accept().unwrap().0;
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(&answer);
            }
        });
        (from, thread)
    }

    #[test]
    fn failed_list_keeps_the_last_one_and_reports_why() {
        let good = format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{LIST}");
        let (from, thread) = serving(vec![
            good.into_bytes(),
            b"HTTP/1.1 500 Internal Server Error\r\n\r\n{\"items\":[]}".to_vec(),
            b"garbage\xff".to_vec(),
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(),
            b"HTTP/1.1 200 OK\r\n\r\n{\"items\":[".to_vec(),
        ]);
        let mut pods = Pods::new(from, &Access::default()).unwrap();
        assert!(!pods.refresh(std::iter::empty()), "without containers nobody is asked");
        assert!(pods.refresh(["aa"].into_iter()) && pods.trouble().is_none());
        pods.asked = Some(Instant::now().checked_sub(2 * AGAIN).unwrap());
        assert!(!pods.refresh(["aa"].into_iter()), "all are known: it is asked for seldom");
        for (number, why) in
            ["500", "cannot be used", "no list of pods", "no list of pods"].into_iter().enumerate()
        {
            pods.asked = Some(Instant::now().checked_sub(2 * AGAIN).unwrap());
            let new = format!("new{number}");
            assert!(pods.refresh(["aa", new.as_str()].into_iter()));
            assert!(pods.trouble().is_some_and(|said| said.contains(why)), "{:?}", pods.trouble());
            assert!(pods.names.knows("aa"));
            assert!(!pods.refresh(["aa", new.as_str()].into_iter()), "not asked again at once");
        }
        thread.join().unwrap();
        let mut gone = Pods::new(PodsFrom::File("/nowhere/pods.json".into()), &Access::default()).unwrap();
        assert!(gone.refresh(["aa"].into_iter()));
        assert!(gone.trouble().is_some_and(|why| why.contains("No such file")), "{:?}", gone.trouble());
    }
}
