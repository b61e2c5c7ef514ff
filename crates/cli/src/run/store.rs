//! Checks that the pager's store can be at the given place. This happens before the program starts, which
//! would otherwise run unpaged.
//!
//! The runtime creates its store with the first big block. The check is only whether that can work: a
//! directory, that of a new file or the given one, in which a file can be written.

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why a store cannot be there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// A file that exists is not written over.
    #[error("--store {}: the file exists; name a directory, or a file that does not exist yet", .0.display())]
    Exists(PathBuf),
    /// No file can be made there.
    #[error("--store {}: no file can be created there: {}; name a directory that this user may write to, or a new file in one",
        .path.display(), .source)]
    Refused { path: PathBuf, source: io::Error },
}

/// # Errors
/// If a store could not be made at `path`.
pub(crate) fn check(path: &Path) -> Result<(), StoreError> {
    let refused = |source: io::Error| StoreError::Refused { path: path.to_owned(), source };
    let directory = match path.metadata() {
        Ok(there) if there.is_dir() => path,
        Ok(_) => return Err(StoreError::Exists(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
        }
        Err(error) => return Err(refused(error)),
    };
    // The file has no name, and is gone with its descriptor.
    match rustix::fs::open(
        directory,
        OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    ) {
        Ok(_) => Ok(()),
        // A file system that makes no files without a name.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
            rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|errno| refused(errno.into()))
        }
        Err(errno) => Err(refused(errno.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_or_a_new_file_will_do() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        assert!(check(directory.path()).is_ok());
        let file = directory.path().join("store");
        assert!(check(&file).is_ok());
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
