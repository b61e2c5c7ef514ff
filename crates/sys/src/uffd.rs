//! The descriptor of `userfaultfd` and the requests that its users share: [`fault`](crate::fault), which answers faults, [`track`](crate::track), which
//! lets the kernel note writes, and [`transfer`](crate::transfer), which moves pages. Numbers and structures are those of
//! `linux/userfaultfd.h`.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::UserfaultfdFlags;

const API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
pub(crate) const UFFDIO_UNREGISTER: u64 = 0x8010_aa01;
pub(crate) const UFFDIO_MOVE: u64 = 0xc028_aa05;
const UFFDIO_WRITEPROTECT: u64 = 0xc018_aa06;

/// Faults by write protection.
pub(crate) const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
/// Pages can be moved.
pub(crate) const FEATURE_MOVE: u64 = 1 << 16;
/// The descriptor hears of faults in user mode only, which everybody may.
pub(crate) const USER_MODE_ONLY: u32 = 1;
/// Touches of missing pages are told.
pub(crate) const REGISTER_MODE_MISSING: u64 = 1 << 0;
/// Pages can be protected from writes.
pub(crate) const REGISTER_MODE_WP: u64 = 1 << 1;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// A range of addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub start: u64,
    pub len: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    start: u64,
    len: u64,
    mode: u64,
}

/// Makes a request; what the kernel returns.
pub(crate) fn ioctl<T>(file: &OwnedFd, request: u64, argument: &mut T) -> Result<usize, Errno> {
    let number = file.as_raw_fd() as usize;
    let args = [number, request as usize, core::ptr::from_mut(argument) as usize, 0, 0, 0];
    // SAFETY: each caller passes the structure that belongs to `request`, alive for the call.
    unsafe { crate::raw::syscall(libc::SYS_ioctl, args) }
}

/// A descriptor with these features; `mode` is 0 or [`USER_MODE_ONLY`].
pub(crate) fn open(mode: u32, features: u64) -> Result<OwnedFd, Errno> {
    let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(mode);
    // SAFETY: creating the descriptor touches no memory.
    let file = unsafe { rustix::mm::userfaultfd(flags)? };
    ioctl(&file, UFFDIO_API, &mut Api { api: API, features, ioctls: 0 })?;
    Ok(file)
}

/// Makes `len` bytes from `start` the descriptor's.
pub(crate) fn register(file: &OwnedFd, start: usize, len: usize, mode: u64) -> Result<(), Errno> {
    let mut request = Register { start: start as u64, len: len as u64, mode, ioctls: 0 };
    ioctl(file, UFFDIO_REGISTER, &mut request).map(drop)
}

/// Protects `len` bytes from `start` from writes, or no longer, and wakes who waits for that.
pub(crate) fn protect(file: &OwnedFd, start: usize, len: usize, is_on: bool) -> Result<(), Errno> {
    let mut request = WriteProtect { start: start as u64, len: len as u64, mode: u64::from(is_on) };
    loop {
        match ioctl(file, UFFDIO_WRITEPROTECT, &mut request) {
            // Mappings are being changed: the same again.
            Err(Errno::AGAIN) => {}
            other => return other.map(drop),
        }
    }
}
