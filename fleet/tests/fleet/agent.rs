//! Tests of `vellum agent` on real cgroups with real jobs; a real Prometheus reads its metrics.
//!
//! The tests need root and a writable hierarchy with the memory controller; otherwise they are skipped. All
//! cgroups are below one cgroup of the test, and are removed with it, even if the test fails or is killed.

use crate::common;
use crate::common::node::{Agent, Node, TOKEN, by_cgroupfs, by_systemd, id, pod_list, uid, until};
use crate::common::prometheus::Prometheus;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

#[test]
fn agent_exports_curves_as_groups_come_and_go() {
    let _turn = crate::common::beside();
    let Some(mut node) = Node::make("curves") else { return };
    let folder = node.folder.path().to_owned();
    let (pods, token) = (folder.join("pods.json"), folder.join("token"));
    let [web_1, web_2, web_3] =
        [("web-1", 1), ("web-2", 2), ("web-3", 3)].map(|(pod, number)| ("shop", pod, "nginx", number));
    fs::write(&pods, pod_list(&[web_1, web_2])).unwrap();
    fs::write(&token, TOKEN).unwrap();
    node.add(&by_cgroupfs(1));
    node.add(&by_systemd(2));
    node.add("system.slice/worker.service");
    node.add("slurm/uid_7/job_42/step_batch");
    let agent = Agent::start(
        &node.root,
        &["--pods", common::text(&pods), "--token-file", common::text(&token), "--budget", "50%"],
    );
    for number in [1, 2] {
        let who = format!(
            "{{name=\"shop/web-{number}/nginx\",namespace=\"shop\",pod=\"web-{number}\",container=\"nginx\""
        );
        until("a pod's curve arrives", || {
            agent.value(&format!("vellum_job_worth_bytes{who}")).filter(|worth| *worth > 0.0)
        });
        let advised = until("and advice", || agent.value(&format!("vellum_job_advised_bytes{who}")));
        assert!((4096.0..1e9).contains(&advised), "{advised}");
        let points = agent.metrics().matches(&format!("vellum_job_curve_bytes{who},window=")).count();
        assert!((2..=12).contains(&points), "{points}");
    }
    for who in [
        "{name=\"worker.service\",unit=\"worker.service\"",
        "{name=\"job 42/step batch\",slurm_job=\"42\",slurm_step=\"batch\",user=\"7\"",
    ] {
        until("a curve arrives", || agent.value(&format!("vellum_job_worth_bytes{who}")));
    }
    assert_eq!(agent.value("vellum_agent_groups{kind=\"kubernetes\"}"), Some(2.0));
    assert_eq!(agent.value("vellum_agent_names_known "), Some(1.0));
    let refused = agent.ask("");
    assert!(refused.starts_with("HTTP/1.1 401 ") && !refused.contains(TOKEN), "{refused}");
    // One group goes; another comes, whose name is unknown.
    node.remove(&by_cgroupfs(1));
    node.add(&by_systemd(3));
    until("the group is missed", || (!agent.metrics().contains("web-1")).then_some(()));
    let nameless = format!("vellum_job_worth_bytes{{name=\"pod {}/{}\"", uid(3), &id(3)[..12]);
    until("the new one is known by its path", || agent.value(&nameless));
    fs::write(&pods, pod_list(&[web_2, web_3])).unwrap();
    until("the new one is known by its name", || {
        agent.value("vellum_job_worth_bytes{name=\"shop/web-3/nginx\",namespace=\"shop\",pod=\"web-3\"")
    });
    assert!(!agent.metrics().contains(&nameless), "and by no other");
    by_prometheus(&agent, &node, &token);
    let said: Vec<String> = agent.lines.try_iter().collect();
    assert!(said.iter().any(|line| line.ends_with("shop/web-1/nginx: gone")), "{said:?}");
    assert_eq!(
        said.iter().filter(|line| line.ends_with("the list of pods can be had")).count(),
        1,
        "{said:?}"
    );
    assert!(!said.iter().any(|line| line.contains(TOKEN)), "{said:?}");
    // SAFETY: the child has not been waited for, so its process id is valid.
    unsafe { libc::kill(agent.running.0.id() as i32, libc::SIGTERM) };
    let mut agent = agent;
    assert!(agent.running.0.wait().unwrap().success(), "it was asked to stop");
}

