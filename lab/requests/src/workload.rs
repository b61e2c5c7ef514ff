//! The workloads: the programs of `vellum-bench --only advice`, and eight services with their clients.
//!
//! A service is a script of `services/` with three commands. `prepare` makes its files, once. `serve` execs
//! the service, inside the limited cgroup. `drive` sends a fixed amount of work from outside, and ends.

use crate::program::{self, PROGRAMS, Program};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    name: &'static str,
    script: &'static str,
    /// Programs or files that must be installed.
    needs: &'static [&'static str],
    packages: &'static str,
}

macro_rules! service {
    ($name:literal, $needs:expr, $packages:literal) => {
        Service {
            name: $name,
            script: include_str!(concat!("services/", $name, ".sh")),
            needs: &$needs,
            packages: $packages,
        }
    };
}

const SERVICES: [Service; 8] = [
    service!("redis", ["redis-server", "redis-cli", "redis-benchmark"], "redis-server redis-tools"),
    service!("postgres", ["/usr/lib/postgresql/15/bin/pgbench", "setpriv"], "postgresql-15"),
    service!("memcached", ["memcached", "python3"], "memcached"),
    service!("nginx", ["nginx", "python3"], "nginx-light"),
    service!("java", ["java", "javac", "python3"], "default-jdk-headless"),
    service!("node-http", ["node", "python3"], "nodejs"),
    service!("idle", ["/usr/lib/python3/dist-packages/numpy", "python3"], "python3-numpy"),
    service!("prometheus", ["prometheus", "promtool", "python3"], "prometheus"),
];

const FILES: [(&str, &str); 3] = [
    ("ask.py", include_str!("services/ask.py")),
    ("Service.java", include_str!("services/Service.java")),
    ("service.js", include_str!("services/service.js")),
];

/// Without these options Node.js sizes its heap by the limit of its cgroup: a limit would then cost
/// collections instead of paging.
const NODE: (&str, &str) = ("NODE_OPTIONS", "--max-old-space-size=2048 --max-semi-space-size=16");

#[derive(Debug, Clone, Copy)]
pub(crate) enum Workload {
    /// A program that ends alone.
    Program(Program),
    /// A service with a client.
    Service(Service),
}

/// Why a workload cannot be run here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Absent {
    #[error("missing; apt-get install {0}")]
    Missing(&'static str),
    #[error("its files could not be made ({0})")]
    Unprepared(ExitStatus),
    #[error("its files could not be made: {0}")]
    Io(#[from] io::Error),
}

pub(crate) fn all() -> impl Iterator<Item = Workload> {
    PROGRAMS.into_iter().map(Workload::Program).chain(SERVICES.into_iter().map(Workload::Service))
}

/// Makes the common files of the workloads in `folder`.
pub(crate) fn prepare(folder: &Path, seed: u64) -> io::Result<()> {
    for (name, text) in FILES {
        std::fs::write(folder.join(name), text)?;
    }
    program::prepare(folder, seed)
}

fn is_there(name: &str) -> bool {
    Path::new(name).exists()
        || vellum_process::locate(name.as_ref(), std::env::var_os("PATH").as_deref()).is_ok()
}

#[derive(Debug)]
pub(crate) struct Ready {
    workload: Workload,
    executable: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Workload {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Workload::Program(program) => program.name,
            Workload::Service(service) => service.name,
        }
    }

    pub(crate) fn ready(self, folder: &Path) -> Result<Ready, Absent> {
        match self {
            Workload::Program(program) => {
                let executable = program.executable(folder).ok_or(Absent::Missing(program.package))?;
                Ok(Ready { workload: self, executable: executable.into(), folder: folder.into(), port: 0 })
            }
            Workload::Service(service) => {
                if !service.needs.iter().all(|name| is_there(name)) {
                    return Err(Absent::Missing(service.packages));
                }
                let folder = folder.join(service.name);
                std::fs::create_dir(&folder)?;
                std::fs::write(folder.join("service.sh"), service.script)?;
                let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
                let ready = Ready { workload: self, executable: "sh".into(), folder, port };
                let made = ready.step("prepare").status()?;
                if made.success() { Ok(ready) } else { Err(Absent::Unprepared(made)) }
            }
        }
    }
}

impl Ready {
    fn step(&self, what: &str) -> Command {
        let mut command = Command::new(&self.executable);
        command.args(["service.sh", what]).current_dir(&self.folder).env("PORT", self.port.to_string());
        command.env(NODE.0, NODE.1);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The command that runs in the group, and the client's command, if there is one.
    pub(crate) fn commands(&self) -> io::Result<(Command, Option<Command>)> {
        match &self.workload {
            Workload::Program(program) => {
                let mut command = program.command(&self.executable.clone().into(), &self.folder)?;
                command.args(&program.words[1..]).env(NODE.0, NODE.1);
                Ok((command, None))
            }
            Workload::Service(_) => Ok((self.step("serve"), Some(self.step("drive")))),
        }
    }
}
