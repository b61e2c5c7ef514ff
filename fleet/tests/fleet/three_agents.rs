//! A test of a fleet on one machine. Three agents watch real jobs in separate cgroups, one real Prometheus
//! scrapes them by https, and `vellum recommend kubernetes` writes to a real API server.
//!
//! ```text
//! three times: jobs ◀─ vellum agent ◀─https─ Prometheus ◀─ vellum recommend ─▶ API server ─▶ all events
//!                           ×                     ×               ×
//! ```
//!
//! The test starts without history and waits for the first recommendation. Then the processes marked by a
//! cross are killed by `kill -9` at random moments and started again. At last a new object is added, which
//! the recommender must notice. Every recommended number ever written must lie between the memory that its
//! job touches all the time and the memory that it holds. Everything must recover.
//!
//! The seed is printed. VELLUM_FLEET_JOBS sets the number of jobs, and VELLUM_FLEET_ROUNDS the number of
//! kills. Without an API server, the chain ends at Prometheus. Everything runs in cgroups below one cgroup
//! of the test, and is removed with the test, even if it is killed.

use crate::common::certificate::{EC, HOST, certificate};
use crate::common::node::{
    Agent, KINDS, Node, Running, TOKEN, by_cgroupfs, by_systemd, enter, pod_list, pod_name, port, within,
};
use crate::common::prometheus::Prometheus;
use crate::common::{self, setting, text};
use crate::vpa::cluster::{Cluster, OBJECTS, numbers};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use vellum_fleet::kube::Method;
use vellum_random::Rng;

const NODES: usize = 3;
const JOBS_ENV: &str = "VELLUM_FLEET_JOBS";
const ROUNDS_ENV: &str = "VELLUM_FLEET_ROUNDS";
/// The defaults: jobs and rounds.
const JOBS: u64 = 12;
const JOBS_MAX: u64 = 30;
const ROUNDS: u64 = 1;
/// After this time, the test counts as hanging. A lease passes on after a minute.
const PATIENCE: Duration = Duration::from_secs(600);
/// The longest time in milliseconds from a healthy state to a kill, and from a kill to the next start.
const LATEST_MS: u64 = 3000;
const MIB: f64 = 1048576.0;
/// A job's memory besides its data: the C library and the program.
const BESIDE: f64 = 8.0 * MIB;
/// Some of an object's numbers are above the recommendation by this factor, and rounded up.
const MARGIN: f64 = 1.1;
const ROUNDED: f64 = MIB;
/// The largest upper bound, after little history, in targets.
const ABOVE: f64 = 11.0;

/// Touches `argv[1]` MiB all the time, with about 3 % of a processor, and `argv[2]` MiB once.
const JOB: &str = r#"
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
    size_t hot = strtoul(words[1], 0, 10) << 20, all = hot + (strtoul(words[count - 1], 0, 10) << 20);
    volatile char *memory = mmap(0, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    madvise((void *)memory, all, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < all; at += 4096) memory[at] = 1;
    for (;;) {
        clock_t until = clock() + CLOCKS_PER_SEC * 3 / 1000;
        do {
            for (size_t at = 0; at < hot; at += 4096) memory[at]++;
        } while (clock() < until);
        usleep(97000);
    }
}
"#;

/// A workload with a pod on each node.
#[derive(Debug)]
struct Workload {
    name: String,
    kind: &'static str,
    /// The memory that each pod touches all the time, and only once, in MiB.
    hot: u64,
    cold: u64,
}

impl Workload {
    fn random(number: usize, random: &mut Rng) -> Workload {
        let (name, kind) = (format!("work{number}"), KINDS[number % KINDS.len()]);
        Workload { name, kind, hot: 8 + random.below(25), cold: 4 + random.below(13) }
    }

    fn pod(&self, node: usize) -> String {
        pod_name(self.kind, &self.name, node)
    }

    /// True if a pod may need this much; `more` is the factor that a number may be above the recommendation.
    fn is_plausible(&self, bytes: f64, more: f64) -> bool {
        let (hot, all) = (self.hot as f64 * MIB, (self.hot + self.cold) as f64 * MIB + BESIDE);
        bytes >= hot && bytes <= all * more + ROUNDED
    }
}