/// A real Prometheus scrapes the metrics with the token and stores them.
fn by_prometheus(agent: &Agent, node: &Node, token: &Path) {
    let folder = node.folder.path();
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/prometheus/fleet.yml");
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{rules:?}]\nscrape_configs:\n- job_name: vellum\n  honor_labels: true\n  \
         authorization: {{credentials_file: {token:?}}}\n  static_configs: [{{targets: [\"{}\"]}}]\n",
        agent.address
    );
    let Some(prometheus) = Prometheus::start(folder, &config, |command| node.enter("services", command))
    else {
        return;
    };
    let found =
        until("prometheus has fetched", || prometheus.first("vellum_job_advised_bytes{pod=\"web-2\"}"));
    assert_eq!(found["metric"]["namespace"], "shop", "{found}");
    assert_eq!(found["metric"]["container"], "nginx", "{found}");
    let series = agent.metrics().lines().filter(|line| line.starts_with("vellum_")).count();
    let count = until("and has all", || {
        let found = prometheus.first("scrape_samples_scraped")?;
        found["value"][1].as_str()?.parse::<usize>().ok().filter(|count| *count > 0)
    });
    // New ages and windows add series in between.
    assert!(count * 2 > series && count < series * 2, "{count} of {series}");
    until("a recording rule has a value", || prometheus.first("vellum:fleet_advised:bytes"));
    recommended(&prometheus.listen, folder);
}

/// The history of a service becomes a drop-in, and no other file is written.
fn recommended(prometheus: &str, folder: &Path) {
    let (directory, url) = (folder.join("system"), format!("http://{prometheus}"));
    let usual = ["recommend", "systemd", "--prometheus", &url, "--over", "1h", "--directory"];
    let recommend =
        |options: &[&str]| common::printed(&[&usual[..], &[common::text(&directory)], options].concat());
    let young = recommend(&[]);
    assert!(young.contains("worker.service: left alone: its history covers 0.0 h"), "{young}");
    let dry = recommend(&["--least", "0s", "--dry-run"]);
    assert!(dry.contains("worker.service: MemoryHigh none -> "), "{dry}");
    assert!(!directory.exists(), "nothing was to be written");
    let wet = recommend(&["--least", "0s"]);
    assert!(wet.contains("daemon-reload"), "{wet}");
    let file = directory.join("worker.service.d/50-vellum.conf");
    let text = fs::read_to_string(&file).unwrap();
    let set: u64 = text.lines().find_map(|line| line.strip_prefix("MemoryHigh=")?.parse().ok()).unwrap();
    assert!(set >= 1 << 20 && text.contains("largest advice"), "{text}");
    let again = recommend(&["--least", "0s", "--margin", "0%"]);
    assert!(again.contains("worker.service: "), "{again}");
    let kept = fs::read_dir(&directory).unwrap().count();
    assert_eq!(kept, 1, "only services: {again}");
}

#[test]
fn killed_agent_leaves_nothing_behind() {
    let _turn = crate::common::beside();
    let Some(mut node) = Node::make("killed") else { return };
    node.add("docker/0000000000000000000000000000000000000000000000000000000000000001");
    fs::write(node.root.join("x"), "").unwrap_err();
    let files = || fs::read_dir(&node.root).unwrap().map(|entry| entry.unwrap().file_name());
    let before: Vec<_> = files().collect();
    let mut agent = Agent::start(&node.root, &["--burst", "1s"]);
    until("it watches", || {
        agent
            .value("vellum_job_watch_state{name=\"docker/000000000000\",state=\"watched\"}")
            .filter(|is| *is == 1.0)
    });
    agent.running.0.kill().unwrap();
    agent.running.0.wait().unwrap();
    assert_eq!(before, files().collect::<Vec<_>>());
    assert!(node.jobs[0].1.0.try_wait().unwrap().is_none(), "the job runs on");
}

/// Many machines mount version 2 beside version 1, without memory: the kernel reports stalls there.
#[test]
fn groups_of_version_2_are_watched_and_their_stalls_counted() {
    let _turn = crate::common::beside();
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let Some(top) = places.iter().map(Path::new).find(|top| top.join("cgroup.controllers").exists()) else {
        return vellum_skip::skip("no control groups of version 2 are mounted here");
    };
    let Some(mut node) = Node::make_in(top, "two") else { return };
    node.add(&by_systemd(1));
    let agent = Agent::start(&node.root, &["--burst", "1s", "--budget", "50%"]);
    until("a curve arrives", || agent.value("vellum_job_worth_bytes{").filter(|worth| *worth > 0.0));
    if node.jobs[0].0.join("memory.pressure").exists() {
        let stalled = agent.value("vellum_job_pressure_seconds_total{");
        assert!(stalled.is_some_and(|time| time >= 0.0), "{}", agent.metrics());
    } else {
        vellum_skip::skip("the kernel tells of no stalls of control groups");
    }
}

#[test]
fn agent_exports_limit_of_killed_job() {
    let _turn = crate::common::beside();
    let Some(mut node) = Node::make("limit") else { return };
    let group = node.root.join("system.slice/greedy.service");
    fs::create_dir_all(&group).unwrap();
    let files = ["memory.max", "memory.limit_in_bytes"].map(|name| group.join(name));
    let Some(limit) = files.iter().find(|file| file.exists()) else {
        return vellum_skip::skip("groups below one of our own have no limits of memory here");
    };
    fs::write(limit, "33554432").unwrap();
    let mut greedy = Command::new("sh");
    greedy.args(["-c", "while :; do tail /dev/zero; sleep 1; done"]).stderr(std::process::Stdio::null());
    node.run("system.slice/greedy.service", &mut greedy);
    let agent = Agent::start(&node.root, &[]);
    let who = "{name=\"greedy.service\",unit=\"greedy.service\"}";
    let kills = || agent.value(&format!("vellum_job_oom_kills_total{who}"));
    until("a kill is counted", || kills().filter(|kills| *kills >= 1.0));
    assert_eq!(agent.value(&format!("vellum_job_oom_limit_bytes{who}")), Some(33_554_432.0));
}

#[test]
fn once_writes_the_metrics_and_ends() {
    let _turn = crate::common::beside();
    let Some(mut node) = Node::make("once") else { return };
    node.add("system.slice/worker.service");
    fs::create_dir(node.root.join("system.slice/empty.service")).unwrap();
    let options =
        ["--delay", "100us", "--total", "50%", "--budget", "50%", "--root", common::text(&node.root)];
    let text = common::printed(&[&["agent", "--once"], &options[..]].concat());
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(
        text.contains("vellum_job_worth_bytes{name=\"worker.service\",unit=\"worker.service\"}"),
        "{text}"
    );
    let empty = "vellum_job_watch_state{name=\"empty.service\",unit=\"empty.service\",state=\"empty\"} 1";
    assert!(text.contains(empty), "{text}");
}

#[test]
fn invalid_options_fail_before_any_work() {
    let _turn = crate::common::beside();
    let folder = tempfile::tempdir().unwrap();
    let (root, empty) = (folder.path().join("root"), folder.path().join("empty"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("cgroup.procs"), "").unwrap();
    fs::write(&empty, "").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (root, empty) = (common::text(&root), common::text(&empty));
    for (options, words) in [
        (vec!["--root", "/nowhere"], "--root /nowhere: No such file"),
        (vec!["--root", common::text(folder.path())], "root of a hierarchy"),
        (vec!["--root", root, "--token-file", "/nowhere/t"], "--token-file /nowhere/t: No such file"),
        (vec!["--root", root, "--token-file", empty], "no token"),
        (vec!["--root", root, "--tls-certificate", "/nowhere/c"], "--tls-key"),
        (
            vec!["--root", root, "--tls-certificate", "/nowhere/c", "--tls-key", empty],
            "--tls-certificate /nowhere/c: No such file",
        ),
        (vec!["--root", root, "--tls-certificate", empty, "--tls-key", "/nowhere/k"], "--tls-key /nowhere/k"),
        (vec!["--root", root, "--tls-certificate", empty, "--tls-key", empty], "no valid certificate"),
        (vec!["--root", root, "--listen", &address, "--delay", "1ms"], "cannot listen"),
        (vec!["--root", root, "--listen", "here"], "--listen"),
        (vec!["--root", root, "--pods", "ftp://127.0.0.1:10250/pods"], "https://HOST:PORT/pods"),
        (vec!["--root", root, "--total", "0%"], "percentage above 0"),
        (vec!["--root", root, "--delta", "1ms"], "interval 1ms"),
    ] {
        common::fails(&[&["agent"], &options[..]].concat(), words);
    }
}
