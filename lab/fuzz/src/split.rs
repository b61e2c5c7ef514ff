//! Helpers that split a fuzz input: numbers from its last bytes, and files in memory from the rest.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

/// The last word of `bytes`, and the bytes before it. Numbers are taken from the end, so that the beginning
/// stays in the format.
pub(crate) fn number(bytes: &[u8]) -> (u64, &[u8]) {
    bytes.split_last_chunk::<8>().map_or((0, bytes), |(rest, word)| (u64::from_le_bytes(*word), rest))
}

/// A file in memory with these bytes, for readers that open a path.
pub(crate) struct InMemory(OwnedFd);

impl InMemory {
    pub(crate) fn new(bytes: &[u8]) -> InMemory {
        let file = memfd_create(c"vellum-fuzz", MemfdFlags::CLOEXEC).expect("a file in memory");
        let mut file = File::from(file);
        file.write_all(bytes).expect("room for an input");
        InMemory(file.into())
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}
