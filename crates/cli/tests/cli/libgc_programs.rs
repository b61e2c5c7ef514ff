//! Programs that are written for libgc, compiled for Vellum's library.

use crate::common::{VELLUM, said};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The folder with `libgc.so.1`, or a word why there is none: it is made by `./build`.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = Path::new(VELLUM).parent().unwrap().join("libgc");
    if !folder.join("libgc.so.1").is_file() {
        vellum_skip::skip(format_args!(
            "{} has no libgc.so.1: run ./build, as ./test does",
            folder.display()
        ));
        return None;
    }
    Some(folder)
}

/// Compiles `name`.c for Vellum's library; `None`, and a word, where there is no compiler.
pub(crate) fn compiled(name: &str, flags: &[&str], folder: &Path, place: &Path) -> Option<PathBuf> {
    let program = place.join(name);
    let source = Path::new(REPOSITORY).join("crates/libgc/tests/c").join(name).with_extension("c");
    let mut command = Command::new("cc");
    command
        .args(["-g", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-o")
        .args([&program, &source]);
    command
        .arg("-I")
        .arg(Path::new(REPOSITORY).join("include/libgc"))
        .arg(folder.join("libgc.so.1"))
        .args(["-lpthread", "-lm"]);
    match command.output() {
        Ok(made) => assert!(made.status.success(), "{}", said(&made)),
        Err(error) => {
            vellum_skip::skip(format_args!("cc cannot be started: {error}"));
            return None;
        }
    }
    Some(program)
}

pub(crate) fn on_the_library_path(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", folder).env_remove("LD_PRELOAD");
    command
}

pub(crate) fn passes(output: &Output, name: &str) {
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && out == format!("{name}: as promised\n"),
        "{name}: {out}{}",
        said(output)
    );
}
