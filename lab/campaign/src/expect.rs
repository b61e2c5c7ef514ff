//! A check that a worker runs on the allocator that it is to measure.
//!
//! The dynamic linker only warns about a preloaded library that it cannot load; the worker would then
//! measure glibc under another name. The worker is therefore given the file that `malloc` must come from,
//! and compares.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// In a worker's environment: the file that malloc must come from. Absent for the C library's own.
pub const EXPECT: &str = "VELLUM_EXPECT_MALLOC";

/// malloc is somebody else's.
#[derive(Debug, thiserror::Error)]
#[error("malloc comes from {found}, not from {expected}: the dynamic linker did not preload it")]
pub struct OtherMalloc {
    /// Where it should come from.
    pub expected: PathBuf,
    /// Where it comes from.
    pub found: PathBuf,
}

/// Holds this process's malloc against [`EXPECT`].
///
/// # Errors
/// [`OtherMalloc`] when it comes from another file.
pub fn check_malloc() -> Result<(), OtherMalloc> {
    std::env::var_os(EXPECT).map_or(Ok(()), |expected| check(Path::new(&expected)))
}

fn check(expected: &Path) -> Result<(), OtherMalloc> {
    let found = file_of_malloc();
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if real(expected) == real(&found) {
        return Ok(());
    }
    Err(OtherMalloc { expected: expected.to_path_buf(), found })
}

/// The file that holds the malloc which this program calls.
fn file_of_malloc() -> PathBuf {
    // SAFETY: a C string and the default handle; then an address to look up, into a zeroed record of
    // pointers.
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
        assert!(check(&found).is_ok());
        assert!(
            check(Path::new("/nonexistent/libother.so")).unwrap_err().to_string().contains("libother.so")
        );
    }
}
