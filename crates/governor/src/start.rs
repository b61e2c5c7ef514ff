//! Starts a job's program, with its user, working directory, environment, output, session and cgroup.
//!
//! A job has its own session, for three reasons:
//! - The terminal's signals to the governor (Ctrl-C, a hang-up) do not reach it.
//! - It outlives the governor.
//! - Its orphaned processes are recognised by the session.
//!
//! Invariant: between fork and exec only async-signal-safe functions are called, on memory prepared before.

use crate::config::CommandConfig;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use vellum_kernel::{Cgroup, Control};
use vellum_process::library;

/// A job's program could not be started.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum StartError {
    /// The file for its output cannot be opened.
    #[error("output {}: cannot be opened: {source}", .path.display())]
    Output { path: PathBuf, source: io::Error },
    /// The program cannot be run.
    #[error("{program}: cannot be started: {source}")]
    Program { program: String, source: io::Error },
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    pub(crate) advice: Option<&'a Path>,
    pub(crate) library: Option<&'a Path>,
    /// The control group it is to be in, or to get one of its own below.
    pub(crate) group: Option<&'a Path>,
}

pub(crate) fn start(config: &CommandConfig, given: Given<'_>) -> Result<Child, StartError> {
    let (program, arguments) = config.argv.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
    let failed = |source| StartError::Program { program: program.to_owned(), source };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let (output, errors) = output(config.output.as_deref())?;
    command.stdout(output).stderr(errors);
    if let Some(directory) = &config.directory {
        command.current_dir(directory);
    }
    if let Some(user) = &config.user {
        command.env("USER", &user.name).env("LOGNAME", &user.name);
    }
    if let Some(advice) = given.advice {
        command.env(vellum_wire::advice::ADVICE_ENV, advice);
    }
    command.envs(config.environment.iter().map(|(name, value)| (name, value)));
    if let Some(library) = given.library.filter(|_| config.runtime) {
        let before =
            config.environment.iter().find(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value.into());
        let mut preload = library::for_every_machine(library).into_os_string();
        if let Some(before) =
            before.or_else(|| std::env::var_os("LD_PRELOAD")).filter(|before| !before.is_empty())
        {
            preload.push(":");
            preload.push(before);
        }
        command.env("LD_PRELOAD", preload);
    }
    let list = |group: &Path| Cgroup::at(group).control(Control::Processes);
    let group = given.group.map(|group| CString::new(list(group).as_os_str().as_bytes()));
    let group = group.transpose().map_err(|error| failed(error.into()))?;
    let user = config.user.clone();
    let change = user.filter(|_| rustix::process::geteuid().is_root());
    let prepare = move || {
        // SAFETY: system calls on memory made before the fork, all async-signal-safe.
        unsafe {
            // The job must not inherit the governor's blocked signals.
            let mut none = MaybeUninit::<libc::sigset_t>::zeroed();
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
            libc::setsid();
            if let Some(group) = &group {
                let fd = libc::open(group.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                if fd < 0 || libc::write(fd, c"0".as_ptr().cast(), 1) != 1 {
                    return Err(io::Error::last_os_error());
                }
                libc::close(fd);
            }
            if let Some(user) = &change {
                let done = libc::setgroups(user.groups.len(), user.groups.as_ptr()) == 0
                    && libc::setgid(user.gid) == 0
                    && libc::setuid(user.uid) == 0;
                if !done {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(())
    };
    // SAFETY: `prepare` calls async-signal-safe functions only, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn().map_err(failed)
}

fn output(path: Option<&Path>) -> Result<(Stdio, Stdio), StartError> {
    let Some(path) = path else {
        // Standard output is the governor's own: a job's words among its events would make both unreadable.
        let ours = || io::stderr().as_fd().try_clone_to_owned().map_or(Stdio::null(), Stdio::from);
        return Ok((ours(), ours()));
    };
    let failed = |source| StartError::Output { path: path.to_path_buf(), source };
    let file: File = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
    let again = file.try_clone().map_err(failed)?;
    Ok((file.into(), again.into()))
}
