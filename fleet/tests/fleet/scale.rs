//! A test of a large fleet with real servers. Prometheus has eight days of many nodes' containers and
//! continues to scrape them; the API server has an object for every ten containers. One pass of
//! `vellum recommend kubernetes` with default options covers the whole fleet.
//!
//! ```text
//! job ◀─ agent ─▶ page ─▶ generator: N nodes of 30 containers ◀─ Prometheus ◀─ recommend ─▶ API server
//!                    └─▶ eight days before now ─ promtool ─────────▶ ┘
//! ```
//!
//! The generator copies a real agent's page of a real job; containers differ only in names and
//! recommendations. The largest recommendation of each container lies in a random hour of the eight days. A
//! written number is right only if every hour was read. A second pass has nothing to write.
//!
//! VELLUM_FLEET_NODES sets the number of nodes (docs/fleet.md has the figures of 1,000 nodes), and
//! VELLUM_FLEET_STEP the seconds between samples in the history.

use crate::common::node::{Agent, KINDS, Node, by_cgroupfs, pod_list, pod_name, until, within};
use crate::common::prometheus::Prometheus;
use crate::common::{self, setting, text};
use crate::vpa::cluster::{Cluster, OBJECTS, numbers};
use crate::vpa::server::{Answer, Server};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use vellum_random::Rng;

const NODES_ENV: &str = "VELLUM_FLEET_NODES";
const STEP_ENV: &str = "VELLUM_FLEET_STEP";
/// The defaults: nodes, and seconds between samples in the history.
const NODES: u64 = 4;
const STEP: u64 = 300;
/// The number of containers of a node, and of pods of a workload.
const CONTAINERS: u64 = 30;
const PODS: u64 = 10;
/// The generated history; Prometheus scrapes the latest hours itself.
const DAYS: u64 = 8;
const DAY: u64 = 86_400;
const HOUR: u64 = 3600;
const LATEST: u64 = 2 * HOUR;
/// The largest block that a Prometheus makes with a retention of fifteen days.
const BLOCK: u64 = 18 * HOUR;
/// The metrics that recommendations use.
const ASKED: [&str; 4] = ["advised_bytes", "advised_by_age_bytes", "limit_bytes", "pressure_seconds_total"];
/// After this time, the test counts as hanging, even with 1,000 nodes.
const PATIENCE: Duration = Duration::from_secs(1800);
const MIB: u64 = 1 << 20;
/// The maximum memory of a pass.
const PEAK: u64 = 1 << 30;
/// The names of the one container that an agent has watched.
const NAMES: [&str; 3] = ["the-namespace", "the-pod", "the-container"];

/// Touches 16 MiB all the time, with about 20 % of a processor.
const JOB: &str = r#"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    size_t all = 16 << 20;
    volatile char *memory = malloc(all);
    for (;;) {
        clock_t until = clock() + CLOCKS_PER_SEC / 50;
        do {
            for (size_t at = 0; at < all; at += 4096) memory[at]++;
        } while (clock() < until);
        usleep(80000);
    }
}
"#;

/// The containers with their recommendations. A container is identified by its number.
struct Fleet {
    nodes: u64,
    /// The largest recommendation in bytes, and its hour before now.
    advice: Vec<(u64, u64)>,
    /// An agent's page of one container.
    page: String,
    now: u64,
}

impl Fleet {
    fn new(nodes: u64, page: String, random: &mut Rng) -> Fleet {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let hours = (DAYS * DAY - LATEST) / HOUR - 1;
        let mut one = || (32 * MIB + random.below(1000 * MIB), LATEST / HOUR + 1 + random.below(hours));
        let advice = (0..nodes * CONTAINERS).map(|_| one()).collect();
        Fleet { nodes, advice, page, now }
    }

    fn workloads(&self) -> u64 {
        (self.nodes * CONTAINERS).div_ceil(PODS)
    }

