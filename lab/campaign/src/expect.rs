//! A check that a worker runs on the allocator that it is to measure.
//!
//! The dynamic linker only warns about a preloaded library that it cannot load; the worker would then
//! measure glibc under another name. The worker is therefore given the file that `malloc` must come from,
//! and checks it.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The variable in a worker's environment with the file that malloc must come from. Not set for the C
/// library's malloc.
pub const EXPECT: &str = "VELLUM_EXPECT_MALLOC";

/// malloc comes from the wrong library.
#[derive(Debug, thiserror::Error)]
#[error("malloc comes from {found}, not from {expected}: the dynamic linker did not preload it")]
pub struct OtherMalloc {
    /// The expected file.
    pub expected: PathBuf,
    /// The actual file.
    pub found: PathBuf,
}

/// Compares this process's malloc with [`EXPECT`].
///
/// # Errors
/// [`OtherMalloc`] if malloc comes from another file.
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

/// The file that contains this program's malloc.
fn file_of_malloc() -> PathBuf {
    // SAFETY: `dlsym` gets a C string and the default handle; `dladdr` fills a local record of pointers, for
    // which zero is valid.
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
