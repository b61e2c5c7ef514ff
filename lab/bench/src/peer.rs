//! Finds the peers on this machine: the allocators that the benchmark compares.
//!
//! A peer is a shared library that is preloaded into the worker; glibc is used without one. Most peers are
//! packages of Debian. `build.rs` builds mimalloc 3 from the source in its Rust crate, and Vellum's
//! library comes from this workspace. A missing peer is reported with the way to install it.

use std::path::{Path, PathBuf};
use vellum_campaign::{Missing, Peer, packaged};

pub use vellum_campaign::{GLIBC, VELLUM};

/// The peers' names in the order of the tables' columns.
pub const NAMES: [&str; 6] = [GLIBC, "mimalloc2", MIMALLOC3, JEMALLOC, "tcmalloc", VELLUM];

/// mimalloc 3.
pub const MIMALLOC3: &str = "mimalloc3";
/// mimalloc 3 with its checks, guard pages and encoded lists.
pub const MIMALLOC_SECURE: &str = "mimalloc-secure";
/// hardened_malloc.
pub const HARDENED_MALLOC: &str = "hardened_malloc";
/// jemalloc.
pub const JEMALLOC: &str = "jemalloc";

/// File name of the library that `vellum-runtime` builds.
pub const VELLUM_LIBRARY: &str = "libvellum.so";

/// The result of [`discover`].
#[derive(Debug, Clone, Default)]
pub struct Roster {
    /// Peers found here, in the order of [`NAMES`].
    pub peers: Vec<Peer>,
    /// Peers not found.
    pub missing: Vec<Missing>,
}

impl Roster {
    /// The peer with this name, if it was found.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.name == name)
    }

    /// Adds peers that were found or are missing.
    pub fn add(&mut self, found: impl IntoIterator<Item = Result<Peer, Missing>>) {
        for found in found {
            match found {
                Ok(peer) => self.peers.push(peer),
                Err(missing) => self.missing.push(missing),
            }
        }
    }

    /// Keeps only the peers with these names.
    pub fn keep(&mut self, names: &[String]) {
        self.peers.retain(|peer| names.iter().any(|name| name == peer.name));
        self.missing.retain(|missing| names.iter().any(|name| name == missing.name));
    }
}

/// Searches for every peer. `vellum` is the library to use; without it, the one beside this executable.
#[must_use]
pub fn discover(vellum: Option<&Path>) -> Roster {
    let mut roster = Roster::default();
    roster.add(packaged().into_iter().chain([mimalloc3(), self::vellum(vellum)]));
    let column = |name: &str| NAMES.iter().position(|known| *known == name);
    roster.peers.sort_by_key(|peer| column(peer.name));
    roster
}

/// The allocators that are hardened against attacks.
#[must_use]
pub fn hardened() -> Vec<Result<Peer, Missing>> {
    let secure = built(MIMALLOC_SECURE, env!("VELLUM_BENCH_MIMALLOC_SECURE"));
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("libhardened_malloc.so"));
    let library = beside.filter(|path| path.is_file());
    let cure = || "lab/bench/hardened-malloc makes it".to_owned();
    let other = library.ok_or_else(|| Missing { name: HARDENED_MALLOC, cure: cure() });
    let version = "2026071503".to_owned();
    let other = other.map(|library| Peer { name: HARDENED_MALLOC, library: Some(library), version });
    vec![secure, other]
}

fn mimalloc3() -> Result<Peer, Missing> {
    built(MIMALLOC3, env!("VELLUM_BENCH_MIMALLOC3"))
}

/// A library of mimalloc built by `build.rs`.
fn built(name: &'static str, library: &str) -> Result<Peer, Missing> {
    let library = PathBuf::from(library);
    if !library.is_file() {
        let cure = "build vellum-bench again: it makes the library as it is built".to_owned();
        return Err(Missing { name, cure });
    }
    let version = env!("VELLUM_BENCH_MIMALLOC3_VERSION").to_owned();
    Ok(Peer { name, library: Some(library), version })
}

fn vellum(asked_for: Option<&Path>) -> Result<Peer, Missing> {
    let beside = || std::env::current_exe().ok().map(|exe| exe.with_file_name(VELLUM_LIBRARY));
    let found = asked_for.map(Path::to_path_buf).or_else(beside).filter(|path| path.is_file());
    let cure = || "cargo build --release -p vellum-runtime, or --vellum PATH".to_owned();
    let library = found.ok_or_else(|| Missing { name: VELLUM, cure: cure() })?;
    // Preloading needs an absolute path: the worker may start in another folder.
    let library = std::path::absolute(&library).unwrap_or(library);
    Ok(Peer { name: VELLUM, library: Some(library), version: env!("CARGO_PKG_VERSION").to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_is_found_or_has_a_remedy() {
        let roster = discover(Some(Path::new("/nonexistent/libvellum.so")));
        assert_eq!(roster.peers.len() + roster.missing.len(), NAMES.len());
        assert!(roster.get(GLIBC).is_some_and(|glibc| glibc.library.is_none()));
        assert!(roster.get(MIMALLOC3).is_some(), "built by build.rs");
        let vellum =
            roster.missing.iter().find(|missing| missing.name == VELLUM).expect("the path does not exist");
        assert!(vellum.cure.contains("vellum-runtime"));
    }

    #[test]
    fn keep_leaves_only_the_named_peers() {
        let mut roster = discover(None);
        roster.keep(&[GLIBC.to_owned()]);
        assert_eq!(roster.peers.iter().map(|peer| peer.name).collect::<Vec<_>>(), [GLIBC]);
        assert!(roster.missing.is_empty());
    }
}
