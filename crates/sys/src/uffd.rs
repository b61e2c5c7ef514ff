//! The `userfaultfd` descriptor, and the requests shared by [`track`](crate::track), which has the kernel
//! record writes, and [`transfer`](crate::transfer), which moves pages. Numbers and structures are those of
//! `linux/userfaultfd.h`.

use crate::{Addr, PAGE, Span};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::UserfaultfdFlags;

const API: u64 = 0xaa;
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_UNREGISTER: u64 = 0x8010_aa01;
pub(crate) const UFFDIO_MOVE: u64 = 0xc028_aa05;
const UFFDIO_ZEROPAGE: u64 = 0xc020_aa04;
const UFFDIO_WRITEPROTECT: u64 = 0xc018_aa06;

/// Faults by write protection.
pub(crate) const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
/// Pages can be moved.
pub(crate) const FEATURE_MOVE: u64 = 1 << 16;
/// The descriptor receives faults in user mode only, which needs no privilege.
pub(crate) const USER_MODE_ONLY: u32 = 1;
/// Touches of missing pages are reported.
pub(crate) const REGISTER_MODE_MISSING: u64 = 1 << 0;
/// Pages can be protected from writes.
pub(crate) const REGISTER_MODE_WP: u64 = 1 << 1;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Range {
    start: u64,
    len: u64,
}

impl Range {
    fn of(span: Span) -> Range {
        Range { start: span.start.get() as u64, len: span.bytes as u64 }
    }
}

#[repr(C)]
struct Register {
    range: Range,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    range: Range,
    mode: u64,
}

/// The argument of `UFFDIO_MOVE`; the kernel writes the bytes moved, or minus an errno, to the last word.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub dst: u64,
    pub src: u64,
    pub len: u64,
    pub mode: u64,
    pub done: i64,
}

/// The argument of `UFFDIO_ZEROPAGE`.
#[repr(C)]
struct Zeros {
    range: Range,
    mode: u64,
    done: i64,
}

const _: () = assert!(size_of::<Transfer>() == 40 && size_of::<Zeros>() == 32);

/// Moves pages by `UFFDIO_MOVE`. The page after those counted by an error may have moved, too (see
/// [`is_there`]).
pub(crate) fn move_pages(file: &OwnedFd, transfer: &mut Transfer) -> Result<usize, Errno> {
    #[cfg(any(test, feature = "inject"))]
    {
        let Transfer { dst, src, len, mode, done } = *transfer;
        let mut words = [dst, src, len, mode, done.cast_unsigned()];
        let answer = crate::inject::answer(&mut words, |words| ioctl(file, UFFDIO_MOVE, words));
        transfer.done = words[4].cast_signed();
        answer
    }
    #[cfg(not(any(test, feature = "inject")))]
    ioctl(file, UFFDIO_MOVE, transfer)
}

/// The mode in which a page that is put somewhere wakes nobody who waits for it.
const MODE_DONTWAKE: u64 = 1 << 0;

/// Puts zeros at `page` if nothing is there. Returns whether nothing was.
///
/// The kernel reads the page's entry under the lock of its table. Only an empty entry counts as nothing: a
/// page that is swapped out or being migrated does not. `mincore` takes the first of these for nothing, and
/// `/proc/self/pagemap` is not there in every container.
fn zero(file: &OwnedFd, page: Span) -> Result<bool, Errno> {
    loop {
        let mut request = Zeros { range: Range::of(page), mode: MODE_DONTWAKE, done: 0 };
        match ioctl(file, UFFDIO_ZEROPAGE, &mut request) {
            Ok(_) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            // Mappings are being changed: the same again.
            Err(Errno::AGAIN) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Returns whether a page is at `page`, which the descriptor watches and nobody touches meanwhile.
///
/// # Errors
/// The kernel's errno: then either that is not known, or nothing was there and zeros are there now.
///
/// # Safety
/// If nothing is there, nobody relies on it: the page is filled for a moment.
pub(crate) unsafe fn is_there(file: &OwnedFd, page: Addr) -> Result<bool, Errno> {
    let page = Span::new(page, PAGE);
    if zero(file, page)? {
        // SAFETY: `zero` has just put the page there, and `# Safety` says that nobody relies on it.
        unsafe { crate::map::flush(page)? };
        return Ok(false);
    }
    Ok(true)
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

/// Has the descriptor watch `span`.
pub(crate) fn register(file: &OwnedFd, span: Span, mode: u64) -> Result<(), Errno> {
    let mut request = Register { range: Range::of(span), mode, ioctls: 0 };
    ioctl(file, UFFDIO_REGISTER, &mut request).map(drop)
}

/// Has the descriptor watch `span` no more.
pub(crate) fn unregister(file: &OwnedFd, span: Span) -> Result<(), Errno> {
    ioctl(file, UFFDIO_UNREGISTER, &mut Range::of(span)).map(drop)
}

/// Ends the protection of `span` from writes.
pub(crate) fn unprotect(file: &OwnedFd, span: Span) -> Result<(), Errno> {
    let mut request = WriteProtect { range: Range::of(span), mode: 0 };
    loop {
        match ioctl(file, UFFDIO_WRITEPROTECT, &mut request) {
            // Mappings are being changed: the same again.
            Err(Errno::AGAIN) => {}
            other => return other.map(drop),
        }
    }
}
