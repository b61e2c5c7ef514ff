//! Checks that the pager can create its store in a directory. The check runs before the program starts,
//! which would otherwise run unpaged; `vellum doctor` checks the default directory.
//!
//! The runtime creates its store with the first paged block. The check creates a file without a name in the
//! same directory, and reserves space for it as the pager does.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes by which the pager extends its store.
const STEP: u64 = 2 << 20;

/// The reason why a store cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The file exists, and would be overwritten.
    #[error("{}: the file exists; name a directory, or a file that does not exist yet", .0.display())]
    Exists(PathBuf),
    /// No file can be created there.
    #[error("{}: no file can be created there: {}; name a directory that this user may write to, or a new file in one",
        .path.display(), .source)]
    Refused { path: PathBuf, source: io::Error },
    /// The file system is in memory, so paging would free none.
    #[error("{}: its file system is in memory (tmpfs); name a directory on a disk", .0.display())]
    InMemory(PathBuf),
    /// The file system cannot reserve space.
    #[error("{}: no space can be reserved there (fallocate): {}; name a directory of ext4, xfs or btrfs with free space",
        .path.display(), .source)]
    Room { path: PathBuf, source: io::Error },
}

/// A file like the store at `path`.
///
/// # Errors
/// If a store could not be created there.
pub(crate) fn check(path: &Path) -> Result<File, StoreError> {
    let refused = |source: io::Error| StoreError::Refused { path: path.to_owned(), source };
    let directory = match path.metadata() {
        Ok(there) if there.is_dir() => path,
        Ok(_) => return Err(StoreError::Exists(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
        }
        Err(error) => return Err(refused(error)),
    };
    let file = tempfile::tempfile_in(directory).map_err(refused)?;
    if !vellum_reference::is_on_disk(directory) {
        return Err(StoreError::InMemory(path.to_owned()));
    }
    match fallocate(&file, FallocateFlags::empty(), 0, STEP) {
        Ok(()) => Ok(file),
        Err(errno) => {
            Err(StoreError::Room { path: path.to_owned(), source: vellum_process::named(errno.into()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_accepts_a_directory_or_a_new_file() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let file = directory.path().join("store");
        for place in [directory.path(), &file] {
            match check(place) {
                Err(error @ StoreError::InMemory(_)) => vellum_skip::skip(error),
                other => assert!(other.is_ok(), "{other:?}"),
            }
        }
        std::fs::write(&file, b"mine").expect("a file in it");
        assert!(matches!(check(&file), Err(StoreError::Exists(_))));
        assert!(matches!(check(&directory.path().join("no/store")), Err(StoreError::Refused { .. })));
        assert_eq!(
            std::fs::read_dir(directory.path()).expect("it is there").count(),
            1,
            "nothing is left behind"
        );
    }
}
