//! C and C++ programs for tests: each is compiled once and then shared by all tests.
//!
//! ```text
//! TARGET/tmp/compiled/KEY/NAME        the program, or the library
//! TARGET/tmp/compiled/KEY.lock        held by the test that compiles it
//! ```
//!
//! Each test is a separate process, so tests share the programs as files. KEY is a hash of everything that
//! affects the result:
//!
//! - the compiler: its name, and the length and age of its file;
//! - the sources, and the headers beside them and in each folder of a `-I`;
//! - the flags, and the contents of files that they name.
//!
//! A program appears under its name only when it is complete. A test that changes a program copies it first.

use crate::built;
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The reason for a missing program.
#[derive(Debug)]
pub enum Failure {
    /// There is no such compiler.
    Missing(String),
    /// The compiler failed, with its message.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Missing(why) | Failure::Refused(why)) = self;
        f.write_str(why)
    }
}

/// The program `name`, compiled by `compiler` from `sources` with `flags`, in that order.
///
/// # Errors
/// If there is no such compiler, or it makes no program.
///
/// # Panics
/// If a source cannot be read, or no folder can be written.
pub fn compiled(
    compiler: &str,
    name: &str,
    sources: &[impl AsRef<Path>],
    flags: &[&str],
) -> Result<PathBuf, Failure> {
    let key = key(compiler, name, sources, flags);
    let place = folder().join(&key);
    let program = place.join(name);
    let lock = File::create(folder().join(format!("{key}.lock"))).expect("a file for the lock");
    lock.lock().expect("a file can be locked");
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&place).expect("a folder for a program");
    let unfinished = place.join(format!("{name}.unfinished"));
    let mut command = Command::new(compiler);
    command.args(sources.iter().map(AsRef::as_ref)).args(flags).arg("-o").arg(&unfinished);
    command.env_remove("LD_PRELOAD");
    let made = command.output().map_err(|error| Failure::Missing(format!("no {compiler}: {error}")))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(Failure::Refused(format!("{command:?}: {}: {said}", made.status)));
    }
    fs::rename(&unfinished, &program).expect("both are in one folder");
    Ok(program)
}

/// Like [`compiled`]; without such a compiler, the test is skipped.
///
/// # Panics
/// If the compiler makes no program.
#[track_caller]
pub fn compiled_by(
    compiler: &str,
    name: &str,
    sources: &[impl AsRef<Path>],
    flags: &[&str],
) -> Option<PathBuf> {
    match compiled(compiler, name, sources, flags) {
        Ok(program) => return Some(program),
        Err(Failure::Missing(why)) => crate::skip(why),
        Err(Failure::Refused(why)) => panic!("{why}"),
    }
    None
}

/// Like [`compiled`]; without a program, for any reason, the test is skipped.
#[track_caller]
pub fn compiled_or_skip(
    compiler: &str,
    name: &str,
    sources: &[impl AsRef<Path>],
    flags: &[&str],
) -> Option<PathBuf> {
    compiled(compiler, name, sources, flags).map_err(crate::skip).ok()
}

/// A file called `name` with this text, for a program whose source is in its test.
///
/// # Panics
/// If no folder can be written.
pub fn source(name: &str, text: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let place = folder().join(format!("{:016x}", hasher.finish()));
    fs::create_dir_all(&place).expect("a folder for a source");
    let (file, unfinished) = (place.join(name), place.join(format!("{name}.{}", std::process::id())));
    if !file.exists() {
        fs::write(&unfinished, text).expect("a source can be written");
        fs::rename(&unfinished, &file).expect("both are in one folder");
    }
    file
}

/// The folder of the programs.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let usual = built::target().join("tmp/compiled");
        if fs::create_dir_all(&usual).is_ok() && tempfile_in(&usual) {
            return usual;
        }
        // The tests were built by another user.
        let owner = fs::metadata("/proc/self").expect("/proc is mounted").uid();
        let other = std::env::temp_dir().join(format!("vellum-compiled-{owner}"));
        let _ = DirBuilder::new().mode(0o755).create(&other);
        let found = fs::symlink_metadata(&other).expect("a folder for programs");
        assert!(found.is_dir() && found.uid() == owner, "{} is somebody else's", other.display());
        other
    })
}

/// Tests whether `folder` is writable.
fn tempfile_in(folder: &Path) -> bool {
    let file = folder.join(format!("{}.tried", std::process::id()));
    let made = File::create(&file).is_ok();
    let _ = fs::remove_file(file);
    made
}

fn key(compiler: &str, name: &str, sources: &[impl AsRef<Path>], flags: &[&str]) -> String {
    let mut hasher = DefaultHasher::new();
    (compiler, name, flags).hash(&mut hasher);
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .find_map(|folder| fs::metadata(folder.join(compiler)).ok());
    found.map(|file| (file.len(), file.mtime())).hash(&mut hasher);
    for source in sources {
        let source = source.as_ref();
        source.hash(&mut hasher);
        let text = fs::read(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        text.hash(&mut hasher);
        headers(source.parent().unwrap_or(Path::new(".")), &mut hasher);
    }
    for flag in flags {
        match flag.strip_prefix("-I") {
            Some(folder) => headers(Path::new(folder), &mut hasher),
            None => fs::read(flag).ok().hash(&mut hasher),
        }
    }
    format!("{:016x}", hasher.finish())
}

/// Hashes the headers of `folder`, in the order of their names.
fn headers(folder: &Path, hasher: &mut DefaultHasher) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_header = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "h");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_header).collect();
    files.sort();
    for file in files {
        (&file, fs::read(&file).ok()).hash(hasher);
    }
}
