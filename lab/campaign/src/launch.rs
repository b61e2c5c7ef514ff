//! Starts a process of a campaign, waits until it has ended, and measures its cost from outside.
//!
//! The child's environment is built from nothing, so that settings of the user (`MALLOC_ARENA_MAX`,
//! `MIMALLOC_…`, `VELLUM_…`) cannot favour one arm. Standard output and error go to files in memory: a
//! child that writes much cannot block on a full pipe and distort its own timing.

use crate::Metrics;
use crate::confine::Group;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A process that takes too long gets a signal to end, and is killed after this time.
const GRACE: Duration = Duration::from_secs(10);
/// The child's search path for programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A process to run.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The file to execute.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment beyond `PATH`, `LANG` and the preloaded library.
    pub env: Vec<(OsString, OsString)>,
    /// Its working folder; by default this process's.
    pub folder: Option<PathBuf>,
    /// The library to preload.
    pub preload: Option<PathBuf>,
    /// Whether its last line of output is a JSON object of figures, which are added to those measured from
    /// outside.
    pub reports: bool,
}

/// Why a process has no figures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The program could not be started.
    #[error("could not start {program}: {why}")]
    NotStarted {
        /// The program.
        program: String,
        /// The system's reason.
        why: String,
    },
    /// The process took longer than allowed and was ended.
    #[error("ended after {0} s without a result")]
    TooLong(u64),
    /// A signal ended it.
    #[error("killed by signal {signal}{}", said(last))]
    Signal {
        /// Its number.
        signal: i32,
        /// The last line on standard error.
        last: String,
    },
    /// Its exit status was not zero.
    #[error("exit status {code}{}", said(last))]
    Exit {
        /// The status.
        code: i32,
        /// The last line on standard error.
        last: String,
    },
    /// The process was ended on request.
    #[error("ended before its end, as was asked for")]
    Asked,
    /// The process succeeded but printed no figures.
    #[error("ended without printing its figures{}", said(.0))]
    Silent(String),
}

fn said(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!(": {last}") }
}

pub(crate) struct Running {
    child: Child,
    begun: Instant,
    output: File,
    errors: File,
    reports: bool,
}

impl Launch {
    /// A process in this process's folder, with no more environment and no preloaded library, that reports
    /// no figures.
    pub fn new<A: Into<OsString>>(program: impl Into<PathBuf>, args: impl IntoIterator<Item = A>) -> Launch {
        let args = args.into_iter().map(Into::into).collect();
        Launch { program: program.into(), args, env: Vec::new(), folder: None, preload: None, reports: false }
    }

    /// Runs the process to its end. Returns the figures it reports and, measured from outside,
    /// `process_wall_ns`, `process_user_ns`, `process_sys_ns`, `process_cpu_ns`, `process_minor_faults`,
    /// `process_major_faults` and `process_peak_bytes`.
    ///
    /// The peak is the kernel's figure for the finished child. It is at least the peak of this process at the
    /// start of the child, so keep this process small.
    ///
    /// # Errors
    /// [`Ended`] if there are no figures.
    pub fn run(&self, allowed: Duration) -> Result<Metrics, Ended> {
        self.start()?.finish(allowed)
    }

