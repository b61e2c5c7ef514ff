//! Helpers that the tests share.

pub(crate) mod certificate;
pub(crate) mod node;
pub(crate) mod prometheus;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vellum_fleet::{Access, Address, Server};

/// The program under test.
pub(crate) const FLEET: &str = env!("CARGO_BIN_EXE_vellum-fleet");

static MACHINE: RwLock<()> = RwLock::new(());

/// For a test that loads the machine: tests that wait for their own jobs do not run at the same time.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// For a test that waits for its own jobs or servers: similar tests may run at the same time.
pub(crate) fn beside() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the program outside of any cluster, and returns its output.
pub(crate) fn run(args: &[impl AsRef<OsStr>]) -> Output {
    Command::new(FLEET).args(args).env_remove("KUBERNETES_SERVICE_HOST").output().unwrap()
}

/// The standard output of a run that succeeds.
pub(crate) fn printed(args: &[impl AsRef<OsStr>]) -> String {
    let done = run(args);
    assert!(done.status.success(), "{}", said(&done));
    utf8(&done.stdout)
}

/// Checks that a run fails, with these words, before any work.
pub(crate) fn fails(args: &[&str], words: &str) {
    let done = run(args);
    let said = said(&done);
    assert_eq!(done.status.code(), Some(125), "{args:?}: {said}");
    assert!(said.contains(words) && !said.contains("BEGIN"), "{args:?}: {said}");
}

/// Standard error as text.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn utf8(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain text")
}

/// True if this program can be run; otherwise skips, and names its source.
pub(crate) fn has(program: &str, source: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok();
    if !has {
        vellum_skip::skip(format_args!("there is no {program} here ({source})"));
    }
    has
}

/// A client of a server at this URL.
pub(crate) fn client(url: &str, access: &Access) -> Server {
    Server::new(Address::parse(url, "").unwrap(), access).unwrap()
}

/// The number in an environment variable, or the usual one.
pub(crate) fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Compiles a C program; returns `None`, with a message, if that is impossible.
pub(crate) fn compiled(name: &str, source: &str) -> Option<PathBuf> {
    let source = vellum_skip::source(&format!("{name}.c"), source);
    vellum_skip::compiled_or_skip("cc", name, &[source], &["-O1"])
}
