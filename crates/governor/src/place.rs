//! Makes the directory of the governor's sockets, writable by this user only, at the first usable path:
//!
//! ```text
//! DIR                                   with sockets = "DIR" in the job table
//! $XDG_RUNTIME_DIR/vellum               in a login session
//! /run/vellum                           for root
//! vellum-UID in $TMPDIR or /tmp         otherwise
//!   advice.sock   packets, for runtimes         state.sock   lines of JSON, for `vellum top`
//! ```
//!
//! An existing directory must belong to this user and be writable by this user only; otherwise another user's
//! sockets could control jobs. A socket without an answer was left by a killed governor, and is replaced.

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const BACKLOG: i32 = 64;

/// There is no place for the sockets.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The directory or a socket cannot be made.
    #[error("{}: cannot be made: {source}; name another directory in the job table: sockets = \"DIR\"", .path.display())]
    Make {
        /// Which.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others could change its contents.
    #[error("{}: it must be a directory of this user's that nobody else can write to; name another with sockets = \"DIR\"", .0.display())]
    NotOurs(PathBuf),
    /// Another governor is there.
    #[error("{}: another governor answers there; stop it, or give this one a directory of its own with sockets = \"DIR\"", .0.display())]
    Taken(PathBuf),
}

/// The directory; its sockets are removed with it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    made: bool,
}

/// The usual directory.
pub fn usual() -> PathBuf {
    let user = rustix::process::geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| Path::new(path).is_absolute()) {
        Some(path) => PathBuf::from(path).join("vellum"),
        None if user.is_root() && Path::new("/run").is_dir() => "/run/vellum".into(),
        None => std::env::temp_dir().join(format!("vellum-{}", user.as_raw())),
    }
}

/// The socket for `vellum top` in `directory`.
pub fn state_socket(directory: &Path) -> PathBuf {
    directory.join("state.sock")
}

impl Place {
    pub(crate) fn make(asked: Option<&Path>) -> Result<Place, PlaceError> {
        let path = asked.map_or_else(usual, Path::to_path_buf);
        // Others may pass through it to a socket that lets them in; the sockets say who.
        let made = match DirBuilder::new().mode(0o711).create(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(source) => return Err(PlaceError::Make { path, source }),
        };
        if is_ours(&path) { Ok(Place { path, made }) } else { Err(PlaceError::NotOurs(path)) }
    }

    pub(crate) fn advice(&self) -> PathBuf {
        self.path.join("advice.sock")
    }

    /// A socket that listens at `path` in the directory, with the permissions `mode`.
    pub(crate) fn listen(&self, path: &Path, kind: SocketType, mode: u32) -> Result<OwnedFd, PlaceError> {
        let failed = |source: io::Error| PlaceError::Make { path: path.to_path_buf(), source };
        let address = SocketAddrUnix::new(path).map_err(|error| failed(error.into()))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = || {
            rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)
                .map_err(|error| failed(error.into()))
        };
        if path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket()) {
            let answered = rustix::net::connect(&socket()?, &address);
            if !matches!(answered, Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT)) {
                return Err(PlaceError::Taken(path.to_path_buf()));
            }
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listening = socket()?;
        rustix::net::bind(&listening, &address).map_err(|error| failed(error.into()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
        rustix::net::listen(&listening, BACKLOG).map_err(|error| failed(error.into()))?;
        Ok(listening)
    }
}

/// True if `path` is a directory of this user's that nobody else can write to.
fn is_ours(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| {
        meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
    })
}

/// No governor runs in `directory`, which is ours.
pub(crate) fn without_governor(directory: &Path) -> Result<(), PlaceError> {
    if !is_ours(directory) {
        return Err(PlaceError::NotOurs(directory.to_path_buf()));
    }
    let path = state_socket(directory);
    match std::os::unix::net::UnixStream::connect(&path) {
        Ok(_) => Err(PlaceError::Taken(path)),
        Err(_) => Ok(()),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.made {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// A socket's name, removed with it.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) socket: OwnedFd,
    pub(crate) path: PathBuf,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_replaced_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::make(Some(&folder.path().join("v"))).unwrap();
        let path = state_socket(&place.path);
        let first = place.listen(&path, SocketType::STREAM, 0o600).unwrap();
        let taken = place.listen(&path, SocketType::STREAM, 0o600).unwrap_err();
        assert!(matches!(taken, PlaceError::Taken(_)), "{taken}");
        drop(first);
        let second = place.listen(&path, SocketType::STREAM, 0o600).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        drop(Listening { socket: second, path });
        let directory = place.path.clone();
        drop(place);
        assert!(!directory.exists(), "what was made is removed");
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(Place::make(Some(folder.path())), Err(PlaceError::NotOurs(_))));
        let error = Place::make(Some(Path::new("/proc/no/place"))).unwrap_err().to_string();
        assert!(error.contains("/proc/no/place") && error.contains("sockets"), "{error}");
    }
}
