//! Runs a program with Vellum as its malloc under a memory limit, in its own cgroup.
//!
//! Invariant: after a run, however it ended, its processes and its cgroup are gone.

use super::program::Program;
use super::rivals::{Senpai, Usage};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
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

/// The cost of a run, and the limits that the rivals derive from it.
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
    /// The limit by the recommender's rule, and the mean memory in the second half, in bytes.
    pub(crate) recommended: u64,
    pub(crate) settled: u64,
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
    #[error("a signal asked to end")]
    Asked,
}

#[derive(Debug, Clone)]
pub(crate) struct Setting<'a> {
    pub(crate) program: Program,
    pub(crate) executable: OsString,
    pub(crate) folder: &'a Path,
    pub(crate) library: &'a Path,
}

impl Setting<'_> {
    pub(crate) fn command(&self, executable: &OsString) -> io::Result<Command> {
        self.program.command(executable, self.folder)
    }

    /// Runs the program on Vellum's memory under a limit, and under the loop if there is one, and stops it
    /// after `longest`.
    pub(crate) fn run(
        &self,
        limit: u64,
        mut senpai: Option<Senpai>,
        longest: Duration,
    ) -> Result<Took, RunError> {
        let mut command = self.command(&self.executable)?;
        command.args(&self.program.words[1..]).env("LD_PRELOAD", self.library);
        let mut usage = Usage::new();
        let group = Group::new("vellum-advice", limit)?;
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
        let mut cut = false;
        let (status, spent) = loop {
            if let Some(ended) = ended(pid) {
                break ended;
            }
            if began.elapsed() > longest || Interrupt::arrived().is_some() {
                cut = true;
                // SAFETY: a signal to the process group that our child leads; the child has not been waited
                // for, so its number is not reused.
                unsafe { libc::kill(-pid, libc::SIGKILL) };
            }
            group.relieve();
            usage.look(|| group.held());
            if let Some(senpai) = &mut senpai {
                senpai.look(&group);
            }
            std::thread::sleep(LOOK);
        };
        end_members(&group);
        if Interrupt::arrived().is_some() {
            return Err(RunError::Asked);
        }
        let killed = libc::WIFSIGNALED(status) && limit < NONE;
        if !(cut || killed || status == 0) {
            return Err(RunError::Failed(status));
        }
        let time = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
        Ok(Took {
            user_ns: time(spent.ru_utime),
            system_ns: time(spent.ru_stime),
            wall_ns: began.elapsed().as_nanos() as f64,
            major_faults: spent.ru_majflt as u64,
            charged: group.most_charged().unwrap_or(0),
            relieved: group.relieved(),
            cut: cut || killed,
            recommended: usage.recommended(),
            settled: usage.settled(),
        })
    }
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
