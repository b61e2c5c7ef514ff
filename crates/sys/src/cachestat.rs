//! Counts of a file's pages in memory, by `cachestat` (Linux 6.5).

use crate::raw;
use rustix::fd::{AsFd, AsRawFd};
use rustix::io::Errno;

const SYS_CACHESTAT: libc::c_long = 451;

/// Pages of a range of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// In memory.
    pub pages: u32,
    /// Pages in memory that have changed since they were written.
    pub changed: u32,
    /// Pages in memory that are being written.
    pub in_transit: u32,
}

/// Counts the pages in memory of `bytes` bytes from `start` on; to the end of the file if there are 0 bytes.
///
/// # Errors
/// `NOSYS` before Linux 6.5, `PERM` and others where a filter on system calls forbids it.
pub fn cached(file: impl AsFd, start: u64, bytes: u64) -> Result<Cached, Errno> {
    let (range, mut found) = ([start, bytes], [0u64; 5]);
    let file = file.as_fd().as_raw_fd() as usize;
    let args = [file, range.as_ptr() as usize, found.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads two words and writes five, which are alive across the call.
    unsafe { raw::syscall(SYS_CACHESTAT, args)? };
    let [pages, changed, in_transit, ..] = found.map(|pages| u32::try_from(pages).unwrap_or(u32::MAX));
    Ok(Cached { pages, changed, in_transit })
}
