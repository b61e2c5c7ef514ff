//! Runs a test in a separate process ([`alone`]), in one with a role ([`again`]), or in a child ([`forked`]).

use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::Command;

/// Set in processes that run one test only: by the runner of `./test`, and by [`alone`] and [`again`].
pub const ALONE_ENV: &str = "VELLUM_TEST_ALONE";
/// The role given to a process that [`again`] has started.
const ROLE_ENV: &str = "VELLUM_TEST_ROLE";
/// Multiplies the work of random tests: see [`scale`].
const SCALE_ENV: &str = "VELLUM_TEST_SCALE";

/// Runs a test's `body`, a closure written in that test, in a process without other tests. This process is
/// used if it runs one test only; otherwise a child.
pub fn alone<F: FnOnce()>(body: F) {
    if std::env::var_os(ALONE_ENV).is_some() {
        return body();
    }
    let test = test_name::<F>();
    let ended = run_test(test).output().expect("this program");
    let said = String::from_utf8_lossy(&ended.stdout);
    println!("{said}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{test}: {}", ended.status);
    assert!(said.contains("test result: ok. 1 passed"), "{test}: nothing was tested");
}

/// A command that runs `test` of this program alone, in a process in which [`role`] returns `role`.
pub fn again<F: Fn()>(test: F, role: &str) -> Command {
    let _ = test;
    let mut command = run_test(test_name::<F>());
    command.env(ROLE_ENV, role);
    command
}

/// The role for which [`again`] started this process.
pub fn role() -> Option<String> {
    std::env::var(ROLE_ENV).ok()
}

/// Runs `body` in a forked child, whose only thread is the caller's; returns the wait status. A panic ends
/// the child with status 101.
pub fn forked(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the calling tests take no lock that another thread holds; the child ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // The child cannot use the harness's buffer for a test's output.
        set_hook(Box::new(|panic| {
            let text = format!("{panic}\n");
            // SAFETY: `text` has `text.len()` bytes and lives until the call returns.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        }));
        let status = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
        // SAFETY: `_exit` has no preconditions.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: `child` is a child of this process, and `status` is a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// The factor on the work of random tests: `VELLUM_TEST_SCALE`, or 1.
pub fn scale() -> usize {
    std::env::var(SCALE_ENV).map_or(1, |scale| scale.parse().expect("VELLUM_TEST_SCALE is a number"))
}

fn run_test(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--include-ignored", "--nocapture"]).env(ALONE_ENV, "1");
    command
}

/// The harness's name of the test that is, or contains, a function of that type.
fn test_name<F>() -> &'static str {
    let path = type_name::<F>().trim_end_matches("::{{closure}}");
    path.split_once("::").map_or(path, |(_, test)| test)
}
