//! Runs a command under a watchdog, with or without Vellum, and reads the counters of its processes.
//!
//! Output is written to files, not pipes, so a grandchild that outlives the command cannot keep the test
//! waiting. Each command has its own process group, which the watchdog kills on a hang.

use crate::library::library;
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use vellum_process::BoardFile;
use vellum_wire::{Attach, Counter, Slot};

/// The time after which a command counts as hung: more than ten times the longest command on an idle machine.
const DEADLINE: Duration = Duration::from_secs(600);
/// The test runner's limit for this test, in seconds. A hung command is killed earlier, with its stacks
/// printed.
const LIMIT_ENV: &str = "VELLUM_TEST_LIMIT_S";
/// The part of the limit that is reserved for printing the stacks.
const FOR_STACKS: Duration = Duration::from_secs(4);
/// The interval between checks of a running command.
const LOOK: Duration = Duration::from_millis(5);
/// The most output of a failed command in a message, in bytes.
const SAID_MAX: usize = 6000;

/// A process that loaded the library: its counters, from the shared file (the board).
#[derive(Clone, Debug)]
pub struct Seat {
    /// The process's name, cut to 15 bytes.
    pub comm: String,
    /// Whether Vellum served it.
    pub attach: Attach,
    counters: Vec<u64>,
}

impl Seat {
    fn read(slot: &Slot) -> Seat {
        let comm = slot.comm_bytes();
        let comm = comm.split(|&byte| byte == 0).next().unwrap_or(&[]);
        Seat {
            comm: String::from_utf8_lossy(comm).into_owned(),
            attach: slot.attach(),
            counters: Counter::ALL.iter().map(|&counter| slot.get(counter)).collect(),
        }
    }

    /// A counter's last value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }
}

/// The outcome of a command.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command, for messages.
    pub command: String,
    /// The exit status or signal.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error, as text.
    pub stderr: String,
    /// The processes that loaded the library; empty without Vellum.
    pub seats: Vec<Seat>,
}

impl Outcome {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The attachment of the first process.
    ///
    /// # Panics
    /// If no process has a slot: the library was not loaded.
    pub fn attach(&self) -> Attach {
        self.seats.first().unwrap_or_else(|| panic!("the library was not loaded by {self}")).attach
    }

    /// Returns this outcome of a command that must have succeeded.
    ///
    /// # Panics
    /// If the command failed.
    pub fn succeeded(self) -> Outcome {
        assert!(self.status.success(), "{self}");
        self
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => format!("{:?}", self.status),
        };
        let stdout = self.text();
        write!(f, "{}: {end}\n--- stdout\n{}\n--- stderr\n{}", self.command, cut(&stdout), cut(&self.stderr))
    }
}

fn cut(text: &str) -> &str {
    let mut from = text.len().saturating_sub(SAID_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// Runs `command` on the C library's own memory.
pub fn plain(mut command: Command) -> Outcome {
    settle(&mut command);
    watched(command)
}

/// Runs `command` with Vellum preloaded, after the libraries that the command itself has in `LD_PRELOAD`.
pub fn served(mut command: Command) -> Outcome {
    let own = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD").and_then(|(_, value)| value);
    let preload = match own {
        Some(own) => format!("{}:{}", own.to_string_lossy(), library().display()),
        None => library().display().to_string(),
    };
    command.env("LD_PRELOAD", preload);
    seated(command)
}

/// Runs `command`, which loads the library in another way, with a board for it.
pub fn seated(mut command: Command) -> Outcome {
    let board = BoardFile::create().expect("a board can be made");
    settle(&mut command);
    command.env("VELLUM_BOARD", board.path());
    let mut outcome = watched(command);
    outcome.seats = board.claimed().iter().map(Seat::read).collect();
    outcome
}

/// Runs the command that `make` gives, with and without Vellum, and compares all output. Returns the
/// outcome under Vellum.
///
/// # Panics
/// If output or status differ, if it fails without Vellum too (the test is wrong then), or if Vellum did
/// not serve its first process.
pub fn same(make: impl Fn() -> Command) -> Outcome {
    let without = plain(make()).succeeded();
    let with = served(make());
    assert!(with.status == without.status, "with Vellum:\n{with}\nwithout it: exit status 0");
    assert!(with.stdout == without.stdout, "with Vellum:\n{with}\nwithout:\n{without}");
    assert!(with.stderr == without.stderr, "with Vellum:\n{with}\nwithout:\n{without}");
    assert_eq!(with.attach(), Attach::Serving, "{with}");
    with
}

/// A command that runs `program` with these arguments.
pub fn with_args(program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// The command, with these variables.
pub fn with_env(mut command: Command, variables: &[(&str, &str)]) -> Command {
    command.envs(variables.iter().copied());
    command
}

/// Removes variables that would make two runs differ from the environment, unless `command` sets them itself.
pub fn settle(command: &mut Command) {
    let set: Vec<_> = command.get_envs().map(|(name, _)| name.to_os_string()).collect();
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let ours = text.starts_with("VELLUM_") || text.starts_with("MALLOC_") || text == "GLIBC_TUNABLES";
        if (ours || text == "LD_PRELOAD") && !set.contains(&name) {
            command.env_remove(&name);
        }
    }
    if !set.iter().any(|name| name == "LC_ALL") {
        command.env("LC_ALL", "C.UTF-8");
    }
}

fn watched(mut command: Command) -> Outcome {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (out, err) = (place.path().join("out"), place.path().join("err"));
    command.stdin(Stdio::null()).process_group(0);
    // If the test is killed, so is its command.
    // SAFETY: the closure makes one system call, which is allowed after fork.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command.stdout(File::create(&out).expect("a file for the output"));
    command.stderr(File::create(&err).expect("a file for the errors"));
    let name = described(&command);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{name}: cannot be started: {error}"));
    let status = wait(&mut child);
    let (stdout, stderr) = (read(&out), read(&err));
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    match status {
        Ok(status) => Outcome { command: name, status, stdout, stderr, seats: Vec::new() },
        Err(stacks) => panic!(
            "{name}: hung and was ended\n--- stdout\n{}\n--- stderr\n{}\n--- stacks\n{stacks}",
            cut(&String::from_utf8_lossy(&stdout)),
            cut(&stderr)
        ),
    }
}

/// The time from which a command that starts now counts as hung.
fn deadline() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let now = Instant::now();
    let began = *BEGAN.get_or_init(|| now);
    let limit = std::env::var(LIMIT_ENV).ok().and_then(|seconds| seconds.parse().ok());
    match limit.map(|seconds| Duration::from_secs(seconds).saturating_sub(FOR_STACKS)) {
        Some(limit) => began + limit,
        None => now + DEADLINE,
    }
}

/// Waits for the command. If it hangs, kills its process group and returns its threads' stacks.
fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let deadline = deadline();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Ok(status);
        }
        if Instant::now() > deadline {
            let stacks = stacks(child.id());
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            return Err(stacks);
        }
        std::thread::sleep(LOOK);
    }
}

/// The stacks of a process's threads by a debugger, if there is one.
fn stacks(process: u32) -> String {
    let asked = Command::new("gdb")
        .args(["-batch", "-nx", "-p", &process.to_string(), "-ex", "thread apply all bt 12"])
        .stdin(Stdio::null())
        .env_remove("LD_PRELOAD")
        .output();
    match asked {
        Ok(said) => String::from_utf8_lossy(&said.stdout).into_owned(),
        Err(error) => format!("(no debugger: {error})"),
    }
}

fn described(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

fn read(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).expect("a test reads its own files");
    bytes
}
