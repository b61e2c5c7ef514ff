//! Starts a program and waits until it ends. The program runs as if it had been started directly.
//!
//! The program has our process group (for job control and the terminal's signals), and the signal mask,
//! signal dispositions and descriptors that we were started with. Orphaned descendants are adopted by the
//! same process as without us, because some daemons wait until it is their parent. The usage of orphans is
//! not counted here; [`Tree`](crate::Tree) follows them. The wait ends when the program itself ends.
//!
//! ```text
//! spawn:  pipe ─ fork ─┬─ we: read the pipe ─ end of file: it runs · an errno: the start failed
//!                      └─ child: restore mask, dispositions, descriptors ─ execve ─ (failed: write errno)
//! wait:   poll(signals) ─ SIGCHLD ─ wait4 until none is left: ended, or stopped (we stop as well)
//! ```
//!
//! Invariant: between fork and exec the child calls only async-signal-safe functions on memory prepared
//! before the fork.
//!
//! `std::process` is not used: it empties the signal mask, sets `SIGPIPE` to its default, and reports no
//! resource usage.

use crate::{Bytes, Pid, Signals, inherited};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::{CStr, CString, OsString};
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::ops::AddAssign;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vellum_kernel::Used;

/// The shell that runs a file which the kernel cannot execute, as with execvp(3).
const SHELL: &CStr = c"/bin/sh";

/// A program to start.
#[derive(Debug)]
pub struct Command {
    /// The file.
    pub program: PathBuf,
    /// The arguments, the program's own name first.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The program's descriptors 0, 1 and 2; `None` is ours.
    pub stdio: [Option<OwnedFd>; 3],
}

/// The program could not be started.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SpawnError {
    /// The program file is not there.
    #[error("{0}: not found")]
    NotFound(PathBuf),
    /// The program file is there and cannot be executed.
    #[error("{path}: cannot be executed: {source}")]
    NotExecutable { path: PathBuf, source: io::Error },
    /// An argument or a variable of the environment holds a NUL byte.
    #[error("an argument or environment variable holds a NUL byte, which no program can be given")]
    Nul,
    /// A system call failed before the program was reached.
    #[error(
        "cannot start a process ({call}: {source}); check the limits on processes and open files (ulimit -a)"
    )]
    System { call: &'static str, source: io::Error },
}

/// Resources used, as the kernel accounts them for processes that have been waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Faults served without reading from a device.
    pub minor_faults: u64,
    /// Faults that had to read.
    pub major_faults: u64,
    /// The largest resident memory any single process reached.
    pub largest_process: Bytes,
    /// Times a process gave up the CPU.
    pub voluntary_switches: u64,
    /// Times a process was made to give up the CPU.
    pub involuntary_switches: u64,
}

/// The end of a program: its status or signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The status that it exited with.
    Exited(u8),
    /// A signal killed it.
    Killed {
        /// The signal.
        signal: i32,
        /// True if it left a core dump.
        core: bool,
    },
}

impl Outcome {
    /// The outcome in a status of wait(2) of a process that has ended.
    pub fn of_status(status: libc::c_int) -> Outcome {
        if libc::WIFSIGNALED(status) {
            Outcome::Killed { signal: libc::WTERMSIG(status), core: libc::WCOREDUMP(status) }
        } else {
            Outcome::Exited(libc::WEXITSTATUS(status) as u8)
        }
    }

    /// The status a shell would show: the program's own, or 128 + signal.
    pub fn shell_status(self) -> u8 {
        match self {
            Outcome::Exited(status) => status,
            Outcome::Killed { signal, .. } => (128 + signal) as u8,
        }
    }
}

/// The end of a program.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its status or signal.
    pub outcome: Outcome,
    /// The time from just before its start until its end was noticed.
    pub wall: Duration,
    /// The usage of the program and of the children that it waited for.
    pub usage: Usage,
    /// The first SIGINT (Ctrl-C), SIGTERM or SIGHUP that this process got during the run.
    pub asked: Option<libc::c_int>,
}

/// An event that [`Child::wait`] reports while it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// The time `tick` has passed.
    Tick,
    /// The terminal stopped the program, and this process is about to stop too.
    Stopping,
}

/// A program that runs.
#[derive(Debug)]
pub struct Child<'a> {
    pid: Pid,
    started: Instant,
    signals: &'a Signals,
}

impl<'a> Child<'a> {
    /// Starts `command`. The calling process should have one thread (see [`Signals::block`]).
    pub fn spawn(command: &Command, signals: &'a Signals) -> Result<Child<'a>, SpawnError> {
        let system = |call| move |source: io::Error| SpawnError::System { call, source };
        let prepared = Prepared::new(command)?;
        let (mut told, tell) = io::pipe().map_err(system("pipe"))?;
        let started = Instant::now();
        // SAFETY: the child calls only async-signal-safe functions and ends in exec or _exit
        // (`Prepared::exec`).
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(system("fork")(io::Error::last_os_error()));
        }
        if pid == 0 {
            prepared.exec(signals, tell.as_raw_fd());
        }
        drop(tell);
        let mut errno = [0u8; 4];
        match told.read_exact(&mut errno) {
            Err(_) => Ok(Child { pid: Pid(pid), started, signals }),
            Ok(()) => {
                // SAFETY: waits for the child just made, which is exiting; no memory is handed over.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
                let source = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
                let path = command.program.clone();
                Err(match source.raw_os_error() {
                    Some(libc::ENOENT | libc::ENOTDIR) if !path.exists() => SpawnError::NotFound(path),
                    _ => SpawnError::NotExecutable { path, source },
                })
            }
        }
    }

