//! The other end of a launch: this executable, started again under another allocator.
//!
//! A preloaded library that cannot be loaded is skipped by the dynamic linker with a warning, and the worker would
//! quietly measure glibc under another name. So it is told which file `malloc` must come from and checks.

use crate::work::{Failure, Params, run};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The hidden command of the executable that runs a workload: `work NAME [name=number]...`.
pub const COMMAND: &str = "work";

/// In the worker's environment: the file that malloc must come from. Absent for the C library's own.
pub const EXPECT: &str = "VELLUM_BENCH_EXPECT";

/// Why a worker gave no figures.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The workload itself failed.
    #[error(transparent)]
    Work(#[from] Failure),
    /// malloc is somebody else's.
    #[error("malloc comes from {found}, not from {expected}: the dynamic linker did not preload it")]
    OtherMalloc {
        /// Where it should come from.
        expected: String,
        /// Where it comes from.
        found: String,
    },
}

/// Runs the workload that the words name and returns its figures as one line.
///
/// # Errors
/// [`WorkerError`] when malloc is not the expected one or the workload fails.
pub fn work<S: AsRef<str>>(name: &str, words: &[S]) -> Result<String, WorkerError> {
    if let Some(expected) = std::env::var_os(EXPECT) {
        check_malloc(Path::new(&expected))?;
    }
    let metrics = run(name, &Params::parse(words)?)?;
    Ok(serde_json::to_string(&metrics).expect("a map of finite numbers is JSON"))
}

fn check_malloc(expected: &Path) -> Result<(), WorkerError> {
    let found = file_of_malloc();
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if real(expected) == real(&found) {
        return Ok(());
    }
    let (expected, found) = (expected.display().to_string(), found.display().to_string());
    Err(WorkerError::OtherMalloc { expected, found })
}

/// The file that holds the malloc which this program calls.
fn file_of_malloc() -> PathBuf {
    // SAFETY: a C string and the default handle; then an address to look up, into a zeroed record of pointers.
    let name = unsafe {
        let malloc = libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr());
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(malloc, &raw mut info) == 0 || info.dli_fname.is_null() {
            return PathBuf::new();
        }
        CStr::from_ptr(info.dli_fname)
    };
    PathBuf::from(OsStr::from_bytes(name.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malloc_from_elsewhere_is_refused() {
        let found = file_of_malloc();
        assert!(found.is_file(), "{}", found.display());
        assert!(check_malloc(&found).is_ok());
        let refused = check_malloc(Path::new("/nonexistent/libother.so")).unwrap_err();
        assert!(refused.to_string().contains("libother.so"));
    }

    #[test]
    fn figures_are_one_line_of_json() {
        let line = work("pair", &["bytes=4096", "pairs=2", "groups=1"]).unwrap();
        assert!(line.starts_with('{') && line.contains("pair_ns") && !line.contains('\n'));
        assert!(matches!(work::<&str>("nonesuch", &[]), Err(WorkerError::Work(Failure::Unknown(_)))));
    }
}