struct Fleet {
    workloads: Vec<Workload>,
    agents: Vec<Agent>,
    prometheus: Prometheus,
    kubernetes: Option<Kubernetes>,
    node: Node,
}

/// The cluster, its recommender, and a log of all writes.
struct Kubernetes {
    recommender: Option<Running>,
    watch: Running,
    events: PathBuf,
    cluster: Cluster,
}

/// A part that is killed.
#[derive(Debug, Clone, Copy)]
enum Part {
    Agent(usize),
    Prometheus,
    Recommender,
}

/// Makes commands run in the group of the services, which are no jobs.
fn services(node: &Node) -> impl Fn(&mut Command) + 'static {
    let group = node.root.join("services");
    move |command| enter(&group, command)
}

impl Fleet {
    /// Starts the jobs, without agents; `None`, with a message, if that is impossible.
    fn jobs(random: &mut Rng) -> Option<(Node, Vec<Workload>)> {
        let mut node = Node::make("fleet")?;
        let folder = node.folder.path().to_owned();
        let job = common::compiled("three_agents", JOB)?;
        if !certificate(&folder, "tls", "/CN=vellum", &[&EC, &HOST]) {
            return None;
        }
        fs::write(folder.join("token"), TOKEN).unwrap();
        let count = setting(JOBS_ENV, JOBS).clamp(NODES as u64, JOBS_MAX) as usize / NODES;
        let workloads: Vec<Workload> = (0..count).map(|number| Workload::random(number, random)).collect();
        for number in 0..NODES {
            let mut pods = Vec::new();
            for (at, workload) in workloads.iter().enumerate() {
                let of_all = (number * count + at) as u32;
                let group = if number == 1 { by_systemd(of_all) } else { by_cgroupfs(of_all) };
                let mut command = Command::new(&job);
                command.args([workload.hot.to_string(), workload.cold.to_string()]);
                node.run(&format!("node-{number}/{group}"), &mut command);
                pods.push((workload.pod(number), of_all));
            }
            let pods: Vec<_> =
                pods.iter().map(|(pod, of_all)| ("shop", pod.as_str(), "main", *of_all)).collect();
            fs::write(folder.join(format!("pods-{number}")), pod_list(&pods)).unwrap();
        }
        Some((node, workloads))
    }