    /// Runs the process to its end, and calls `watch` every `between`. If `watch` returns that the run should
    /// end, the process is killed.
    ///
    /// # Errors
    /// [`Ended`] if there are no figures; [`Ended::Asked`] if `watch` ended it.
    pub fn run_watched(
        &self,
        allowed: Duration,
        between: Duration,
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Metrics, Ended> {
        let mut running = self.start()?;
        let end = Instant::now() + allowed;
        while Instant::now() < end && !ends_within(running.child.id(), between) {
            if watch().is_break() {
                // The kill fails only if the process has already ended.
                let _ = running.child.kill();
                reap(running.child.id());
                return Err(Ended::Asked);
            }
        }
        running.finish(allowed)
    }

    /// Returns a launch that enters the group before it executes the program: all its memory is charged to
    /// the group.
    #[must_use]
    pub fn entering(self, group: &Group) -> Launch {
        let script = r#"echo $$ > "$0" && exec "$@""#;
        let mut args: Vec<OsString> = vec!["-c".into(), script.into(), group.members().into()];
        args.push(self.program.into());
        args.extend(self.args);
        Launch { program: "/bin/sh".into(), args, ..self }
    }

    pub(crate) fn start(&self) -> Result<Running, Ended> {
        let fail = |error: std::io::Error| Ended::NotStarted {
            program: self.program.display().to_string(),
            why: error.to_string(),
        };
        let (output, errors) = (memory_file().map_err(fail)?, memory_file().map_err(fail)?);
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().env("PATH", PATH).env("LANG", "C.UTF-8");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(library) = &self.preload {
            command.env("LD_PRELOAD", library);
        }
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stdin(Stdio::null());
        command.stdout(output.try_clone().map_err(fail)?).stderr(errors.try_clone().map_err(fail)?);
        let begun = Instant::now();
        let child = command.spawn().map_err(fail)?;
        Ok(Running { child, begun, output, errors, reports: self.reports })
    }
}

fn memory_file() -> std::io::Result<File> {
    Ok(File::from(memfd_create(c"output", MemfdFlags::CLOEXEC)?))
}

impl Running {
    /// Waits for the end, ends the process if it takes too long, and collects the figures.
    pub(crate) fn finish(mut self, allowed: Duration) -> Result<Metrics, Ended> {
        let left = allowed.saturating_sub(self.begun.elapsed());
        let in_time = ends_within(self.child.id(), left);
        if !in_time {
            // SIGTERM first, so that the process can undo its changes to the machine.
            // SAFETY: a signal to our own child, which has not been waited for.
            unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
            if !ends_within(self.child.id(), GRACE) {
                // The kill fails only if the process has already ended.
                let _ = self.child.kill();
            }
        }
        let (status, usage) = reap(self.child.id());
        let wall = self.begun.elapsed();
        if !in_time {
            return Err(Ended::TooLong(allowed.as_secs()));
        }
        let errors = text(&mut self.errors);
        let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        if let Some(signal) = status.signal() {
            return Err(Ended::Signal { signal, last });
        }
        if !status.success() {
            return Err(Ended::Exit { code: status.code().unwrap_or(-1), last });
        }
        let mut metrics = outside(&usage, wall);
        if self.reports {
            let output = text(&mut self.output);
            let line = output.lines().last().unwrap_or_default();
            metrics.merge(serde_json::from_str(line).map_err(|_| Ended::Silent(last))?);
        }
        Ok(metrics)
    }
}

fn outside(usage: &libc::rusage, wall: Duration) -> Metrics {
    let nanos = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
    let (user, sys) = (nanos(usage.ru_utime), nanos(usage.ru_stime));
    let mut metrics = Metrics::new();
    metrics.set("process_wall_ns", wall.as_nanos() as f64);
    metrics.set("process_user_ns", user);
    metrics.set("process_sys_ns", sys);
    metrics.set("process_cpu_ns", user + sys);
    metrics.set("process_minor_faults", usage.ru_minflt as f64);
    metrics.set("process_major_faults", usage.ru_majflt as f64);
    metrics.set("process_peak_bytes", usage.ru_maxrss as f64 * 1024.0);
    metrics
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // Seeking and reading a file in memory do not fail; an error would leave the text empty.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until the process has ended, without reaping it, or the time is over. Returns whether it has ended.
fn ends_within(process: u32, time: Duration) -> bool {
    // SAFETY: the call takes no pointers, and returns a new descriptor or an error.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0) };
    if handle < 0 {
        // Without a descriptor the following wait has no limit, which is better than no benchmark.
        return true;
    }
    // SAFETY: the descriptor is new, valid and not owned elsewhere.
    let handle = unsafe { OwnedFd::from_raw_fd(handle as libc::c_int) };
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis().min(i32::MAX as u128) as i32;
        let mut wait = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` gets one valid entry.
        match unsafe { libc::poll(&raw mut wait, 1, left) } {
            0 => return false,
            n if n > 0 => return true,
            _ => {}
        }
    }
}

/// Waits for a child and returns its status and resource use.
fn reap(process: u32) -> (ExitStatus, libc::rusage) {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is valid; the process is a child that was not reaped
    // before.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(process as libc::pid_t, &raw mut status, 0, &raw mut usage) < 0
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
        (ExitStatus::from_raw(status), usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, reports: bool) -> Launch {
        Launch { reports, ..Launch::new("/bin/sh", ["-c", script]) }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn figures_come_from_inside_and_outside() {
        let metrics = shell(r#"echo noise; echo '{"answer": 42}'"#, true).run(LONG).unwrap();
        assert_eq!(metrics.get("answer"), Some(42.0));
        assert!(metrics.get("process_peak_bytes").unwrap() > 0.0);
        assert!(metrics.get("process_wall_ns").unwrap() > 0.0);
    }

    #[test]
    fn every_kind_of_failure_is_distinguished() {
        let exit = shell("echo why >&2; exit 3", false).run(LONG).unwrap_err();
        assert_eq!(exit, Ended::Exit { code: 3, last: "why".to_owned() });
        let killed = shell("kill -SEGV $$", false).run(LONG).unwrap_err();
        assert!(matches!(killed, Ended::Signal { signal: libc::SIGSEGV, .. }), "{killed}");
        assert_eq!(shell("true", true).run(LONG).unwrap_err(), Ended::Silent(String::new()));
        assert_eq!(shell("sleep 60", false).run(Duration::from_millis(30)).unwrap_err(), Ended::TooLong(0));
        let mut none = shell("", false);
        none.program = "/nonexistent/program".into();
        assert!(matches!(none.run(LONG).unwrap_err(), Ended::NotStarted { .. }));
    }

    #[test]
    fn the_watch_function_can_end_a_process() {
        let between = Duration::from_millis(1);
        let mut looks = 0;
        let ended = shell("sleep 60", true).run_watched(LONG, between, &mut || {
            looks += 1;
            if looks == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((ended.unwrap_err(), looks), (Ended::Asked, 3));
        let mut none = || ControlFlow::Continue(());
        let metrics = shell(r#"echo '{"answer": 42}'"#, true).run_watched(LONG, between, &mut none).unwrap();
        assert_eq!(metrics.get("answer"), Some(42.0));
        let late = shell("sleep 60", true).run_watched(Duration::from_millis(30), between, &mut none);
        assert_eq!(late.unwrap_err(), Ended::TooLong(0));
    }

    #[test]
    fn the_environment_is_built_from_nothing() {
        let mut launch = shell("echo \"{\\\"n\\\": $(env | grep -c -E '^(CARGO|HOME|USER)')}\"; true", true);
        launch.env.push(("CARGO_LIKE".into(), "1".into()));
        assert_eq!(launch.run(LONG).unwrap().get("n"), Some(1.0));
    }

    #[test]
    fn much_output_does_not_block() {
        let metrics = shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2", false).run(LONG);
        assert!(metrics.is_ok());
    }
}
