//! Compiles the programs of `c/`, each once for all tests, and finds external tools.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Flags of every program: the compiler must not remove an allocation, nor a misuse of one.
const FLAGS: &[&str] = &["-g", "-O1", "-fno-builtin", "-w"];

/// A temporary directory for the files of a test, removed when dropped.
#[derive(Debug)]
pub struct Place {
    directory: TempDir,
}

impl Place {
    /// A new, empty directory.
    ///
    /// # Panics
    /// If the directory for temporary files cannot be written.
    #[expect(clippy::new_without_default, reason = "makes a directory, which a default should not")]
    pub fn new() -> Place {
        Place { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The file with this name in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// `c/SOURCE`, compiled with the system's compiler for its language.
///
/// # Panics
/// If it does not compile.
pub fn compiled(source: &str, flags: &[&str]) -> PathBuf {
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    compiled_by(compiler, source, flags).unwrap_or_else(|said| panic!("{source}: {said}"))
}

/// `c/SOURCE`, compiled with `compiler`.
///
/// # Errors
/// The compiler's message, if it made no program.
pub fn compiled_by(compiler: &str, source: &str, flags: &[&str]) -> Result<PathBuf, String> {
    let name = source.split('.').next().unwrap_or(source);
    let flags = [FLAGS, flags].concat();
    vellum_skip::compiled(compiler, name, &[sources().join(source)], &flags)
        .map_err(|failure| failure.to_string())
}

/// The folder of C programs. `VELLUM_TEST_SOURCES` names it for a user who cannot read the checkout; the
/// default is the crate's own.
pub fn sources() -> PathBuf {
    let said = std::env::var_os("VELLUM_TEST_SOURCES").map(PathBuf::from);
    said.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("c"))
}

/// The first `name` in the system's directories and then in `PATH` that supports `--version`; skips the test
/// if none is found.
#[track_caller]
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places =
        [PathBuf::from("/usr/bin"), PathBuf::from("/bin")].into_iter().chain(std::env::split_paths(&path));
    let found = places.map(|place| place.join(name)).find(|file| {
        let asked = Command::new(file).arg("--version").env_remove("LD_PRELOAD").output();
        asked.is_ok_and(|said| said.status.success())
    });
    if found.is_none() {
        crate::skip(format_args!("no {name} on this machine"));
    }
    found
}

/// The folder of `vellum.h`: beside the C programs, or the workspace's own.
pub fn header() -> PathBuf {
    let sources = sources();
    if sources.join("vellum.h").exists() { sources } else { sources.join("../../../include") }
}
