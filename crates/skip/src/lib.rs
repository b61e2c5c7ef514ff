//! Helpers that tests share: a list of skipped tests; tests in separate processes ([`alone`], [`again`],
//! [`forked`]); the files that `./build` makes; C programs, compiled once; cgroups.
//!
//! A test whose tool, privilege or kernel is missing calls [`skip`] and returns: it passes, and has tested
//! nothing. The harness hides the output of passing tests, so the reason also goes to the file that the
//! environment variable `VELLUM_SKIPS` names. `./test` sets it and prints the list at its end (`.ci/skips`).
//! Only tests use this crate.

mod built;
mod compiled;
mod group;
mod process;

pub use built::{built, folder};
pub use compiled::{Failure, compiled, compiled_by, compiled_or_skip, source};
pub use group::Group;
pub use process::{ALONE_ENV, again, alone, forked, role, scale};

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;

/// Names the file to which every skip is appended, one line each: reason, tabulator, source file,
/// space, test.
pub const FILE_ENV: &str = "VELLUM_SKIPS";

/// Reports that a test, or a part of a test, did not run, and the reason.
#[track_caller]
pub fn skip(why: impl Display) {
    let why = why.to_string().replace(['\n', '\t'], " ");
    eprintln!("skipped: {why}");
    let Some(path) = std::env::var_os(FILE_ENV) else { return };
    let place = Location::caller().file();
    let thread = std::thread::current();
    // The harness names a test's thread after the test. A single test on the main thread is named by the
    // arguments.
    let test = match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default(),
    };
    let line = format!("{why}\t{place} {test}\n");
    // One write in append mode, so that lines of test programs that run side by side stay whole.
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        eprintln!("{}: {error}", path.display());
    }
}
