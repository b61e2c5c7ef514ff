//! Helpers for the tests of `vellum heap`: compile programs, and run the command on them.

use super::{VELLUM, exits, report};
use serde_json::Value;
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

/// A program of that folder, linked with the library.
pub(crate) fn linked(source: &str) -> Option<PathBuf> {
    let folder = runtime().parent().expect("a file").display().to_string();
    let headers = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let [search, path] = ["-L", "-Wl,-rpath,"].map(|option| format!("{option}{folder}"));
    compiled(source, &["-pthread", headers, &search, "-lvellum", &path])
}

pub(crate) fn heap(options: &[&str], program: &[&str], place: &Path) -> Output {
    let mut command = Command::new(VELLUM);
    command.arg("heap").args(options).arg("--").args(program).current_dir(place);
    command.env_remove("LD_PRELOAD").env("VELLUM_LIB", runtime());
    command.output().expect("vellum starts")
}

/// Like [`heap`], for a program that succeeds; returns the JSON report too.
#[track_caller]
pub(crate) fn profiled(options: &[&str], program: &[&str], place: &Path) -> (Output, Value) {
    let output = exits(0, heap(&[options, &["-o", "heap.json"]].concat(), program, place));
    (output, report(&place.join("heap.json")))
}

/// The line of a program of that folder with this mark.
pub(crate) fn line_in(source: &str, mark: &str) -> u64 {
    let source = std::fs::read_to_string(Path::new(SOURCES).join(source)).unwrap();
    let marks = [format!("/* {mark} */"), format!("  # {mark}")];
    let is_marked = |line: &str| marks.iter().any(|mark| line.ends_with(mark));
    source.lines().position(is_marked).expect("marked") as u64 + 1
}

/// The site of the document at that line.
pub(crate) fn site_of<'a>(document: &'a Value, source: &str, mark: &str) -> Option<&'a Value> {
    let line = line_in(source, mark);
    document["sites"].as_array().unwrap().iter().find(|site| {
        let place = &site["place"];
        place["line"] == line && place["file"].as_str().is_some_and(|file| file.ends_with(source))
    })
}

/// The bytes, blocks and samples that the site at that line holds.
pub(crate) fn amounts(document: &Value, source: &str, mark: &str, when: &str) -> Option<[f64; 3]> {
    let site = site_of(document, source, mark)?;
    Some(["bytes", "blocks", "samples"].map(|key| site["held"][when][key].as_f64().unwrap()))
}
