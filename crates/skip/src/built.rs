//! Finds the files that `./build` has put beside the tests: preloaded libraries and commands.
//!
//! If a file is missing, the test is skipped, instead of building the file. A cargo started by a test would
//! wait for the cargo that runs the tests, build with other features, or be missing.

use std::path::{Path, PathBuf};

/// The folder of the programs: `TARGET/PROFILE`.
///
/// # Panics
/// If the kernel does not name the program's file.
pub fn folder() -> PathBuf {
    let own = std::env::current_exe().expect("a program has a path");
    let folder = own.parent().expect("a file lies in a folder");
    // A test is TARGET/PROFILE/deps/NAME-HASH.
    let is_test = folder.ends_with("deps");
    if is_test { folder.parent().unwrap_or(folder) } else { folder }.to_path_buf()
}

/// The folder of everything that is built: `TARGET`.
pub(crate) fn target() -> PathBuf {
    let folder = folder();
    folder.parent().map_or(folder.clone(), Path::to_path_buf)
}

/// The file `name` in [`folder`], which `./build` makes there; skips the test with a reason if it is missing.
#[track_caller]
pub fn built(name: &str) -> Option<PathBuf> {
    let file = folder().join(name);
    let is_there = file.exists();
    if !is_there {
        crate::skip(format_args!("no {}: run ./build first", file.display()));
    }
    is_there.then_some(file)
}
