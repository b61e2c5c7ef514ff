//! Helpers for the tests of `vellum heap`: compiled programs, and the command on them.

use super::VELLUM;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the programs.
pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/heap");

/// The path of the library, which exists if [`is_built`].
pub(crate) fn runtime() -> PathBuf {
    vellum_skip::folder().join("libvellum.so")
}

/// Returns whether `./build` has made the library; skips the test if not.
#[track_caller]
pub(crate) fn is_built() -> bool {
    vellum_skip::built("libvellum.so").is_some()
}

/// A program of that folder; `None`, with a skip, without a compiler or the library.
pub(crate) fn compiled(source: &str, flags: &[&str]) -> Option<PathBuf> {
    compiled_by("gcc", source, flags)
}

/// Like [`compiled`], by the given compiler.
pub(crate) fn compiled_by(compiler: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    if !is_built() {
        return None;
    }
    let source = Path::new(SOURCES).join(source);
    let name = source.file_stem().and_then(|name| name.to_str()).expect("a plain name").to_owned();
    let flags = [&["-O1", "-g", "-fno-builtin", "-fomit-frame-pointer"], flags].concat();
    vellum_skip::compiled_by(compiler, &name, &[source], &flags)
}

pub(crate) fn heap(options: &[&str], program: &[&str], place: &Path) -> Output {
    let mut command = Command::new(VELLUM);
    command.arg("heap").args(options).arg("--").args(program).current_dir(place);
    command.env_remove("LD_PRELOAD").env("VELLUM_LIB", runtime());
    command.output().expect("vellum starts")
}
