//! Finds the file of a command, by the rules of execvp(3).
//!
//! A name with a slash is a path; any other name is searched in each directory of `PATH`. The search happens
//! before the start, because the file is inspected first, and because "not found" and "not executable" have
//! different exit statuses.

use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directories that execvp(3) searches when `PATH` is not set.
const PATH_DEFAULT: &str = "/bin:/usr/bin";

/// No file to run was found.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// No file has that name.
    #[error("{0}: not found")]
    NotFound(String),
    /// Something is there and may not be executed.
    #[error("{path}: cannot be executed: {source}")]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The file that `name` means, given the value of `PATH`.
pub fn locate(name: &OsStr, search: Option<&OsStr>) -> Result<PathBuf, LocateError> {
    if name.is_empty() {
        return Err(LocateError::NotFound("''".into()));
    }
    let absent = || LocateError::NotFound(name.to_string_lossy().into_owned());
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name))
            .map(|()| PathBuf::from(name))
            .map_err(|source| refused(name.into(), source, absent));
    }
    let mut found = None;
    for directory in std::env::split_paths(search.unwrap_or(OsStr::new(PATH_DEFAULT))) {
        // An empty entry is the current directory; "./" keeps the kernel from seeing an empty path.
        let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        let path = directory.join(name);
        match executable(&path) {
            Ok(()) => return Ok(path),
            // There but not executable: a later directory may have a better one. A file that cannot be seen,
            // in a directory closed to us, is as good as absent.
            Err(error) if path.is_file() && found.is_none() => found = Some((path, error)),
            Err(_) => {}
        }
    }
    Err(found.map_or_else(absent, |(path, source)| LocateError::NotExecutable { path, source }))
}

fn refused(path: PathBuf, source: io::Error, absent: impl Fn() -> LocateError) -> LocateError {
    if is_absent(&source) { absent() } else { LocateError::NotExecutable { path, source } }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

fn executable(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(access(path, Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn follows_path_and_tells_absent_from_forbidden() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let search = std::env::join_paths([first.path(), second.path()]).unwrap();
        let find = |name: &str| locate(OsStr::new(name), Some(&search));
        assert!(matches!(find("tool"), Err(LocateError::NotFound(_))));
        let plain = first.path().join("tool");
        std::fs::write(&plain, b"").unwrap();
        assert!(matches!(find("tool"), Err(LocateError::NotExecutable { path, .. }) if path == plain));
        let real = second.path().join("tool");
        std::fs::write(&real, b"").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("tool").unwrap(), real);
        assert!(matches!(locate(first.path().as_os_str(), None), Err(LocateError::NotExecutable { .. })));
        let absent = first.path().join("absent/tool");
        assert!(matches!(locate(absent.as_os_str(), None), Err(LocateError::NotFound(_))));
        assert!(matches!(locate(OsStr::new(""), None), Err(LocateError::NotFound(_))));
        assert!(locate(OsStr::new("sh"), None).is_ok());
    }
}
