//! The file that a recorder shares with the command: opening, mapping, and allocating memory before writes.
//!
//! A process owns a part of the file, and a forked child must not write into its parent's. The state of the
//! owner therefore lies on a page that the kernel clears in a child ([`page_cleared_by_forks`]).

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags};
use vellum_sys::{PAGE, Span, map, raw};

/// `MADV_WIPEONFORK`.
const WIPE_ON_FORK: usize = 18;

/// Opens the file at `path`; returns its length too.
///
/// # Errors
/// The system's error.
pub fn open(path: &CStr) -> Result<(OwnedFd, usize)> {
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let bytes = rustix::fs::fstat(&file)?.st_size as usize;
    Ok((file, bytes))
}

/// A shared mapping of `bytes` bytes of the file from `offset` on, for the caller to unmap.
///
/// # Errors
/// The system's error.
pub fn map(file: &OwnedFd, offset: u64, bytes: usize) -> Result<*mut u8> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice replaces no memory.
    unsafe { rustix::mm::mmap(null_mut(), bytes, access, MapFlags::SHARED, file, offset) }
        .map(<*mut core::ffi::c_void>::cast)
}

/// Allocates the frames of a range: a touch that finds the file system full would kill the program. Kernels
/// before 5.14 cannot, and allocate at each touch.
///
/// # Errors
/// The system's error: there is no room.
pub fn populate(range: Span) -> Result<()> {
    match map::populate(range) {
        Err(Errno::INVAL | Errno::NOSYS) => Ok(()),
        outcome => outcome,
    }
}

/// A page of zeros that the kernel clears in a forked child, for good. Before Linux 4.14 a child inherits the
/// page unchanged.
///
/// # Errors
/// The system's error.
pub fn page_cleared_by_forks<T>() -> Result<*mut T> {
    const { assert!(size_of::<T>() <= PAGE) };
    let page = map::reserve_writable(PAGE)?.start;
    // SAFETY: the page was just mapped, and is all zeros.
    let _ = unsafe { raw::syscall(libc::SYS_madvise, [page.get(), PAGE, WIPE_ON_FORK, 0, 0, 0]) };
    Ok(page.ptr())
}

/// The id of this process.
#[must_use]
pub fn own_pid() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get() as u32
}

/// Writes the name of this process's command to `words`, NUL-padded.
pub fn write_name(words: &[AtomicU64; 2]) {
    let mut name = [0u64; 2];
    // SAFETY: `name` has 16 bytes, the most that the kernel writes, including the final zero.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    words.iter().zip(name).for_each(|(word, part)| word.store(part, Relaxed));
}
