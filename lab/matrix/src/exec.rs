//! Makes one run of one row (a program with its script) in one mode (plain, or a way to use Vellum).
//!
//! ```text
//! DIR/ROW/template   the files that the row's preparation made
//! DIR/ROW/work       a copy of them, the run's working folder, with home/ and tmp/
//! DIR/ROW/script     the input of /bin/sh
//! DIR/ROW/out, err   the output; in files, so that a process left running cannot keep a pipe open
//! ```
//!
//! The paths are the same in every mode, because programs print them. A variable in the environment marks
//! all processes of a run, so that those it leaves running are found and ended. A process that has emptied
//! its environment and left the process group is not found.

use super::list::{Mode, Row};
use super::{Error, Installed};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use vellum_process::library;

/// The longest time of a run, unless the row sets another. Without other load, most runs take a second.
const SECONDS: u64 = 240;
/// The longest time of a preparation: some compile a runtime.
const PREPARE_SECONDS: u64 = 600;
/// Time between two checks of a run.
const LOOK: Duration = Duration::from_millis(5);
/// The memory of a process in the paged mode.
const FRAMES: &str = "16M";
/// The variable that marks the processes of a run in their environment.
const MARK: &str = "MATRIX_RUN";
/// The folders of Debian's programs, before those of other programs.
const PATH: &str =
    "/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/lib/postgresql/15/bin:/usr/lib/git-core:/usr/local/go/bin";

/// The search path of programs, without the user's folder for cargo.
pub(super) fn path() -> &'static str {
    PATH
}

/// Functions for the scripts.
const PRELUDE: &str = r#"
# as_nobody COMMAND...: as a user without rights, if we are root.
as_nobody() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"; else "$@"; fi
}
# become_nobody COMMAND...: the same in this shell's place: for the background, where $! must be the server.
become_nobody() {
    if [ "$(id -u)" = 0 ]; then exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"; else exec "$@"; fi
}
# until_it COMMAND...: waits until it succeeds, as a server's start takes time.
until_it() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 300 ]; then echo "never happened: $*" >&2; return 1; fi
        sleep 0.05
    done
}
"#;

/// The beginning of the status of a run that was ended by its deadline.
const LATE: &str = "not ended after";

/// The output and status of a run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Said {
    /// `exit status N`, `signal N`, or the text for a run ended by its deadline.
    pub status: String,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Said {
    /// Whether the run was ended by its deadline.
    pub fn is_late(&self) -> bool {
        self.status.starts_with(LATE)
    }
}

/// A row's folders and ports.
#[derive(Debug)]
pub struct Stage<'a> {
    row: &'a Row,
    folder: PathBuf,
    ports: [u16; 2],
}

