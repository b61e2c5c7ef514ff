//! Processes for tests: one without other tests, one of this program with a role, a fork with one thread.

use std::any::type_name;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::Command;

/// Set where the process runs one test only: by the runner of `./test`, and by [`alone`] and [`again`].
pub const ALONE_ENV: &str = "VELLUM_TEST_ALONE";
/// Has the role of a process that [`again`] has started.
const ROLE_ENV: &str = "VELLUM_TEST_ROLE";
/// Multiplies what random tests do: see [`scale`].
const SCALE_ENV: &str = "VELLUM_TEST_SCALE";

/// Runs a test's `body`, a closure written in that test, in a process without other tests: this one, if it
/// runs one test only, or else a child.
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

/// This program, to run `test` alone in a process in which [`role`] is `role`.
pub fn again<F: Fn()>(test: F, role: &str) -> Command {
    let _ = test;
    let mut command = run_test(test_name::<F>());
    command.env(ROLE_ENV, role);
    command
}

/// What this process was started for by [`again`].
pub fn role() -> Option<String> {
    std::env::var(ROLE_ENV).ok()
}

/// Runs `body` in a forked child, whose only thread is the caller's; the wait status. A panic ends the child
/// with status 101.
pub fn forked(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the caller's tests take no lock that another thread holds; the child ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // The harness's buffer for a test's output is lost with the child.
        set_hook(Box::new(|panic| {
            let text = format!("{panic}\n");
            // SAFETY: the text is there.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        }));
        let status = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "fork: {}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// How many times as much as usual random tests are to do: 1, or what `VELLUM_TEST_SCALE` says.
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
