//! Messages when paging cannot go on, and the end of the process: a page that cannot be had is never replaced
//! by another.

use rustix::io::Errno;
use vellum_sys::{Line, thread};

/// Ends the process, saying what the pager does or finds, and the error of the kernel that is behind it.
#[cold]
pub(crate) fn stop(what: &str, errno: Errno) -> ! {
    let mut line = Line::new();
    line.text("vellum: the pager ").text(what);
    line.text(" (errno ")
        .decimal(errno.raw_os_error().unsigned_abs().into())
        .text("): the program is stopped\n");
    line.write();
    thread::abort()
}

/// Ends the process because the page of the store at `slot`, that belongs at `address`, is not what was
/// written there.
#[cold]
pub(crate) fn corrupt(address: usize, slot: u32) -> ! {
    let mut line = Line::new();
    line.text("vellum: the page at 0x").hex(address).text(" comes back from the store (page ");
    line.decimal(slot.into())
        .text(" of it) other than it was written; the store is corrupt: the program is stopped\n");
    line.write();
    thread::abort()
}

/// Ends the process because the page that belongs at `address` does not come out of its compressed copy.
#[cold]
pub(crate) fn spoilt(address: usize) -> ! {
    let mut line = Line::new();
    line.text("vellum: the page at 0x").hex(address).text(
        " comes back from the compressed pages other than it was given up; something has written to the pager's memory: \
         the program is stopped\n",
    );
    line.write();
    thread::abort()
}

/// Ends the process because the page at `address`, which is in memory by the pager's account, is not.
#[cold]
pub(crate) fn lost(address: usize) -> ! {
    let mut line = Line::new();
    line.text("vellum: the page at 0x").hex(address).text(
        " is gone: the kernel has lost it, or the program has dropped it by a system call that did not pass through the C library's functions; \
         its contents cannot be had: the program is stopped\n",
    );
    line.write();
    thread::abort()
}
