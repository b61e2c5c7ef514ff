//! Finds the `libvellum.so` under test: the file in `VELLUM_LIB`, or `./build`'s output beside the tests.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const NAME: &str = "libvellum.so";

/// The path of `libvellum.so`.
///
/// # Panics
/// If the file is missing: tests of the library must not pass without it.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let asked = std::env::var_os("VELLUM_LIB").filter(|value| !value.is_empty()).map(PathBuf::from);
        let library = asked.unwrap_or_else(|| vellum_skip::folder().join(NAME));
        assert!(library.is_file(), "no {}: run ./build first, or set VELLUM_LIB", library.display());
        library
    })
}

/// The command `vellum`, if it has been built beside the library.
pub fn command() -> Option<PathBuf> {
    let command = library().with_file_name("vellum");
    command.is_file().then_some(command)
}
