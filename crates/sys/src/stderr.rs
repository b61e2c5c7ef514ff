//! Messages to the program's standard error, from threads whose own descriptor 2 is not the program's.
//!
//! Background threads have separate descriptors ([`thread::close_inherited`]), and so keep no pipe of the
//! program's open. In these threads, descriptor 2 is closed or another file. Such a thread writes its
//! messages, for example before it stops the program, to the *program's* current number 2. It borrows that
//! descriptor for one write (`pidfd_getfd`, Linux 5.6). If a filter forbids that, it opens the same file
//! anew, which works for all but sockets.

use crate::{Line, raw, thread};
use core::ffi::CStr;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Writes `bytes`, once, and ignores failure, which cannot be reported anywhere.
pub(crate) fn write(bytes: &[u8]) {
    if !thread::is_helper() {
        // SAFETY: the calling thread's descriptors are the program's, and so is the file of this number.
        let _ = rustix::io::write(unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) }, bytes);
    } else if let Ok(file) = borrow().or_else(|_| reopen()) {
        let _ = rustix::io::write(&file, bytes);
    }
}

/// The thread that the process began with, whose descriptors are the program's.
fn leader() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
}

fn borrow() -> Result<OwnedFd, Errno> {
    let open = |call, args| {
        // SAFETY: both calls below take numbers only.
        let number = unsafe { raw::syscall(call, args)? };
        // SAFETY: made a moment ago, and nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
    };
    let process = open(libc::SYS_pidfd_open, [leader() as usize, 0, 0, 0, 0, 0])?;
    let number = process.as_raw_fd() as usize;
    open(libc::SYS_pidfd_getfd, [number, libc::STDERR_FILENO as usize, 0, 0, 0, 0])
}

pub(crate) fn reopen() -> Result<OwnedFd, Errno> {
    let mut path = Line::new();
    path.text("/proc/").decimal(leader().into()).text("/fd/2\0");
    let path = CStr::from_bytes_with_nul(path.bytes()).map_err(|_| Errno::INVAL)?;
    // To the end, as the process that opened it first goes on there.
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}
