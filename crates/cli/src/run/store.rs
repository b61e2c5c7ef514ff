//! Checks that the pager can create its store (the file that it pages to) in a directory. The check runs
//! before the program, which would run unpaged without a store; `vellum doctor` checks the default directory.
//!
//! The runtime creates its store with the first paged block. The check creates an unnamed temporary file in
//! the same directory, and reserves space for it as the pager does.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::path::Path;

/// Bytes by which the pager extends its store.
const STEP: u64 = 2 << 20;

/// A file like the store at `path`.
///
/// # Errors
/// Why a store could not be created there, and what helps.
pub(crate) fn check(path: &Path) -> Result<File, String> {
    let name = path.display();
    let refused = |error: io::Error| {
        format!(
            "{name}: no file can be created there: {error}; name a directory that this user may write to, or a new file in one"
        )
    };
    let directory = match path.metadata() {
        Ok(there) if there.is_dir() => path,
        // The file would be overwritten.
        Ok(_) => {
            return Err(format!(
                "{name}: the file exists; name a directory, or a file that does not exist yet"
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
        }
        Err(error) => return Err(refused(error)),
    };
    let file = tempfile::tempfile_in(directory).map_err(refused)?;
    if !vellum_reference::is_on_disk(directory) {
        // Paging to memory would free none.
        return Err(format!("{name}: its file system is in memory (tmpfs); name a directory on a disk"));
    }
    fallocate(&file, FallocateFlags::empty(), 0, STEP).map_err(|errno| {
        let error = vellum_process::named(errno.into());
        format!("{name}: no space can be reserved there (fallocate): {error}; name a directory of ext4, xfs or btrfs with free space")
    })?;
    Ok(file)
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
                Err(why) if why.contains("in memory") => vellum_skip::skip(why),
                other => assert!(other.is_ok(), "{other:?}"),
            }
        }
        std::fs::write(&file, b"mine").expect("a file in it");
        let refused = |place: &Path| check(place).expect_err("an unsuitable place");
        assert!(refused(&file).contains("the file exists"));
        assert!(refused(&directory.path().join("no/store")).contains("no file can be created"));
        let left = std::fs::read_dir(directory.path()).expect("it is there").count();
        assert_eq!(left, 1, "nothing is left behind");
    }
}
