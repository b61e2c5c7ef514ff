//! Ends the process with a message when paging cannot go on, as the program must never see wrong contents.

use rustix::io::Errno;
use vellum_sys::{Line, thread};

/// Ends the process, with a message that names the failure and the kernel's error.
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
