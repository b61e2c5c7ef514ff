//! Runs programs on a pseudo-terminal.

use super::heeding_signals;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Both ends of a new pseudo-terminal.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: `openpty` writes two local variables; name, modes and size are null.
    let made = unsafe { libc::openpty(&mut master, &mut slave, none, std::ptr::null(), std::ptr::null()) };
    assert_eq!(made, 0, "a pseudo-terminal: {}", std::io::Error::last_os_error());
    for fd in [master, slave] {
        // SAFETY: `fd` was just opened.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: both descriptors were just opened, and nothing else owns them.
    unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

/// Starts `command` as the leader of a session on `slave`.
pub(crate) fn on_terminal(command: &mut Command, slave: &OwnedFd) -> Child {
    let fd = slave.as_raw_fd();
    command.stdin(Stdio::from(slave.try_clone().unwrap())).stderr(Stdio::from(slave.try_clone().unwrap()));
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    heeding_signals(command);
    // SAFETY: setsid and ioctl are async-signal-safe; the descriptor stays open until exec.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::ioctl(fd, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    command.spawn().unwrap()
}

/// The longest wait for output that should come at once, so that a hang becomes a failure with a message.
pub(crate) const PATIENCE_MS: i32 = 60_000;

/// Reads into `seen` until `text` has appeared.
pub(crate) fn until(master: &mut File, seen: &mut String, text: &str) {
    let mut buffer = [0; 4096];
    while !seen.contains(text) {
        let mut wait = libc::pollfd { fd: master.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `wait` is one structure, which lives across the call.
        let ready = unsafe { libc::poll(&mut wait, 1, PATIENCE_MS) };
        assert_eq!(ready, 1, "no {text:?} came; so far: {seen:?}");
        match master.read(&mut buffer) {
            Ok(read) if read > 0 => seen.push_str(&String::from_utf8_lossy(&buffer[..read])),
            _ => panic!("the terminal closed without {text:?}; so far: {seen:?}"),
        }
    }
}
