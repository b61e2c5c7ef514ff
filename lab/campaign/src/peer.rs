//! Other allocators for comparisons, from a distribution's packages.
//!
//! A peer is a shared library that is preloaded; glibc is used without one. A peer that is not installed is
//! reported with its package.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The C library's own malloc.
pub const GLIBC: &str = "glibc";
/// This project's malloc.
pub const VELLUM: &str = "vellum";

/// An allocator found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Short name.
    pub name: &'static str,
    /// The library to preload; `None` for glibc.
    pub library: Option<PathBuf>,
    /// The version for reports, if it could be found.
    pub version: String,
}

/// An allocator not found on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Short name.
    pub name: &'static str,
    /// The way to install it.
    pub cure: String,
}

/// Name, file and Debian package of each.
const PACKAGED: [(&str, &str, &str); 3] = [
    ("mimalloc2", "libmimalloc.so.2", "libmimalloc2.0"),
    ("jemalloc", "libjemalloc.so.2", "libjemalloc2"),
    ("tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
];

/// The folders of a distribution's shared libraries.
fn folders() -> [PathBuf; 5] {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    [&multiarch, "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/local/lib64"].map(PathBuf::from)
}

/// glibc and every packaged allocator, each found or missing.
#[must_use]
pub fn packaged() -> Vec<Result<Peer, Missing>> {
    // SAFETY: `gnu_get_libc_version` returns a constant string of the C library.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    let glibc = Peer { name: GLIBC, library: None, version: version.to_string_lossy().into_owned() };
    let others = PACKAGED.iter().map(|(name, file, package)| find(name, file, package));
    std::iter::once(Ok(glibc)).chain(others).collect()
}

fn find(name: &'static str, file: &str, package: &str) -> Result<Peer, Missing> {
    let found = folders().into_iter().map(|folder| folder.join(file)).find(|path| path.is_file());
    let library = found.ok_or_else(|| Missing { name, cure: format!("apt-get install {package}") })?;
    let version = versioned_name(&library);
    Ok(Peer { name, library: Some(library), version })
}

/// The version in the name of the file that a link points to: `2.0` for `libmimalloc.so.2.0`.
fn versioned_name(file: &Path) -> String {
    let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let name = real.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    name.split_once(".so.").map_or_else(|| "unknown".to_owned(), |(_, version)| version.to_owned())
}

/// Runs a command, such as a compiler, that prints only if it fails.
///
/// # Errors
/// Its first line with an error, or its last line.
pub fn quietly(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("starting {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let wrong =
        |line: &&str| line.contains("error") || line.contains("undefined") || line.contains("cannot find");
    let said = errors.lines().find(wrong).or(errors.lines().last()).unwrap_or_default();
    Err(format!("{name}: {}: {said}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packaged_peer_is_a_file_or_has_a_remedy() {
        let all = packaged();
        assert_eq!(all.len(), PACKAGED.len() + 1);
        assert!(matches!(&all[0], Ok(glibc) if glibc.library.is_none() && glibc.version.contains('.')));
        for peer in &all[1..] {
            match peer {
                Ok(peer) => assert!(peer.library.as_deref().is_some_and(Path::is_file)),
                Err(missing) => assert!(missing.cure.contains("apt-get install")),
            }
        }
    }
}
