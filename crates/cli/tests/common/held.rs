//! What the tests of `vellum heap` share: programs that are compiled, and the command on them.

use super::{VELLUM, said};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of the programs.
pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/heap");

/// The library, built now as it is shipped, where there is a cargo: see the tests of `vellum cost`.
pub(crate) fn runtime() -> &'static Path {
    static RUNTIME: OnceLock<PathBuf> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let test = std::env::current_exe().expect("a test program has a path");
        let target = test.ancestors().nth(3).expect("TARGET/PROFILE/deps/test");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut build = Command::new(&cargo);
        build.args(["build", "--release", "--quiet", "-p", "vellum-runtime", "--target-dir"]).arg(target);
        assert!(build.status().expect("cargo starts").success(), "the runtime does not build");
        target.join("release/libvellum.so")
    })
}

/// Compiles a program; `None`, and a word, where there is no compiler.
pub(crate) fn compiled(source: &str, flags: &[&str], place: &Path) -> Option<PathBuf> {
    let source = Path::new(SOURCES).join(source);
    let program = place.join(source.file_name().expect("a file")).with_extension("");
    let flags = ["-O1", "-g", "-fno-builtin", "-fomit-frame-pointer"].iter().chain(flags);
    match Command::new("gcc").arg(source).args(flags).arg("-o").arg(&program).output() {
        Ok(made) => assert!(made.status.success(), "{}", said(&made)),
        Err(error) => {
            vellum_skip::skip(format_args!("gcc cannot be started: {error}"));
            return None;
        }
    }
    Some(program)
}

pub(crate) fn heap(options: &[&str], program: &[&str], place: &Path) -> Output {
    let mut command = Command::new(VELLUM);
    command.arg("heap").args(options).arg("--").args(program).current_dir(place);
    command.env_remove("LD_PRELOAD").env("VELLUM_LIB", runtime());
    command.output().expect("vellum starts")
}