    fn start(node: Node, workloads: Vec<Workload>) -> Option<Fleet> {
        let folder = node.folder.path().to_owned();
        let cluster = Cluster::start(&folder.join("cluster"), Box::new(services(&node)));
        let agents: Vec<Agent> =
            (0..NODES).map(|number| agent(&node, number, &format!("127.0.0.1:{}", port()))).collect();
        let targets: Vec<&String> = agents.iter().map(|agent| &agent.address).collect();
        let at = |name: &str| folder.join(name);
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n- job_name: vellum\n  honor_labels: true\n  \
             scheme: https\n  tls_config: {{ca_file: {:?}}}\n  authorization: {{credentials_file: {:?}}}\n  \
             static_configs: [{{targets: {targets:?}}}]\n",
            at("tls.crt"),
            at("token"),
        );
        let prometheus = Prometheus::start(&folder, &config, services(&node))?;
        let kubernetes = cluster.map(|cluster| {
            // The first workload's object comes later.
            for workload in &workloads[1..] {
                cluster.autoscaler(&workload.name, workload.kind, &json!([]));
            }
            let events = at("events");
            let watch = Running::start(&mut watch(&node, &cluster, &events));
            Kubernetes { recommender: None, watch, events, cluster }
        });
        let mut fleet = Fleet { workloads, agents, prometheus, kubernetes, node };
        fleet.recommend("2s", "kube-system/vellum-recommender");
        Some(fleet)
    }

    /// Starts a recommender.
    fn recommend(&mut self, every: &str, lease: &str) {
        let Some(kubernetes) = &mut self.kubernetes else { return };
        let mut command = kubernetes.cluster.recommender(&self.prometheus);
        command.args(["--over", "1h", "--least", "5s", "--every", every, "--lease", lease]);
        let log = self.node.folder.path().join("recommender.log");
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        services(&self.node)(&mut command);
        kubernetes.recommender = Some(Running::start(&mut command));
    }

    /// Starts a part (again).
    fn begin(&mut self, part: Part) {
        match part {
            Part::Agent(number) => {
                let address = self.agents[number].address.clone();
                self.agents[number] = agent(&self.node, number, &address);
            }
            Part::Prometheus => self.prometheus.begin(services(&self.node)),
            Part::Recommender => self.recommend("2s", "kube-system/vellum-recommender"),
        }
    }

    fn kill(&mut self, part: Part) {
        match part {
            Part::Agent(number) => {
                let agent = &mut self.agents[number].running.0;
                agent.kill().unwrap();
                agent.wait().unwrap();
            }
            Part::Prometheus => self.prometheus.kill(),
            Part::Recommender => {
                if let Some(kubernetes) = &mut self.kubernetes {
                    kubernetes.recommender = None;
                }
            }
        }
    }

    /// True if Prometheus has a plausible recommendation for every pod that is newer than this.
    fn is_advised_since(&self, since: SystemTime) -> bool {
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
        let advised = "vellum_job_advised_bytes{namespace=\"shop\",container=\"main\"}";
        let Some(rows) = self.prometheus.rows(&format!("{advised} and (timestamp({advised}) > {since})"))
        else {
            return false;
        };
        let mut known = 0;
        for workload in &self.workloads {
            for node in 0..NODES {
                let pod = workload.pod(node);
                let Some(row) = rows.iter().find(|row| row["metric"]["pod"] == pod.as_str()) else {
                    continue;
                };
                let bytes: f64 = row["value"][1].as_str().unwrap().parse().unwrap();
                assert!(workload.is_plausible(bytes, 1.0), "{pod}: {bytes}: {workload:?}");
                known += 1;
            }
        }
        known == self.workloads.len() * NODES
    }

    /// Adds an object while the recommender would look for it only in an hour.
    fn add_late(&mut self) {
        self.kill(Part::Recommender);
        self.clear();
        self.recommend("1h", "kube-system/another");
        let others = self.workloads.len() - 1;
        within(PATIENCE, "recommendations by another", || (self.recommended() == others).then_some(()));
        if let Some(kubernetes) = &self.kubernetes {
            let Workload { name, kind, .. } = &self.workloads[0];
            kubernetes.cluster.autoscaler(name, kind, &json!([]));
        }
        within(PATIENCE, "a recommendation for the new one", || (self.recommended() > others).then_some(()));
    }

    /// The number of objects with numbers.
    fn recommended(&self) -> usize {
        let Some(kubernetes) = &self.kubernetes else { return self.workloads.len() };
        let objects = kubernetes.cluster.api().list(OBJECTS).unwrap_or_default();
        objects.iter().filter(|object| numbers(object).is_some()).count()
    }

    /// Removes all numbers, so that they are written again.
    fn clear(&self) {
        let Some(kubernetes) = &self.kubernetes else { return };
        let api = kubernetes.cluster.api();
        for object in within(PATIENCE, "there is a list", || api.list(OBJECTS).ok()) {
            let name = object["metadata"]["name"].as_str().unwrap();
            let cleared = || {
                api.write(Method::Merge, &format!("{OBJECTS}/{name}/status"), &json!({"status": null})).ok()
            };
            within(PATIENCE, "numbers can be taken away", cleared);
        }
    }

    /// Checks every number ever written, and counts the writes.
    fn check(&mut self) -> usize {
        let Some(kubernetes) = &mut self.kubernetes else { return 0 };
        let mut count = 0;
        let all = fs::read_to_string(&kubernetes.events).unwrap();
        let whole = all.rfind('\n').map_or("", |end| &all[..end]);
        for line in whole.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let object = &event["object"];
            let name = object["metadata"]["name"].as_str().unwrap_or_else(|| panic!("{line}"));
            let workload = self.workloads.iter().find(|workload| workload.name == name).unwrap();
            if let Some([lower, target, uncapped, upper]) = numbers(object) {
                assert!(workload.is_plausible(target, MARGIN), "{workload:?}: {line}");
                assert!(workload.is_plausible(lower, 1.0), "{workload:?}: {line}");
                assert!(lower <= target && target <= upper && upper <= ABOVE * target + ROUNDED, "{line}");
                assert_eq!(uncapped, target, "{line}");
                count += 1;
            }
        }
        assert!(kubernetes.watch.0.try_wait().unwrap().is_none(), "the list of events is whole");
        count
    }
}

