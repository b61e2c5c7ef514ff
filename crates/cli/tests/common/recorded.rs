//! What the tests of `vellum cost` share: programs that are compiled, and the command on them.

use super::held::runtime;
use super::{VELLUM, built, report, said, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Where the programs' sources are.
pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../recorder/tests/c");

/// The runtime and the recorder.
pub(crate) fn libraries() -> &'static (PathBuf, PathBuf) {
    static LIBRARIES: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    LIBRARIES.get_or_init(|| (runtime().to_owned(), built("vellum-recorder").join("libvellum_cost.so")))
}

/// Compiles `sources` of the folder of programs; `None`, and a word, where there is no such compiler.
pub(crate) fn compiled(compiler: &str, flags: &[&str], sources: &[&str], to: &Path) -> Option<()> {
    let sources = sources.iter().map(|source| Path::new(SOURCES).canonicalize().unwrap().join(source));
    let made = Command::new(compiler).args(sources).args(flags).arg("-o").arg(to).output();
    match made {
        Ok(made) if made.status.success() => Some(()),
        Ok(made) => panic!("{compiler}: {}", said(&made)),
        Err(error) => {
            vellum_skip::skip(format_args!("{compiler} cannot be started: {error}"));
            None
        }
    }
}

/// `vellum cost` with `options` before the program.
pub(crate) fn cost(options: &[&str]) -> Command {
    let (runtime, recorder) = libraries();
    let mut command = Command::new(VELLUM);
    command.arg("cost").arg("--recorder").arg(recorder).args(options).arg("--");
    command.env_remove("LD_PRELOAD").env("VELLUM_LIB", runtime);
    // Dumps of programs that are meant to crash are of no use.
    // SAFETY: setrlimit is async-signal-safe and gets a record that lives across the call.
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

/// Runs `program` under `vellum cost` with `options`; its end and the JSON report.
pub(crate) fn measured(options: &[&str], program: &[&str], place: &Path) -> (Output, Value) {
    let json = place.join("cost.json");
    let mut all = vec!["--json", text(&json)];
    all.extend(options);
    let output = cost(&all).args(program).current_dir(place).output().expect("vellum starts");
    assert!(json.exists(), "no report: {}", said(&output));
    (output, report(&json))
}