    /// The program's process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// When the program was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Waits for the program to end, and passes signals on. With a `tick`, calls `tell` about that often.
    pub fn wait(self, tick: Option<Duration>, mut tell: impl FnMut(Meanwhile)) -> io::Result<Ended> {
        let timeout = tick
            .map(|tick| Timespec { tv_sec: tick.as_secs() as i64, tv_nsec: i64::from(tick.subsec_nanos()) });
        let mut asked = None;
        loop {
            let mut fds = [PollFd::new(self.signals, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => tell(Meanwhile::Tick),
                Ok(_) => {
                    let mut look = false;
                    while let Some(arrived) = self.signals.next() {
                        if arrived.is_child() {
                            look = true;
                        } else {
                            asked = asked.or_else(|| arrived.asks_to_end(self.pid));
                            arrived.pass_on(self.pid);
                        }
                    }
                    if look && let Some((outcome, usage)) = self.reap(&mut tell)? {
                        let wall = self.started.elapsed();
                        return Ok(Ended { outcome, wall, usage, asked });
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for the program as long as it changes state; its outcome and usage if it ended.
    fn reap(&self, tell: &mut impl FnMut(Meanwhile)) -> io::Result<Option<(Outcome, Usage)>> {
        loop {
            let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
            let options = libc::WNOHANG | libc::WUNTRACED;
            // SAFETY: `status` and `usage` live across the call and are only written by it.
            let pid = unsafe { libc::wait4(self.pid.0, &mut status, options, usage.as_mut_ptr()) };
            if pid == 0 {
                return Ok(None);
            }
            if pid < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            if libc::WIFSTOPPED(status) {
                let signal = libc::WSTOPSIG(status);
                // A plain SIGSTOP was sent by hand to that one process, so this process does not stop.
                if matches!(signal, libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) {
                    tell(Meanwhile::Stopping);
                    self.signals.stop_self(signal);
                }
                continue;
            }
            // SAFETY: wait4 returned a pid, so it filled `usage`.
            return Ok(Some((Outcome::of_status(status), Usage::from(unsafe { usage.assume_init() }))));
        }
    }
}

struct Prepared {
    program: CString,
    argv: Strings,
    shell_argv: Strings,
    env: Strings,
    stdio: [Option<RawFd>; 3],
}

/// C strings and the null-terminated array of pointers to them that execve takes.
struct Strings {
    _owned: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl From<Vec<CString>> for Strings {
    fn from(owned: Vec<CString>) -> Strings {
        // A CString's bytes stay where they are when the vector that owns it moves.
        let pointers = owned.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Strings { _owned: owned, pointers }
    }
}

impl Prepared {
    fn new(command: &Command) -> Result<Prepared, SpawnError> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| SpawnError::Nul);
        let program = text(command.program.as_os_str().as_bytes())?;
        let argv = command.argv.iter().map(|arg| text(arg.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let shell_argv: Vec<CString> =
            [SHELL.to_owned(), program.clone()].into_iter().chain(argv.iter().skip(1).cloned()).collect();
        let env = command.env.iter().map(|(name, value)| {
            let mut pair = name.clone().into_vec();
            pair.push(b'=');
            pair.extend_from_slice(value.as_bytes());
            text(&pair)
        });
        let stdio = [0, 1, 2].map(|n: usize| command.stdio[n].as_ref().map(|fd| fd.as_fd().as_raw_fd()));
        let env = env.collect::<Result<Vec<_>, _>>()?;
        Ok(Prepared { program, argv: argv.into(), shell_argv: shell_argv.into(), env: env.into(), stdio })
    }

    /// Becomes the program, or writes errno to `tell` and exits. Runs in the forked child.
    fn exec(&self, signals: &Signals, tell: RawFd) -> ! {
        for (fd, from) in self.stdio.iter().enumerate() {
            match from {
                // SAFETY: dup2 on descriptors of this process; async-signal-safe.
                Some(from) => unsafe {
                    libc::dup2(*from, fd as RawFd);
                },
                // SAFETY: close of a descriptor of this process, closed when we were started;
                // async-signal-safe.
                None if inherited::was_closed(fd) => unsafe {
                    libc::close(fd as RawFd);
                },
                None => {}
            }
        }
        inherited::restore_in_child();
        signals.restore_mask();
        let mut errno = self.execve(&self.program, &self.argv);
        if errno == libc::ENOEXEC {
            errno = self.execve(SHELL, &self.shell_argv);
        }
        let bytes = errno.to_ne_bytes();
        // SAFETY: writes four bytes that live on this stack, then ends the child without running any
        // destructor.
        unsafe {
            libc::write(tell, bytes.as_ptr().cast(), bytes.len());
            libc::_exit(127);
        }
    }

    /// The errno that kept `program` from being run.
    fn execve(&self, program: &CStr, argv: &Strings) -> i32 {
        // SAFETY: the pointers are to NUL-terminated strings owned by `self`, and each array ends with a
        // null.
        unsafe {
            libc::execve(program.as_ptr(), argv.pointers.as_ptr(), self.env.pointers.as_ptr());
            *libc::__errno_location()
        }
    }
}

impl From<libc::rusage> for Usage {
    fn from(raw: libc::rusage) -> Usage {
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        Usage {
            user: time(raw.ru_utime),
            system: time(raw.ru_stime),
            minor_faults: raw.ru_minflt as u64,
            major_faults: raw.ru_majflt as u64,
            largest_process: Bytes::from_kib(raw.ru_maxrss as u64),
            voluntary_switches: raw.ru_nvcsw as u64,
            involuntary_switches: raw.ru_nivcsw as u64,
        }
    }
}

impl AddAssign<Used> for Usage {
    fn add_assign(&mut self, other: Used) {
        self.user += other.user;
        self.system += other.cpu.saturating_sub(other.user);
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
    }
}