fn agent(node: &Node, number: usize, listen: &str) -> Agent {
    let at = |name: &str| node.folder.path().join(name);
    let mut command = Agent::command(&node.root.join(format!("node-{number}")));
    command.args(["--listen", listen, "--pods", text(&at(&format!("pods-{number}")))]);
    command.args(["--token-file", text(&at("token"))]);
    command.args(["--tls-certificate", text(&at("tls.crt")), "--tls-key", text(&at("tls.key"))]);
    services(node)(&mut command);
    Agent::run(&mut command)
}

/// Writes each change of the objects to a file, a line each.
fn watch(node: &Node, cluster: &Cluster, events: &Path) -> Command {
    let mut command = Command::new("curl");
    command.args(["-sSN", "--noproxy", "*"]);
    cluster.identify(&mut command, ["--cacert", "--cert", "--key"]);
    command.arg(format!("{}{OBJECTS}?watch=true&resourceVersion=0", cluster.url));
    command.stdout(fs::File::create(events).unwrap()).stderr(Stdio::null());
    services(node)(&mut command);
    command
}

#[test]
fn recommendations_survive_kills_of_any_component() {
    let _turn = crate::common::alone();
    if !common::has("curl", "Debian: curl") {
        return;
    }
    let mut random = Rng::new(vellum_random::test_seed(None));
    let Some((node, workloads)) = Fleet::jobs(&mut random) else { return };
    let (began, since) = (Instant::now(), SystemTime::now());
    let Some(mut fleet) = Fleet::start(node, workloads) else { return };
    let all = fleet.workloads.len();
    if fleet.kubernetes.is_some() {
        within(PATIENCE, "a first recommendation", || (fleet.recommended() > 0).then_some(()));
        println!("the first recommendation after {:.1} s", began.elapsed().as_secs_f64());
    }
    within(PATIENCE, "advice for all", || fleet.is_advised_since(since).then_some(()));
    println!("advice for {} jobs after {:.1} s", all * NODES, began.elapsed().as_secs_f64());

    let objects = if fleet.kubernetes.is_some() { all - 1 } else { all };
    within(PATIENCE, "recommendations for all", || (fleet.recommended() == objects).then_some(()));
    let mut kills = 0;
    for _ in 0..setting(ROUNDS_ENV, ROUNDS) {
        let mut parts = [Part::Agent(random.index(NODES)), Part::Prometheus, Part::Recommender];
        random.shuffle(&mut parts);
        for part in parts {
            fleet.clear();
            std::thread::sleep(Duration::from_millis(random.below(LATEST_MS)));
            fleet.kill(part);
            kills += 1;
            fleet.clear();
            std::thread::sleep(Duration::from_millis(random.below(LATEST_MS)));
            let (began, since) = (Instant::now(), SystemTime::now());
            fleet.begin(part);
            within(PATIENCE, "advice for all again", || fleet.is_advised_since(since).then_some(()));
            within(PATIENCE, "recommendations again", || (fleet.recommended() == objects).then_some(()));
            println!(
                "{part:?} was killed: all is well {:.1} s after its start",
                began.elapsed().as_secs_f64()
            );
            fleet.check();
        }
    }
    if fleet.kubernetes.is_some() {
        fleet.add_late();
        let written = fleet.check();
        assert!(written > objects * (2 + kills), "{written} numbers: each was taken away for each kill");
        println!("{written} numbers were written, and none was wrong");
    }
    for (group, job) in &mut fleet.node.jobs {
        assert!(job.0.try_wait().unwrap().is_none(), "{}: its job has ended", group.display());
    }
}
