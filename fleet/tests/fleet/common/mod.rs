//! Helpers that the tests share.

pub(crate) mod certificate;
pub(crate) mod node;
pub(crate) mod prometheus;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

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

/// Standard error as text.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain text")
}

/// Compiles a C program; returns `None`, with a message, if that is impossible.
pub(crate) fn compiled(source: &str, folder: &Path) -> Option<PathBuf> {
    let (file, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&file, source).unwrap();
    match Command::new("cc").arg("-O1").arg(&file).arg("-o").arg(&program).output() {
        Ok(made) if made.status.success() => Some(program),
        other => {
            vellum_skip::skip(format_args!("cc makes no program here: {other:?}"));
            None
        }
    }
}
