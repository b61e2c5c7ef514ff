//! Runs one process: spawns it without a copy of this process, waits for it, and reads its resource usage.
//!
//! Until it calls `exec`, the child of `posix_spawn` shares this process's memory (as with `vfork`). The time
//! of a start therefore does not grow with this process's memory, and no page is copied afterwards. The clock
//! is read just before `posix_spawn` and just after `wait4` returns. `wait4` also returns the kernel's
//! account of the child's usage, to the microsecond.

use super::ProcessMetric;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use vellum_process::{Command, Outcome, SpawnError, Told, Usage};
use vellum_timing::clock::{Clock, monotonic_ns};

/// The run of one process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessRun {
    /// The start, in nanoseconds of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// The time from just before its start until its end was seen, in nanoseconds.
    pub wall_ns: f64,
    /// The resource usage of the process and the children that it waited for.
    pub usage: Usage,
    /// The way it ended.
    pub outcome: Outcome,
    /// The instructions that it and its children executed in user mode, if they were counted.
    pub instructions: Option<u64>,
}

impl ProcessRun {
    /// User and system time, nanoseconds.
    #[must_use]
    pub fn cpu_ns(&self) -> f64 {
        (self.usage.user + self.usage.system).as_nanos() as f64
    }

    /// A figure of the run; 0 if it was not measured.
    pub(super) fn value(&self, metric: ProcessMetric) -> f64 {
        match metric {
            ProcessMetric::Wall => self.wall_ns,
            ProcessMetric::Cpu => self.cpu_ns(),
            ProcessMetric::Instructions => self.instructions.map_or(0.0, |count| count as f64),
        }
    }
}

/// The words of a command as C strings.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) program: CString,
    pub(super) argv: Vec<CString>,
    pub(super) env: Vec<CString>,
}

impl Words {
    pub(super) fn of(command: &Command) -> Result<Words, SpawnError> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| SpawnError::Nul);
        let argv = command.argv.iter().map(|arg| text(arg.as_bytes()));
        let pair =
            |(name, value): &(OsString, OsString)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        Ok(Words {
            program: text(command.program.as_os_str().as_bytes())?,
            argv: argv.collect::<Result<_, _>>()?,
            env: command.env.iter().map(pair).collect::<Result<_, _>>()?,
        })
    }
}

/// Runs a program once with these standard descriptors.
pub(super) fn run(program: &Words, clock: &Clock, stdio: [RawFd; 3]) -> Result<ProcessRun, SpawnError> {
    let pointers = |texts: &[CString]| -> Vec<*mut libc::c_char> {
        texts.iter().map(|text| text.as_ptr().cast_mut()).chain([null_mut()]).collect()
    };
    let (argv, env) = (pointers(&program.argv), pointers(&program.env));
    let settings = Settings::new(stdio)?;
    let (mut pid, mut status) = (0, 0);
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let start_ns = monotonic_ns();
    let first = clock.stamp();
    // SAFETY: the strings belong to `program`; both null-terminated arrays, actions and attributes are
    // locals. All outlive the call, which only reads them.
    let failed = unsafe {
        let (actions, attributes) = (&raw const settings.actions, &raw const settings.attributes);
        let path = program.program.as_ptr();
        libc::posix_spawn(&mut pid, path, actions, attributes, argv.as_ptr(), env.as_ptr())
    };
    if failed != 0 {
        let source = io::Error::from_raw_os_error(failed);
        let path = PathBuf::from(OsStr::from_bytes(program.program.as_bytes()));
        return Err(match failed {
            libc::ENOENT | libc::ENOTDIR if !path.exists() => SpawnError::NotFound(path),
            libc::EAGAIN | libc::ENOMEM => SpawnError::System { call: "posix_spawn", source },
            _ => SpawnError::NotExecutable { path, source },
        });
    }
    let told = Told::of(pid);
    let waited = loop {
        // SAFETY: `status` and `usage` are locals that the call only writes; `pid` is our child and was
        // not waited for yet.
        let waited = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
        if waited >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break waited;
        }
    };
    let second = clock.stamp();
    drop(told);
    if waited < 0 {
        return Err(SpawnError::System { call: "wait4", source: io::Error::last_os_error() });
    }
    Ok(ProcessRun {
        start_ns,
        wall_ns: clock.between(first, second),
        // SAFETY: wait4 returned this child, so it filled `usage`.
        usage: Usage::from(unsafe { usage.assume_init() }),
        outcome: Outcome::of_status(status),
        instructions: None,
    })
}

/// Settings of a child: standard descriptors, no signal blocked, the default action of `SIGPIPE`.
struct Settings {
    actions: libc::posix_spawn_file_actions_t,
    attributes: libc::posix_spawnattr_t,
}

impl Settings {
    fn new(stdio: [RawFd; 3]) -> Result<Settings, SpawnError> {
        let failed = |call| SpawnError::System { call, source: io::Error::last_os_error() };
        // SAFETY: the calls initialise actions, attributes and sets before any other use; `drop` destroys
        // actions and attributes once.
        unsafe {
            let mut settings: Settings = MaybeUninit::zeroed().assume_init();
            if libc::posix_spawn_file_actions_init(&mut settings.actions) != 0 {
                return Err(failed("posix_spawn_file_actions_init"));
            }
            if libc::posix_spawnattr_init(&mut settings.attributes) != 0 {
                libc::posix_spawn_file_actions_destroy(&mut settings.actions);
                // Avoids a second destruction.
                std::mem::forget(settings);
                return Err(failed("posix_spawnattr_init"));
            }
            for (to, from) in stdio.into_iter().enumerate() {
                // Needed even for a descriptor onto itself, which clears its close-on-exec flag in the child.
                libc::posix_spawn_file_actions_adddup2(&mut settings.actions, from, to as RawFd);
            }
            let mut set: libc::sigset_t = MaybeUninit::zeroed().assume_init();
            libc::sigemptyset(&mut set);
            libc::posix_spawnattr_setsigmask(&mut settings.attributes, &set);
            libc::sigaddset(&mut set, libc::SIGPIPE);
            libc::posix_spawnattr_setsigdefault(&mut settings.attributes, &set);
            let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
            libc::posix_spawnattr_setflags(&mut settings.attributes, flags as libc::c_short);
            Ok(settings)
        }
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // SAFETY: `new` initialised both, and they are not used after this drop.
        unsafe {
            libc::posix_spawn_file_actions_destroy(&mut self.actions);
            libc::posix_spawnattr_destroy(&mut self.attributes);
        }
    }
}