impl<'a> Stage<'a> {
    /// Makes the folders, and runs the preparation.
    ///
    /// # Errors
    /// The outer one for files that cannot be made; the inner one is the reason why the preparation failed,
    /// which skips the row.
    pub fn prepared(row: &'a Row, folder: &Path) -> Result<Result<Stage<'a>, String>, Error> {
        let stage = Stage { row, folder: folder.to_path_buf(), ports: ports() };
        // Prepared in the folder of the runs, since some tools store their own path.
        fresh(&stage.work())?;
        for name in ["home", "tmp"] {
            let path = stage.work().join(name);
            fs::create_dir(&path).map_err(Error::file("making", &path))?;
        }
        if let Some(prepare) = &row.prepare {
            let said = stage.run_script(prepare, Mode::Plain, None, PREPARE_SECONDS)?;
            if said.status != "exit status 0" {
                let last =
                    String::from_utf8_lossy(&said.stderr).lines().last().unwrap_or_default().to_string();
                return Ok(Err(format!("preparing it: {}: {last}", said.status)));
            }
        }
        let (work, template) = (stage.work(), stage.folder.join("template"));
        fs::rename(&work, &template).map_err(Error::file("moving", &work))?;
        Ok(Ok(stage))
    }

    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Runs the row's script once in `mode`. The second value is the number of processes that ran on Vellum,
    /// and of all processes counted.
    ///
    /// # Errors
    /// If the run cannot be set up.
    pub fn run(&self, mode: Mode, installed: &Installed) -> Result<(Said, Option<(u64, u64)>), Error> {
        let (work, template) = (self.work(), self.folder.join("template"));
        if work.exists() {
            fs::remove_dir_all(&work).map_err(Error::file("removing", &work))?;
        }
        let copied = Command::new("cp").arg("-a").args([&template, &work]).stdin(Stdio::null()).status();
        copied.map_err(Error::file("copying", &template))?;
        let seconds = self.row.seconds.unwrap_or(SECONDS);
        let said = self.run_script(&self.row.script, mode, Some(installed), seconds)?;
        Ok((said, self.served()))
    }

    fn run_script(
        &self,
        script: &str,
        mode: Mode,
        installed: Option<&Installed>,
        seconds: u64,
    ) -> Result<Said, Error> {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Relaxed));
        let file = self.folder.join("script");
        fs::write(&file, format!("{PRELUDE}\n{script}")).map_err(Error::file("writing", &file))?;
        let report = self.folder.join("run.json");
        let _ = fs::remove_file(&report);
        let mut command = started(mode, installed, &report);
        command.arg(&file).current_dir(self.work()).stdin(Stdio::null()).process_group(0);
        self.environment(&mut command, &mark);
        if let (Mode::Preloaded, Some(installed)) = (mode, installed) {
            command.env("LD_PRELOAD", library::for_every_machine(&installed.library));
        }
        let (out, err) = (self.folder.join("out"), self.folder.join("err"));
        command.stdout(File::create(&out).map_err(Error::file("making", &out))?);
        command.stderr(File::create(&err).map_err(Error::file("making", &err))?);
        let mut child = command.spawn().map_err(Error::file("starting", &file))?;
        let deadline = Duration::from_secs(seconds);
        let began = Instant::now();
        let status = loop {
            match child.try_wait().map_err(Error::file("waiting for", &file))? {
                Some(status) => {
                    break match (status.code(), status.signal()) {
                        (Some(code), _) => format!("exit status {code}"),
                        (_, signal) => format!("signal {}", signal.unwrap_or_default()),
                    };
                }
                None if began.elapsed() > deadline => {
                    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                        let _ = kill_process_group(group, Signal::KILL);
                    }
                    let _ = child.wait();
                    break format!("{LATE} {} s", deadline.as_secs());
                }
                None => std::thread::sleep(LOOK),
            }
        };
        end_marked(&mark);
        let read = |path: &Path| fs::read(path).map_err(Error::file("reading", path));
        Ok(Said { status, stdout: read(&out)?, stderr: read(&err)? })
    }

    fn environment(&self, command: &mut Command, mark: &str) {
        let outer = |name: &str| std::env::var(name).ok();
        let home = outer("HOME").unwrap_or_default();
        command.env_clear().env("PATH", format!("{PATH}:{home}/.cargo/bin")).env(MARK, mark);
        command.env("HOME", self.work().join("home")).env("TMPDIR", self.work().join("tmp"));
        command.envs([
            ("LC_ALL", "C.UTF-8"),
            ("TZ", "UTC"),
            ("TERM", "dumb"),
            ("SOURCE_DATE_EPOCH", "981173106"),
        ]);
        command.envs([("PYTHONHASHSEED", "0"), ("PYTHONDONTWRITEBYTECODE", "1"), ("PERL_HASH_SEED", "0")]);
        for (name, usual) in
            [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo"), ("GOCACHE", ".cache/go-build")]
        {
            command.env(name, outer(name).unwrap_or_else(|| format!("{home}/{usual}")));
        }
        for (name, port) in ["PORT", "PORT2"].iter().zip(self.ports) {
            command.env(name, port.to_string());
        }
    }

    /// The numbers in the report of `vellum run`, if there is one.
    fn served(&self) -> Option<(u64, u64)> {
        let report = fs::read(self.folder.join("run.json")).ok()?;
        let report: serde_json::Value = serde_json::from_slice(&report).ok()?;
        let count = |name: &str| report["attachment"][name].as_u64();
        Some((count("serving_processes")?, count("seated_processes")?))
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The shell, started by the command that starts Vellum.
fn started(mode: Mode, installed: Option<&Installed>, report: &Path) -> Command {
    let launcher = installed.and_then(|installed| Some((installed.command.as_ref()?, &installed.library)));
    let (Some((vellum, library)), Mode::Run | Mode::Frames | Mode::Libgc) = (launcher, mode) else {
        return Command::new("/bin/sh");
    };
    let mut command = Command::new(vellum);
    command.args(["run", "--quiet", "--no-live", "--lib"]).arg(library).arg("--json").arg(report);
    match mode {
        Mode::Frames => drop(command.args(["--frames", FRAMES])),
        Mode::Libgc => drop(command.arg("--libgc")),
        _ => {}
    }
    command.args(["--", "/bin/sh"]);
    command
}

/// Two free ports of the loopback interface. They are not reserved: another program may use one before the
/// run.
fn ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).ok());
    listeners.each_ref().map(|listener| {
        listener.as_ref().and_then(|listener| listener.local_addr().ok()).map_or(0, |address| address.port())
    })
}

fn fresh(folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Error::file("removing", folder))?;
    }
    fs::create_dir_all(folder).map_err(Error::file("making", folder))
}

/// Ends the processes of the run with this mark.
fn end_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    let Ok(processes) = fs::read_dir("/proc") else { return };
    for process in processes.flatten() {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(environment) = fs::read(process.path().join("environ")) else { continue };
        if environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes()) {
            let _ = Pid::from_raw(id).map(|id| kill_process(id, Signal::KILL));
        }
    }
}
