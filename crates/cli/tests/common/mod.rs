//! What the tests of the command share.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod browser;
pub(crate) mod held;
pub(crate) mod recorded;
pub(crate) mod terminal;

use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command under test.
pub(crate) const VELLUM: &str = env!("CARGO_BIN_EXE_vellum");

/// A library that can be preloaded into anything and does nothing: the C library, which is loaded anyway.
/// Tests of Vellum's own library are elsewhere.
pub(crate) fn harmless_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let line = maps.lines().find(|line| line.contains("/libc.so")).expect("a C library is mapped");
    PathBuf::from(&line[line.find('/').unwrap()..])
}

/// The folder of the libraries as they are shipped, where that package is built now if there is a cargo:
/// tests of shared objects are not linked to them. One by one, as cargo would unite packages' features.
pub(crate) fn built(package: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test program has a path");
    let target = test.ancestors().nth(3).expect("TARGET/PROFILE/deps/test");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(&cargo);
    build.args(["build", "--release", "--quiet", "-p", package, "--target-dir"]).arg(target);
    assert!(build.status().expect("cargo starts").success(), "{package} does not build");
    target.join("release")
}

/// `vellum run` with `options` before the program.
pub(crate) fn run(options: &[&str]) -> Command {
    let mut command = Command::new(VELLUM);
    command.arg("run").arg("--lib").arg(harmless_library()).args(options).arg("--").env_remove("VELLUM_LIB");
    heeding_signals(&mut command);
    command
}

/// Has `command` begin as from a terminal, even if signals are ignored where the tests run (a shell's
/// background jobs ignore SIGINT).
pub(crate) fn heeding_signals(command: &mut Command) {
    // SAFETY: signal is async-signal-safe, and these may be set to their default.
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

/// Standard error as text.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON report in `path`.
pub(crate) fn report(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a report")).expect("JSON")
}

/// A path as text.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is plain text")
}

/// Compiles a C program with `compiler` and `flags`, or says why not and returns `None`.
pub(crate) fn compiled(compiler: &str, flags: &[&str], source: &str, directory: &Path) -> Option<PathBuf> {
    let (file, program) = (directory.join("program.c"), directory.join("program"));
    std::fs::write(&file, source).unwrap();
    let made = Command::new(compiler).args(flags).arg(&file).arg("-o").arg(&program).output();
    match made {
        Ok(made) if made.status.success() => Some(program),
        other => {
            vellum_skip::skip(format_args!(
                "{compiler} {} makes no program here: {other:?}",
                flags.join(" ")
            ));
            None
        }
    }
}
