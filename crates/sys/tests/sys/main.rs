//! Tests of signal handlers, each case in a forked child, because a process sets the handler once.

mod guard;
mod segv;

use vellum_skip::forked as child;

/// The exit status of a child; `None` if a signal ended it.
fn exited(status: i32) -> Option<i32> {
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}