    fn kind(workload: u64) -> &'static str {
        KINDS[workload as usize % KINDS.len()]
    }

    /// The name of a container's pod.
    fn pod(&self, container: u64) -> String {
        let (workload, number) = (container % self.workloads(), container / self.workloads());
        pod_name(Fleet::kind(workload), &format!("work{workload}"), number as usize)
    }

    /// The recommendation for a container at that many seconds before now.
    fn advised(&self, container: u64, before: u64) -> u64 {
        let (largest, hour) = self.advice[container as usize];
        if before / HOUR == hour { largest } else { largest / 2 }
    }

    /// A series of the page, for a container.
    fn series(&self, line: &str, container: u64) -> String {
        let line = line.replace(NAMES[1], &self.pod(container)).replace(NAMES[2], "main");
        line.replace(NAMES[0], "shop")
    }

    /// The series' value: the page's, except for recommendations.
    fn value(&self, line: &str, container: u64, before: u64) -> String {
        match line.split_once('{').unwrap().0 {
            "vellum_job_advised_bytes" => self.advised(container, before).to_string(),
            "vellum_job_advised_by_age_bytes" => (self.advised(container, before) / 2).to_string(),
            _ => line.rsplit_once(' ').unwrap().1.to_owned(),
        }
    }

    /// The page of a node.
    fn of_node(&self, node: u64) -> String {
        let mut page = String::new();
        for line in self.page.lines() {
            if !line.contains(NAMES[2]) {
                page += line;
                page.push('\n');
                continue;
            }
            for container in node * CONTAINERS..(node + 1) * CONTAINERS {
                let series = self.series(line, container);
                let labels = series.rsplit_once(' ').unwrap().0;
                writeln!(page, "{labels} {}", self.value(line, container, 0)).unwrap();
            }
        }
        page
    }

    /// Writes the metrics of recommendations at these times, as OpenMetrics.
    fn write(&self, path: &Path, times: impl Iterator<Item = u64>) {
        let asked = |line: &&str| {
            line.contains(NAMES[2])
                && ASKED.iter().any(|name| line.starts_with(&format!("vellum_job_{name}{{")))
        };
        let mut all = Vec::new();
        for container in 0..self.nodes * CONTAINERS {
            for line in self.page.lines().filter(asked) {
                let series = self.series(line, container);
                let labels = series.rsplit_once("} ").unwrap().0;
                let labels = format!("{labels},instance=\"n{}\",job=\"vellum\"}}", container / CONTAINERS);
                all.push((container, line, labels));
            }
        }
        let mut file = BufWriter::new(fs::File::create(path).unwrap());
        for time in times {
            for (container, line, series) in &all {
                writeln!(file, "{series} {} {time}", self.value(line, *container, self.now - time)).unwrap();
            }
        }
        writeln!(file, "# EOF").unwrap();
        file.flush().unwrap();
    }

    /// The least number that an object should have, in bytes.
    fn need(&self, workload: u64) -> u64 {
        let all = (workload..self.nodes * CONTAINERS).step_by(self.workloads() as usize);
        all.map(|container| self.advice[container as usize].0).max().unwrap()
    }
}

/// An agent's page of one job with a curve, with values that not every job has: a recommendation by age, a
/// limit, stalls.
fn page() -> Option<String> {
    let mut node = Node::make("scale")?;
    let folder = node.folder.path().to_owned();
    let job = common::compiled("scale", JOB)?;
    let pods = folder.join("pods");
    fs::write(&pods, pod_list(&[(NAMES[0], NAMES[1], NAMES[2], 0)])).unwrap();
    node.run(&by_cgroupfs(0), &mut Command::new(job));
    let agent = Agent::start(&node.root, &["--pods", text(&pods)]);
    let served = until("a curve and advice", || {
        let page = agent.metrics();
        let known = |name: &str| page.contains(&format!("\nvellum_job_{name}{{"));
        (known("advised_bytes") && known("curve_bytes")).then_some(page)
    });
    let body = served.split_once("\r\n\r\n").unwrap().1;
    let labels = body.lines().find(|line| line.starts_with("vellum_job_advised_bytes{")).unwrap();
    let labels = labels.split_once('{').unwrap().1.split_once('}').unwrap().0;
    let mut page = body.strip_suffix("# EOF\n").unwrap().to_owned();
    for (series, more, value) in [
        ("vellum_job_advised_by_age_bytes", "", "4096"),
        ("vellum_job_limit_bytes", "", "2147483648"),
        ("vellum_job_pressure_seconds_total", ",stall=\"full\"", "1.5"),
    ] {
        if !page.contains(&format!("\n{series}{{")) {
            writeln!(page, "{series}{{{labels}{more}}} {value}").unwrap();
        }
    }
    Some(page + "# EOF\n")
}

/// Serves `/nN`.
fn serve(fleet: &Arc<Fleet>) -> Server {
    let fleet = Arc::clone(fleet);
    Server::start(move |request, _| {
        let node = request.path.strip_prefix("/n").and_then(|number| number.parse().ok());
        let page = fleet.of_node(node.expect("a node's page is asked for"));
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        Answer::ok(&page).header(&format!("Content-Type: {kind}"))
    })
}

