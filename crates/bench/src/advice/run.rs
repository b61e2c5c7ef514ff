//! One run of a program under a limit, in a control group of its own.

use super::program::Program;
use super::rivals::{Senpai, Usage};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vellum_process::Interrupt;
use vellum_process::confine::{Group, GroupError};

/// How long between looks at whether it has ended.
const LOOK: Duration = Duration::from_millis(2);
/// No limit, in bytes: more than any machine has.
pub(super) const NONE: u64 = 1 << 50;

/// What a run took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Took {
    pub(super) user_ns: f64,
    pub(super) system_ns: f64,
    pub(super) wall_ns: f64,
    pub(super) major_faults: u64,
    /// The most that its group was charged, in bytes.
    pub(super) charged: u64,
    /// What the recommender's rule makes of its usage, and what was held in the second half, in bytes.
    pub(super) recommended: u64,
    pub(super) settled: u64,
    /// How often the kernel found nothing to reclaim.
    pub(super) relieved: u32,
    /// It was ended by us because it took too long, or by the kernel for lack of memory: it would have taken
    /// more.
    pub(super) cut: bool,
}

impl Took {
    pub(super) fn cpu_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

/// There is no figure.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error("the program could not be run: {0}")]
    Start(#[from] io::Error),
    #[error("the program failed under no limit (wait status {0:#x})")]
    Failed(i32),
    #[error("a signal asked to end")]
    Asked,
}

/// What is run.
#[derive(Debug, Clone)]
pub(super) struct Setting<'a> {
    pub(super) program: Program,
    pub(super) executable: OsString,
    pub(super) folder: &'a Path,
    pub(super) library: &'a Path,
}

impl Setting<'_> {
    pub(super) fn command(&self, executable: &OsString) -> io::Result<Command> {
        let mut command = Command::new(executable);
        command.current_dir(self.folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.stdin(match self.program.input {
            Some(name) => Stdio::from(File::open(self.folder.join(name))?),
            None => Stdio::null(),
        });
        Ok(command)
    }

    /// Runs it on Vellum's memory under a limit, and under the loop if there is one, and cuts it short after
    /// `longest`.
    pub(super) fn run(
        &self,
        limit: u64,
        mut senpai: Option<Senpai>,
        longest: Duration,
    ) -> Result<Took, RunError> {
        let group = Group::new("vellum-advice", limit)?;
        let enter = std::fs::OpenOptions::new().write(true).open(group.members())?;
        let mut command = self.command(&self.executable)?;
        command.args(&self.program.command[1..]).env("LD_PRELOAD", self.library);
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
        let (mut cut, mut usage_of) = (false, Usage::new());
        let (status, usage) = loop {
            if let Some(ended) = ended(pid) {
                break ended;
            }
            let asked = Interrupt::arrived().is_some();
            if began.elapsed() > longest || asked {
                cut = true;
                // SAFETY: a signal to the group of processes that ours leads; it has not been waited for.
                unsafe { libc::kill(-pid, libc::SIGKILL) };
            }
            group.relieve();
            usage_of.look(&group);
            if let Some(senpai) = &mut senpai {
                senpai.look(&group);
            }
            std::thread::sleep(LOOK);
        };
        if Interrupt::arrived().is_some() {
            return Err(RunError::Asked);
        }
        let time = |t: libc::timeval| t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3;
        let killed = libc::WIFSIGNALED(status) && limit < NONE;
        if !(cut || killed || status == 0) {
            return Err(RunError::Failed(status));
        }
        Ok(Took {
            user_ns: time(usage.ru_utime),
            system_ns: time(usage.ru_stime),
            wall_ns: began.elapsed().as_nanos() as f64,
            major_faults: usage.ru_majflt as u64,
            charged: group.most_charged().unwrap_or(0),
            recommended: usage_of.recommended(),
            settled: usage_of.settled(),
            relieved: group.relieved(),
            cut: cut || killed,
        })
    }
}

/// The status and the use of a child that has ended.
fn ended(pid: libc::pid_t) -> Option<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is valid; the call fills it and the status.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) == pid).then_some((status, usage))
    }
}
