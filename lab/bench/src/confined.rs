//! Runs programs under memory limits, each in its own cgroup. Several experiments share this code.
//!
//! A client that sends requests to a program runs outside the program's cgroup, so that the client's
//! memory and CPU time are not counted.
//!
//! Invariant: after a run, however it ended, the run's processes and its cgroup are gone.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use vellum_campaign::confine::{DeviceError, Group, GroupError};
use vellum_measure::{Interval, paired_ratio};
use vellum_process::Interrupt;

/// Time between two checks whether the program has ended.
const LOOK: Duration = Duration::from_millis(2);
/// No limit, in bytes: more than any machine has.
pub(crate) const NONE: u64 = 1 << 50;

/// The folder for programs' files. It is on a disk, since files in memory would count under the limit.
pub(crate) const FOLDER: &str = "/var/tmp";
/// Bytes of the paging device: more than all programs together use.
pub(crate) const DEVICE_BYTES: u64 = 2 << 30;
/// The longest that a run without limit may take.
pub(crate) const UNLIMITED_LONGEST: Duration = Duration::from_secs(300);
/// Wall time of a limited run, at most, in multiples of the first run, which has no limit.
pub(crate) const LONGEST: u32 = 4;
/// The note after a signal has ended a section early.
pub(crate) const STOPPED: &str = "a signal asked to end: what comes after was not measured";
const RESAMPLES: usize = 1000;

/// The options of a section.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// Programs whose cell's name contains this.
    pub only: Option<&'a str>,
    /// Rounds.
    pub rounds: usize,
    /// Seed of the orders and inputs.
    pub seed: u64,
    /// The command `vellum`.
    pub vellum: PathBuf,
}

/// Nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Unmeasured {
    /// There is no paging device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Inputs could not be made.
    #[error("the programs' inputs could not be made: {0}")]
    Inputs(#[from] io::Error),
    /// A file of the project is missing.
    #[error("{} is not there; build everything with ./build", .0.display())]
    Missing(PathBuf),
}

#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The name of its cgroup, to which our process id is added.
    pub(crate) name: &'a str,
    pub(crate) command: Command,
    /// A client outside the group that sends it work. When the client has ended, the program gets a signal
    /// to end. Without a client the program ends alone.
    pub(crate) driver: Option<Command>,
    /// The limit in bytes.
    pub(crate) limit: u64,
    /// The program is stopped after this time.
    pub(crate) longest: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Took {
    pub(crate) user_ns: f64,
    pub(crate) system_ns: f64,
    pub(crate) wall_ns: f64,
    pub(crate) major_faults: u64,
    /// The peak of the bytes charged to its cgroup.
    pub(crate) charged: u64,
    /// Number of times the kernel found nothing to reclaim.
    pub(crate) relieved: u32,
    /// Whether we stopped it because it took too long, or the kernel killed it for lack of memory: its true
    /// cost is higher.
    pub(crate) cut: bool,
}

impl Took {
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// Why a run has no figure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error("the program could not be run: {0}")]
    Start(#[from] io::Error),
    #[error("the program failed under no limit (wait status {0:#x})")]
    Failed(i32),
    #[error("what drives it failed ({0})")]
    Driver(std::process::ExitStatus),
    #[error("a signal asked to end")]
    Asked,
}

/// Runs the program; `look` is called every few milliseconds during the run.
pub(crate) fn run(job: Job<'_>, mut look: impl FnMut(&Group)) -> Result<Took, RunError> {
    let Job { name, mut command, driver, limit, longest } = job;
    let group = Group::new(name, limit)?;
    let enter = std::fs::OpenOptions::new().write(true).open(group.members())?;
    // SAFETY: between fork and exec there are three system calls on values made before.
    unsafe {
        command.pre_exec(move || {
            use std::os::fd::AsRawFd;
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // "0" stands for the process that writes it.
            let written = libc::write(enter.as_raw_fd(), c"0".as_ptr().cast(), 1);
            if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
        });
    }
    let began = Instant::now();
    let pid = command.spawn()?.id() as libc::pid_t;
    // SAFETY: a signal to the process group that our child leads; the child has not been waited for, so its
    // number is not reused.
    let kill = |signal| unsafe { libc::kill(-pid, signal) };
    let mut driver = match driver.map(|mut driver| driver.spawn()).transpose() {
        Ok(driver) => driver,
        Err(why) => {
            kill(libc::SIGKILL);
            while ended(pid).is_none() {
                std::thread::sleep(LOOK);
            }
            return Err(why.into());
        }
    };
    let is_driven = driver.is_some();
    let (mut cut, mut done, mut drove) = (false, false, None);
    let (status, usage) = loop {
        if let Some(ended) = ended(pid) {
            break ended;
        }
        if began.elapsed() > longest || Interrupt::arrived().is_some() {
            cut = true;
            kill(libc::SIGKILL);
        } else if !done
            && let Some(driver) = &mut driver
            && let Some(status) = driver.try_wait()?
        {
            (done, drove) = (true, Some(status));
            kill(libc::SIGTERM);
        }
        group.relieve();
        look(&group);
        std::thread::sleep(LOOK);
    };
    end_members(&group);
    if let Some(mut driver) = driver
        && !done
    {
        let _ = driver.kill();
        let _ = driver.wait();
    }
    if Interrupt::arrived().is_some() {
        return Err(RunError::Asked);
    }
    if let Some(status) = drove.filter(|status| !status.success() && !cut) {
        return Err(RunError::Driver(status));
    }
    // A program with a client is ended by us when the client's work is done, and never ends before.
    let killed = if is_driven { !done && limit < NONE } else { libc::WIFSIGNALED(status) && limit < NONE };
    if !(cut || killed || done || !is_driven && status == 0) {
        return Err(RunError::Failed(status));
    }
    let time = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
    Ok(Took {
        user_ns: time(usage.ru_utime),
        system_ns: time(usage.ru_stime),
        wall_ns: began.elapsed().as_nanos() as f64,
        major_faults: usage.ru_majflt as u64,
        charged: group.most_charged().unwrap_or(0),
        relieved: group.relieved(),
        cut: cut || killed,
    })
}

/// Kills the processes that a program has left in its group.
fn end_members(group: &Group) {
    let members = std::fs::read_to_string(group.members()).unwrap_or_default();
    for pid in members.lines().filter_map(|line| line.parse::<libc::pid_t>().ok()) {
        // SAFETY: a signal to a process that is listed in our own group.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

/// The ratio of the CPU times of two series of runs, paired by round.
pub(crate) fn cpu_ratio(of: &[Took], over: &[Took], seed: u64) -> Option<Interval> {
    let pairs: Vec<(f64, f64)> = of.iter().zip(over).map(|(a, b)| (a.cpu_ns(), b.cpu_ns())).collect();
    paired_ratio(&pairs, RESAMPLES, seed)
}

/// The status and resource use of a child that has ended, including the children that it has waited for.
fn ended(pid: libc::pid_t) -> Option<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is valid; the call fills it and the status.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) == pid).then_some((status, usage))
    }
}
