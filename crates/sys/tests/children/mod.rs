//! Parts of tests that need a process of their own.

/// Runs `body` in a child; its wait status.
pub(crate) fn child(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls nothing that needs a lock another thread may hold, and ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(result) };
    }
    assert!(child > 0, "no child");
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// What a child exited with; `None` if a signal ended it.
pub(crate) fn exited(status: i32) -> Option<i32> {
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}
