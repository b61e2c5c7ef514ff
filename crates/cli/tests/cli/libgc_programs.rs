//! Compiles programs written for libgc against Vellum's library. `lab/stress` also includes this file.

use crate::common::{libraries, said, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Programs that check the guarantees of the headers, each a C file.
pub(crate) const PROGRAMS: [&str; 10] = [
    "objects",
    "finalizers",
    "generations",
    "kinds",
    "threads",
    "typed",
    "variables",
    "dead",
    "gcj",
    "world",
];

/// The folder with `libgc.so.1`; `None`, with a skip, if `./build` has not made it.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = libraries().join("libgc");
    if !folder.join("libgc.so.1").is_file() {
        skip(format_args!("{} has no libgc.so.1: run ./build, as ./test does", folder.display()));
        return None;
    }
    Some(folder)
}

/// Compiles `name`.c for Vellum's library; `None`, with a skip, without a compiler.
pub(crate) fn compiled(name: &str, flags: &[&str], folder: &Path, place: &Path) -> Option<PathBuf> {
    compiled_by("cc", &format!("{name}.c"), flags, &[folder.join("libgc.so.1")], &place.join(name))
}

fn compiled_by(
    compiler: &str,
    source: &str,
    flags: &[&str],
    libraries: &[PathBuf],
    program: &Path,
) -> Option<PathBuf> {
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-Wall", "-Wextra", "-Werror"]).args(flags).arg("-o").arg(program);
    command.arg(Path::new(REPOSITORY).join("crates/libgc/tests/c").join(source)).arg("-I");
    command.arg(Path::new(REPOSITORY).join("include/libgc")).args(libraries).args(["-lpthread", "-lm"]);
    match command.output() {
        Ok(made) => assert!(made.status.success(), "{}", said(&made)),
        Err(error) => {
            skip(format_args!("{compiler} cannot be started: {error}"));
            return None;
        }
    }
    Some(program.to_path_buf())
}

pub(crate) fn on_the_library_path(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", folder).env_remove("LD_PRELOAD");
    command
}

pub(crate) fn passes(output: &Output, name: &str) {
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out == format!("{name}: as promised\n"), "{name}: {output:?}");
}

/// Compiles objects.cc for Vellum's libraries; `None`, with a skip, without a compiler or `libgccpp.so.1`.
pub(crate) fn compiled_cpp(folder: &Path, place: &Path) -> Option<PathBuf> {
    let library = folder.join("libgccpp.so.1");
    if !library.is_file() {
        skip(format_args!("there is no {}: run ./build, as ./test does", library.display()));
        return None;
    }
    let libraries = [library, folder.join("libgc.so.1")];
    compiled_by("c++", "objects.cc", &["-std=c++17"], &libraries, &place.join("objects-cpp"))
}
