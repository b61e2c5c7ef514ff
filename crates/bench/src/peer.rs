//! Who is compared: the allocators found on this machine.
//!
//! A peer is a shared object that is preloaded into the worker; glibc is what a program has without one. Debian's
//! packages bring most of them; mimalloc 3 is built with this program from the source its Rust crate carries (see
//! `build.rs`), and Vellum is the library of this workspace. One that is not there is named, with the way to get it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The peers' names in the order of the tables' columns.
pub const NAMES: [&str; 6] = [GLIBC, "mimalloc2", MIMALLOC3, JEMALLOC, "tcmalloc", VELLUM];

/// The C library's own malloc.
pub const GLIBC: &str = "glibc";
/// mimalloc 3.
pub const MIMALLOC3: &str = "mimalloc3";
/// jemalloc.
pub const JEMALLOC: &str = "jemalloc";
/// This project's.
pub const VELLUM: &str = "vellum";

/// File name of the library that `vellum-runtime` builds.
pub const VELLUM_LIBRARY: &str = "libvellum.so";

/// An allocator that can be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Short name, one of [`NAMES`].
    pub name: &'static str,
    /// What to preload; nothing for glibc.
    pub library: Option<PathBuf>,
    /// The version as far as it is known, for people.
    pub version: String,
}

/// An allocator that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Short name, one of [`NAMES`].
    pub name: &'static str,
    /// What to do about it.
    pub cure: String,
}

/// What [`discover`] found.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    /// Present, in the order of [`NAMES`].
    pub peers: Vec<Peer>,
    /// Absent.
    pub missing: Vec<Missing>,
}

impl Roster {
    /// The peer of this name, if it is here.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.name == name)
    }

    /// Leaves only the peers of these names.
    pub fn keep(&mut self, names: &[String]) {
        self.peers.retain(|peer| names.iter().any(|name| name == peer.name));
        self.missing.retain(|missing| names.iter().any(|name| name == missing.name));
    }
}

/// A peer that a Debian package brings.
struct Packaged {
    name: &'static str,
    file: &'static str,
    package: &'static str,
}

const PACKAGED: [Packaged; 3] = [
    Packaged { name: "mimalloc2", file: "libmimalloc.so.2", package: "libmimalloc2.0" },
    Packaged { name: JEMALLOC, file: "libjemalloc.so.2", package: "libjemalloc2" },
    Packaged { name: "tcmalloc", file: "libtcmalloc_minimal.so.4", package: "libtcmalloc-minimal4" },
];

/// Where distributions put shared objects.
fn library_folders() -> [PathBuf; 5] {
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    [&multiarch, "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/local/lib64"].map(PathBuf::from)
}

/// Looks for every peer. `vellum` is the library to use; without one it is looked for beside this executable.
#[must_use]
pub fn discover(vellum: Option<&Path>) -> Roster {
    let mut roster = Roster::default();
    for name in NAMES {
        match find(name, vellum) {
            Ok(peer) => roster.peers.push(peer),
            Err(missing) => roster.missing.push(missing),
        }
    }
    roster
}

fn find(name: &'static str, vellum: Option<&Path>) -> Result<Peer, Missing> {
    let there = |path: &PathBuf| path.is_file();
    let peer = |library: PathBuf, version: String| {
        // Preloading wants an absolute path: the worker may look it up from elsewhere.
        let library = std::path::absolute(&library).unwrap_or(library);
        Ok(Peer { name, library: Some(library), version })
    };
    if let Some(packaged) = PACKAGED.iter().find(|packaged| packaged.name == name) {
        let file = library_folders().into_iter().map(|folder| folder.join(packaged.file)).find(there);
        let cure = || Missing { name, cure: format!("apt-get install {}", packaged.package) };
        let file = file.ok_or_else(cure)?;
        let version = versioned_name(&file);
        return peer(file, version);
    }
    match name {
        GLIBC => Ok(Peer { name, library: None, version: glibc_version() }),
        MIMALLOC3 => {
            let built = PathBuf::from(env!("VELLUM_BENCH_MIMALLOC3"));
            if there(&built) {
                return peer(built, env!("VELLUM_BENCH_MIMALLOC3_VERSION").to_owned());
            }
            Err(Missing {
                name,
                cure: "build vellum-bench again: it makes the library as it is built".to_owned(),
            })
        }
        _ => {
            let beside = || std::env::current_exe().ok().map(|exe| exe.with_file_name(VELLUM_LIBRARY));
            let library = vellum.map(Path::to_path_buf).or_else(beside).filter(there);
            let cure = "cargo build --release -p vellum-runtime, or --vellum PATH".to_owned();
            peer(library.ok_or(Missing { name, cure })?, env!("CARGO_PKG_VERSION").to_owned())
        }
    }
}

/// `2.0` of a link to `libmimalloc.so.2.0`.
fn versioned_name(file: &Path) -> String {
    let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let name = real.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    name.split_once(".so.").map_or_else(|| "unknown".to_owned(), |(_, version)| version.to_owned())
}

fn glibc_version() -> String {
    // SAFETY: returns a constant string of the C library.
    unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy().into_owned()
}

/// Builds the Vellum library with the cargo that runs this program, so that the one measured is never stale.
/// Without cargo around (the executable was started by itself) nothing is done.
///
/// # Errors
/// A sentence for people when the build was tried and failed.
pub fn build_vellum() -> Result<(), String> {
    let (Some(cargo), Some(folder)) = (std::env::var_os("CARGO"), std::env::var_os("CARGO_MANIFEST_DIR"))
    else {
        return Ok(());
    };
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "vellum-runtime", "--manifest-path"]);
    command.arg(Path::new(&folder).join("Cargo.toml"));
    // The library must come to lie beside this executable: <target>/<profile>/vellum-bench.
    if let Some(target) =
        std::env::current_exe().ok().as_deref().and_then(Path::parent).and_then(Path::parent)
    {
        command.arg("--target-dir").arg(target);
    }
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("building vellum-runtime failed ({status}): see cargo's messages above")),
        Err(error) => Err(format!("starting cargo to build vellum-runtime failed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_or_has_a_cure() {
        let roster = discover(Some(Path::new("/nonexistent/libvellum.so")));
        assert_eq!(roster.peers.len() + roster.missing.len(), NAMES.len());
        assert!(roster.get(GLIBC).is_some_and(|glibc| glibc.library.is_none()));
        assert!(roster.get(MIMALLOC3).is_some(), "built by build.rs");
        let vellum =
            roster.missing.iter().find(|missing| missing.name == VELLUM).expect("the path does not exist");
        assert!(vellum.cure.contains("vellum-runtime"));
    }

    #[test]
    fn only_the_named_are_kept() {
        let mut roster = discover(None);
        roster.keep(&[GLIBC.to_owned()]);
        assert_eq!(roster.peers.iter().map(|peer| peer.name).collect::<Vec<_>>(), [GLIBC]);
        assert!(roster.missing.is_empty());
    }
}
