//! Which libraries are preloaded: the runtime, and for `vellum cost` the recorder `libvellum_cost.so`, found the same way
//! (by `--recorder` or `VELLUM_COST_LIB`). The folder of `libgc.so.1` is looked for as `libgc` in the same places.
//!
//! ```text
//! --lib FILE  or  VELLUM_LIB             as said, or an error
//! DIR/libvellum.so                       a build tree: beside the command
//! DIR/../lib/vellum/libvellum.so         an installation
//! DIR/../lib/libvellum.so                an installation
//! ```
//!
//! DIR is the directory of this command's own file, links followed.

use crate::run::Failure;
use std::path::{Path, PathBuf};

const NAME: &str = "libvellum.so";
const RECORDER: &str = "libvellum_cost.so";

/// The library's absolute path.
pub(crate) fn find(asked: Option<&Path>) -> Result<PathBuf, Failure> {
    find_named(NAME, asked, "VELLUM_LIB").map_err(|looked| Failure::NoLibrary { looked })
}

/// The recorder's absolute path.
pub(crate) fn find_recorder(asked: Option<&Path>) -> Result<PathBuf, Failure> {
    find_named(RECORDER, asked, "VELLUM_COST_LIB").map_err(|looked| Failure::NoRecorder { looked })
}

/// libgc's library for C++, as programs name it.
pub(crate) const LIBGCCPP: &str = "libgccpp.so.1";

/// The absolute path of the folder with `libgc.so.1` in it.
pub(crate) fn find_libgc() -> Result<PathBuf, Failure> {
    let looked = candidates(&own_directory(), "libgc");
    let has_it = |folder: &PathBuf| folder.join("libgc.so.1").is_file();
    let found = looked.iter().find(|folder| has_it(folder)).and_then(|folder| folder.canonicalize().ok());
    found.ok_or(Failure::NoLibgc { looked })
}

/// The path of library `name`, or where it was looked for.
fn find_named(name: &str, asked: Option<&Path>, variable: &str) -> Result<PathBuf, Vec<PathBuf>> {
    let from_env = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(asked) = asked.or(from_env.as_deref()) {
        return canonical_file(asked).ok_or_else(|| vec![asked.to_path_buf()]);
    }
    let looked = candidates(&own_directory(), name);
    looked.iter().find_map(|path| canonical_file(path)).ok_or(looked)
}

/// Where this command's own file is.
fn own_directory() -> PathBuf {
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    own.parent().unwrap_or(Path::new(".")).to_path_buf()
}

fn candidates(directory: &Path, name: &str) -> Vec<PathBuf> {
    let up = directory.parent().unwrap_or(directory);
    vec![directory.join(name), up.join("lib/vellum").join(name), up.join("lib").join(name)]
}

fn canonical_file(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_beside_and_then_in_lib() {
        let looked = candidates(Path::new("/opt/v/bin"), NAME);
        let expected =
            ["/opt/v/bin/libvellum.so", "/opt/v/lib/vellum/libvellum.so", "/opt/v/lib/libvellum.so"];
        assert_eq!(looked, expected.map(PathBuf::from));
    }

    #[test]
    fn an_asked_for_library_must_be_there() {
        let error = find(Some(Path::new("/no/such/lib.so"))).unwrap_err();
        assert!(error.to_string().contains("/no/such/lib.so"), "{error}");
    }
}
