//! What the tests of `vellum heap` share: programs that are compiled, and the command on them.

use super::{VELLUM, built, said};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The folder of the programs.
pub(crate) const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/heap");

/// The library.
pub(crate) fn runtime() -> &'static Path {
    static RUNTIME: OnceLock<PathBuf> = OnceLock::new();
    RUNTIME.get_or_init(|| built("vellum-runtime").join("libvellum.so"))
}

/// Compiles a program; `None`, and a word, where there is no compiler.
pub(crate) fn compiled(source: &str, flags: &[&str], place: &Path) -> Option<PathBuf> {
    compiled_by("gcc", source, flags, place)
}

/// The same by a compiler of that name.
pub(crate) fn compiled_by(compiler: &str, source: &str, flags: &[&str], place: &Path) -> Option<PathBuf> {
    let source = Path::new(SOURCES).join(source);
    let program = place.join(source.file_name().expect("a file")).with_extension("");
    let flags = ["-O1", "-g", "-fno-builtin", "-fomit-frame-pointer"].iter().chain(flags);
    match Command::new(compiler).arg(source).args(flags).arg("-o").arg(&program).output() {
        Ok(made) => assert!(made.status.success(), "{}", said(&made)),
        Err(error) => {
            vellum_skip::skip(format_args!("{compiler} cannot be started: {error}"));
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