/// Gives Prometheus the history, in blocks of the size that Prometheus makes.
fn remember(folder: &Path, fleet: &Fleet) -> bool {
    let (oldest, latest) = (fleet.now - DAYS * DAY, fleet.now - LATEST);
    let step = setting(STEP_ENV, STEP);
    let file = folder.join("block");
    fs::create_dir(folder.join("data")).unwrap();
    for block in oldest / BLOCK..=latest / BLOCK {
        let times = (oldest..latest).step_by(step as usize);
        fleet.write(&file, times.filter(|time| time / BLOCK == block));
        let options = ["--quiet", &format!("--max-block-duration={BLOCK}s")];
        if !Prometheus::import(folder, &file, &options) {
            return false;
        }
    }
    fs::remove_file(file).unwrap();
    true
}

fn config(fleet: &Fleet, generator: &str) -> String {
    let nodes: Vec<String> = (0..fleet.nodes).map(|node| format!("n{node}")).collect();
    let interval = if fleet.nodes > 100 { "30s" } else { "1s" };
    format!(
        "global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}\nscrape_configs:\n- job_name: vellum\n  \
         honor_labels: true\n  static_configs: [{{targets: {nodes:?}}}]\n  relabel_configs:\n  \
         - {{source_labels: [__address__], target_label: __metrics_path__, replacement: /$1}}\n  \
         - {{source_labels: [__address__], target_label: instance}}\n  \
         - {{target_label: __address__, replacement: {generator:?}}}\n"
    )
}

/// The result of a pass: exit status, output, times and peak memory in bytes.
struct Passed {
    status: ExitStatus,
    said: String,
    wall: Duration,
    cpu: Duration,
    peak: u64,
}

#[expect(clippy::zombie_processes, reason = "it is waited for by wait4, which says what it used")]
fn pass(cluster: &Cluster, prometheus: &Prometheus) -> Passed {
    let mut command = cluster.recommender(prometheus);
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: both places are locals; the child is this process's and was not waited for.
    let ended = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr()) };
    assert_eq!(ended, child.id() as i32);
    // SAFETY: zeros are a valid `rusage`, which the kernel has overwritten.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Passed {
        status: ExitStatus::from_raw(status),
        said,
        wall: began.elapsed(),
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak: usage.ru_maxrss as u64 * 1024,
    }
}

/// True if an object has the expected numbers.
fn is_right(object: &Value, need: u64) -> bool {
    let Some([lower, target, ..]) = numbers(object) else { return false };
    let margin = (need as f64 * 1.1) as u64;
    lower as u64 == need.div_ceil(MIB) * MIB && (margin..=margin + MIB).contains(&(target as u64))
}

#[test]
fn one_pass_serves_a_large_fleet() {
    let _turn = crate::common::alone();
    let seed = vellum_random::test_seed(None);
    let folder = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start(&folder.path().join("cluster"), Box::new(|_| {})) else { return };
    let Some(page) = page() else { return };
    let fleet = Arc::new(Fleet::new(setting(NODES_ENV, NODES), page, &mut Rng::new(seed)));
    if !remember(folder.path(), &fleet) {
        return;
    }
    let pages = serve(&fleet);
    let address = pages.url.trim_start_matches("http://");
    let Some(prometheus) = Prometheus::start(folder.path(), &config(&fleet, address), |_| {}) else { return };
    for workload in 0..fleet.workloads() {
        cluster.autoscaler(&format!("work{workload}"), Fleet::kind(workload), &json!([]));
    }
    let all = fleet.nodes * CONTAINERS;
    within(PATIENCE, "all nodes are fetched", || {
        let rows = prometheus.rows("count(vellum_job_advised_bytes{namespace=\"shop\"})")?;
        (rows.first()?["value"][1].as_str()? == all.to_string()).then_some(())
    });

    for (count, what) in [(fleet.workloads(), "first"), (0, "second")] {
        let passed = pass(&cluster, &prometheus);
        println!(
            "{} nodes, {all} containers, {} objects: the {what} pass took {:.1} s, {:.1} s of CPU time and {} MiB",
            fleet.nodes,
            fleet.workloads(),
            passed.wall.as_secs_f64(),
            passed.cpu.as_secs_f64(),
            passed.peak / MIB,
        );
        assert!(passed.status.success(), "{}", passed.said);
        let last = passed.said.lines().last().unwrap_or_default().to_owned();
        assert_eq!(last, format!("{} objects: {count} written", fleet.workloads()));
        assert!(passed.peak < PEAK, "{} bytes", passed.peak);
    }
    let objects = cluster.api().list(OBJECTS).unwrap();
    assert_eq!(objects.len() as u64, fleet.workloads());
    for object in objects {
        let name = object["metadata"]["name"].as_str().unwrap();
        let workload = name.strip_prefix("work").unwrap().parse().unwrap();
        assert!(is_right(&object, fleet.need(workload)), "{}: {object}", fleet.need(workload));
    }
}
