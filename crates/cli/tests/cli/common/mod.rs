//! Helpers for the tests of the command `vellum`.

pub(crate) mod browser;
pub(crate) mod held;
pub(crate) mod recorded;
pub(crate) mod terminal;

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The command under test.
pub(crate) const VELLUM: &str = env!("CARGO_BIN_EXE_vellum");

pub(crate) use vellum_skip::{folder as libraries, skip};

/// A library that can be preloaded anywhere without effect: the C library, which is loaded anyway. Vellum's
/// own library is tested elsewhere.
pub(crate) fn harmless_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let line = maps.lines().find(|line| line.contains("/libc.so")).expect("a C library is mapped");
    PathBuf::from(&line[line.find('/').unwrap()..])
}

/// `vellum run` with `options` before the program.
pub(crate) fn run(options: &[&str]) -> Command {
    let mut command = Command::new(VELLUM);
    command.arg("run").arg("--lib").arg(harmless_library()).args(options).arg("--").env_remove("VELLUM_LIB");
    heeding_signals(&mut command);
    command
}

/// Makes `command` start with default signals, as from a terminal, even if the tests ignore signals (a
/// shell's background jobs ignore SIGINT).
pub(crate) fn heeding_signals(command: &mut Command) {
    // SAFETY: the closure only calls `signal`, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

/// `vellum run OPTIONS -- sh -c SCRIPT`, to its end.
pub(crate) fn sh(options: &[&str], script: &str) -> Output {
    run(options).args(["sh", "-c", script]).output().expect("vellum starts")
}

pub(crate) fn vellum<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Output {
    Command::new(VELLUM).args(words).output().expect("vellum starts")
}

/// `vellum WORDS` as a user without rights, by a copy that this user can execute; `None`, with a skip, where
/// that is impossible.
pub(crate) fn vellum_as_nobody(words: &[&str]) -> Option<Output> {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        skip("only root can become another user");
        return None;
    }
    let all_may_read = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let place = tempfile::Builder::new().permissions(all_may_read).tempdir().unwrap();
    let copy = place.path().join("vellum");
    std::fs::copy(VELLUM, &copy).expect("a copy");
    let ended = Command::new(&copy).args(words).uid(NOBODY).gid(NOBODY).current_dir("/").output();
    ended.map_err(|error| skip(format_args!("nobody may not execute a program here: {error}"))).ok()
}

/// A process that is killed at the end.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("it starts"))
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `command` to its end with `input` on standard input.
pub(crate) fn piped(command: &mut Command, input: &[u8]) -> Output {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("it starts");
    let (mut stdin, input) = (child.stdin.take().expect("a pipe"), input.to_vec());
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends");
    output
}

/// The output of a command that ended with this status.
#[track_caller]
pub(crate) fn exits(status: i32, output: Output) -> Output {
    assert_eq!(output.status.code(), Some(status), "{}{}", out(&output), said(&output));
    output
}

/// Standard error as text.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Like [`out`], for a command that must have succeeded.
pub(crate) fn out_of_success(output: &Output) -> String {
    out(&exits(0, output.clone()))
}

/// Checks that Vellum failed with status 125, and that its message contains `why`.
#[track_caller]
pub(crate) fn refused(ended: &Output, why: &str) {
    assert!(ended.status.code() == Some(125) && said(ended).contains(why), "{why}: {ended:?}");
}

/// The JSON report in `path`.
pub(crate) fn report(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a report")).expect("JSON")
}

/// Checks that a text contains all `parts`.
#[track_caller]
pub(crate) fn has(text: &str, parts: &[&str]) {
    let missing: Vec<_> = parts.iter().filter(|part| !text.contains(**part)).collect();
    assert!(missing.is_empty(), "{missing:?} missing:\n{text}");
}

/// The first line that is too long for a terminal.
pub(crate) fn wide(text: &str) -> Option<&str> {
    text.lines().find(|line| line.chars().count() > 80 && line.contains(' '))
}

/// Checks that a page of docs mentions these fields.
#[track_caller]
pub(crate) fn documented(page: &str, fields: impl IntoIterator<Item = impl AsRef<str>>) {
    let page = format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/{}"), page);
    let words = std::fs::read_to_string(&page).expect("a page");
    for field in fields {
        let field = field.as_ref();
        assert!(words.contains(&format!("`{field}`")), "{page} does not mention {field}");
    }
}

/// A temporary folder, and paths of files in it.
pub(crate) fn files<const N: usize>(names: [&str; N]) -> (tempfile::TempDir, [PathBuf; N]) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let files = names.map(|name| place.path().join(name));
    (place, files)
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain text")
}

/// The time after which a wait counts as hung; the machine may be emulated.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `done` returns true.
#[track_caller]
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "{what}: it does not happen");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The C program `source`, compiled by `compiler` with `flags`, and shared by all tests. `None` skips the
/// test.
pub(crate) fn program(compiler: &str, flags: &[&str], source: &str) -> Option<PathBuf> {
    let file = vellum_skip::source("program.c", source);
    vellum_skip::compiled_or_skip(compiler, "program", &[file], flags)
}
