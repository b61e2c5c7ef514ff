//! Helpers for the tests of `vellum cost`: compile programs, and run the command on them.

use super::{VELLUM, exits, held, report};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the programs' sources.
pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../recorder/tests/c");
const RECORDER: &str = "libvellum_cost.so";

/// A program of that folder; `None`, with a skip, without a compiler or the libraries.
pub(crate) fn compiled(compiler: &str, flags: &[&str], sources: &[&str], name: &str) -> Option<PathBuf> {
    if !is_built() {
        return None;
    }
    let folder = Path::new(SOURCES).canonicalize().unwrap();
    let sources: Vec<PathBuf> = sources.iter().map(|source| folder.join(source)).collect();
    vellum_skip::compiled_by(compiler, name, &sources, flags)
}

/// Returns whether `./build` has made the runtime and the recorder; skips the test if not.
#[track_caller]
pub(crate) fn is_built() -> bool {
    held::is_built() && vellum_skip::built(RECORDER).is_some()
}

/// `vellum cost` with `options` before the program.
pub(crate) fn cost(options: &[&str]) -> Command {
    let mut command = Command::new(VELLUM);
    command.arg("cost").arg("--recorder").arg(vellum_skip::folder().join(RECORDER)).args(options).arg("--");
    command.env_remove("LD_PRELOAD").env("VELLUM_LIB", held::runtime());
    // Core dumps of programs that crash on purpose are useless.
    // SAFETY: setrlimit is async-signal-safe, and its record is in the closure's stack frame.
    unsafe {
        use std::os::unix::process::CommandExt;
        command.pre_exec(|| {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            Ok(())
        });
    }
    command
}

/// Runs `program`, which ends with `status`, under `vellum cost` with `options`; returns its outcome and the
/// JSON report.
#[track_caller]
pub(crate) fn measured(status: i32, options: &[&str], program: &[&str], place: &Path) -> (Output, Value) {
    let mut command = cost(&[options, &["--json", "cost.json"]].concat());
    let output = exits(status, command.args(program).current_dir(place).output().expect("vellum starts"));
    (output, report(&place.join("cost.json")))
}

/// As [`measured`], with the program's own allocator from this library.
pub(crate) fn preloaded(options: &[&str], program: &Path, library: &Path) -> (Output, Value) {
    let place = tempfile::tempdir().unwrap();
    let mut command = cost(&[options, &["--json", "cost.json"]].concat());
    command.arg(program).env("LD_PRELOAD", library).current_dir(&place);
    let output = exits(0, command.output().expect("vellum starts"));
    (output, report(&place.path().join("cost.json")))
}
