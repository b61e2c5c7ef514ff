//! A test node: cgroups with real jobs in them, and the agent that watches them.
//!
//! All cgroups are below one cgroup, and are removed with the test, even if it fails or is killed.

use super::FLEET;
use serde_json::json;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vellum_process::Undoing;

/// After this time, a test counts as hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const TOKEN: &str = "a-token-of-the-test";
pub(crate) const BUSY: &str = "while :; do :; done";

/// Waits for an event that must happen.
pub(crate) fn until<T>(what: &str, done: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, done)
}

/// Waits for an event that may take longer.
pub(crate) fn within<T>(patience: Duration, what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(done) = done() {
            return done;
        }
        assert!(began.elapsed() < patience, "{what}: it does not happen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A free port below the kernel's range of ephemeral ports, so it stays free while its program is restarted.
pub(crate) fn port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let from = 20_000 + (std::process::id() % 1000) as u16 * 10;
    let mut ports = std::iter::from_fn(|| Some(from + GIVEN.fetch_add(1, Ordering::Relaxed)));
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}

/// The answer, with its head, to a GET request with these headers.
pub(crate) fn ask(address: &str, path: &str, headers: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: x\r\n{headers}\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A child process that ends with this value.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The root of the test's hierarchy with its jobs, and a folder; both are removed with this value.
pub(crate) struct Node {
    pub(crate) root: PathBuf,
    pub(crate) folder: TempDir,
    pub(crate) jobs: Vec<(PathBuf, Running)>,
    _undoing: Undoing,
}

/// Kills the processes of the hierarchy `$1`, and removes the hierarchy and the folder `$2`.
const UNDO: &str = "kill -9 $(find \"$1\" -name cgroup.procs -exec cat {} +); \
    find \"$1\" -depth -type d -exec rmdir {} \\;; [ ! -e \"$1\" ] && rm -rf \"$2\"";

impl Node {
    pub(crate) fn make(name: &str) -> Option<Node> {
        let top = vellum_fleet::usual_root().map_err(vellum_skip::skip).ok()?;
        Node::make_in(&top, name)
    }

    pub(crate) fn make_in(top: &Path, name: &str) -> Option<Node> {
        let root = top.join(format!("vellum-agent-test-{}-{name}", std::process::id()));
        if let Err(why) = fs::create_dir(&root) {
            vellum_skip::skip(format_args!("no control group can be made in {}: {why}", top.display()));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let undoing = Undoing::by(UNDO, &[root.as_os_str(), folder.path().as_os_str()]);
        let node = Node { root, folder, jobs: Vec::new(), _undoing: undoing };
        if let Err(why) = fs::read_to_string(node.root.join("cgroup.procs")) {
            vellum_skip::skip(format_args!("a control group cannot be used: {why}"));
            return None;
        }
        Some(node)
    }

    /// Starts a busy job in a new group.
    pub(crate) fn add(&mut self, path: &str) {
        self.run(path, Command::new("sh").args(["-c", BUSY]));
    }

    /// Starts a job in a new group.
    pub(crate) fn run(&mut self, path: &str, job: &mut Command) {
        self.enter(path, job);
        self.jobs.push((self.root.join(path), Running::start(job)));
    }

    /// Makes a command run in one of the groups.
    pub(crate) fn enter(&self, path: &str, command: &mut Command) {
        enter(&self.root.join(path), command);
    }

    pub(crate) fn remove(&mut self, path: &str) {
        let group = self.root.join(path);
        self.jobs.retain(|(place, _)| *place != group);
        until("a group can be removed", || fs::remove_dir(&group).ok());
    }
}

/// Makes a command run in a group from its first instruction, so that it is killed with the test.
pub(crate) fn enter(group: &Path, command: &mut Command) {
    fs::create_dir_all(group).unwrap();
    let mut procs = fs::File::options().write(true).open(group.join("cgroup.procs")).unwrap();
    // SAFETY: the closure makes one write to an open file; "0" stands for the writing process.
    unsafe { command.pre_exec(move || procs.write_all(b"0")) };
}

impl Drop for Node {
    fn drop(&mut self) {
        self.jobs.clear();
        let began = Instant::now();
        while self.root.exists() && began.elapsed() < PATIENCE {
            let mut undo = Command::new("sh");
            undo.args(["-c", UNDO, "sh"]).arg(&self.root).arg(self.folder.path()).stderr(Stdio::null());
            let _ = undo.status();
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) fn id(number: u32) -> String {
    format!("{number:064x}")
}

pub(crate) fn uid(number: u32) -> String {
    format!("{number:08x}-7d54-4c88-9a51-3b2f4d5e6f70")
}

/// The group of a pod's container, as the kubelet's cgroupfs driver names it.
pub(crate) fn by_cgroupfs(number: u32) -> String {
    format!("kubepods/burstable/pod{}/{}", uid(number), id(number))
}

pub(crate) fn by_systemd(number: u32) -> String {
    let uid = uid(number).replace('-', "_");
    format!(
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice/cri-containerd-{}.scope",
        id(number)
    )
}

/// A list of pods with a container each: namespace, pod, container, and the number of the ids.
pub(crate) fn pod_list(pods: &[(&str, &str, &str, u32)]) -> String {
    let item = |(namespace, pod, container, number): &(&str, &str, &str, u32)| {
        let container = json!({"name": container, "containerID": format!("containerd://{}", id(*number))});
        json!({
            "metadata": {"name": pod, "namespace": namespace, "uid": uid(*number)},
            "status": {"containerStatuses": [container]},
        })
    };
    json!({"items": pods.iter().map(item).collect::<Vec<_>>()}).to_string()
}

/// The kinds of workloads.
pub(crate) const KINDS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// The name of a workload's pod, in the form that its controller gives it.
pub(crate) fn pod_name(kind: &str, workload: &str, number: usize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let letter = |digit| char::from(LETTERS[number / LETTERS.len().pow(digit) % LETTERS.len()]);
    let random: String = (0..5).map(letter).collect();
    match kind {
        "Deployment" => format!("{workload}-5d4f8b9c6-{random}"),
        "StatefulSet" => format!("{workload}-{number}"),
        _ => format!("{workload}-{random}"),
    }
}

/// A running agent with the address of its metrics.
pub(crate) struct Agent {
    pub(crate) running: Running,
    /// HOST:PORT
    pub(crate) address: String,
    pub(crate) lines: std::sync::mpsc::Receiver<String>,
}

impl Agent {
    /// Starts an agent at any port, with a large budget.
    pub(crate) fn start(root: &Path, options: &[&str]) -> Agent {
        let mut command = Agent::command(root);
        Agent::run(command.args(["--listen", "127.0.0.1:0", "--total", "50%"]).args(options))
    }

    /// The command of an agent for a root.
    pub(crate) fn command(root: &Path) -> Command {
        let mut command = Command::new(FLEET);
        command.args(["agent", "--delay", "100us"]).arg("--root").arg(root);
        command
    }

    /// Runs an agent until it serves.
    pub(crate) fn run(command: &mut Command) -> Agent {
        let mut running = Running::start(command.stdout(Stdio::piped()));
        let out = BufReader::new(running.0.stdout.take().unwrap());
        let (sender, lines) = std::sync::mpsc::channel();
        // Read to its end, so that the agent never blocks.
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let first = lines.recv_timeout(PATIENCE).expect("a first line");
        let address = first.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{first}")).to_owned();
        Agent { running, address, lines }
    }

    /// The answer to a request with these headers.
    pub(crate) fn ask(&self, headers: &str) -> String {
        ask(&self.address, "/metrics", headers).unwrap()
    }

    pub(crate) fn metrics(&self) -> String {
        self.ask(&format!("Authorization: Bearer {TOKEN}\r\n"))
    }

    /// The value of a series, selected by the start of its labels.
    pub(crate) fn value(&self, series: &str) -> Option<f64> {
        let metrics = self.metrics();
        let line = metrics.lines().find(|line| line.starts_with(series))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}
