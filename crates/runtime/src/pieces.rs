//! Transfers through a buffer: in and out by pieces, and of vectors at once.

use crate::bounce::{Bounce, PIECE};
use core::ffi::c_int;
use libc::{iovec, size_t, socklen_t, ssize_t};
use vellum_malloc::{paged, set_errno};

/// Whether a transfer that begins at `start` may meet a missing page. A block that is paged is so from its
/// first byte to its last.
pub(crate) fn is_paged(start: *const u8, len: usize) -> bool {
    len > 0 && paged::owns(start)
}

pub(crate) fn is_regular(file: c_int) -> bool {
    let mut found = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills the structure in if it returns 0.
    unsafe {
        libc::fstat(file, found.as_mut_ptr()) == 0
            && found.assume_init().st_mode & libc::S_IFMT == libc::S_IFREG
    }
}

/// Whether what is sent to `file` has no boundaries. Only sockets have them.
pub(crate) fn is_stream(file: c_int) -> bool {
    let (mut kind, mut size): (c_int, socklen_t) = (libc::SOCK_STREAM, size_of::<c_int>() as socklen_t);
    // SAFETY: the kernel writes at most `size` bytes.
    unsafe { libc::getsockopt(file, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &raw mut size) };
    kind == libc::SOCK_STREAM
}

pub(crate) fn no_memory() -> ssize_t {
    set_errno(libc::ENOMEM);
    -1
}

/// Fetches up to `len` bytes to `to` by `fetch`, which is given a buffer, a length and how much there is
/// already. After a piece that was filled goes on if `goes_on` says that this waits for nothing.
///
/// # Safety
/// `len` bytes at `to` can be written.
pub(crate) unsafe fn take_in(
    to: *mut u8,
    len: usize,
    goes_on: impl Fn() -> bool,
    mut fetch: impl FnMut(*mut u8, usize, usize) -> ssize_t,
) -> ssize_t {
    let Some(bounce) = Bounce::new(len.min(PIECE)) else { return no_memory() };
    let mut done = 0;
    loop {
        let piece = (len - done).min(bounce.len());
        let got = fetch(bounce.start(), piece, done);
        let Ok(filled) = usize::try_from(got) else { return if done > 0 { done as ssize_t } else { got } };
        // SAFETY: the piece lies within the buffer, and within what can be written. The longer length is
        // reported where a message was cut.
        unsafe { to.add(done).copy_from_nonoverlapping(bounce.start(), filled.min(piece)) };
        done += filled;
        if filled != piece || done >= len || !goes_on() {
            return done as ssize_t;
        }
    }
}

/// Hands `len` bytes from `from` out by `hand`, which is given a buffer, a length and how much is done
/// already, in pieces of at most `most` bytes.
///
/// # Safety
/// `len` bytes at `from` can be read.
pub(crate) unsafe fn give_out(
    from: *const u8,
    len: usize,
    most: usize,
    mut hand: impl FnMut(*const u8, usize, usize) -> ssize_t,
) -> ssize_t {
    let Some(bounce) = Bounce::new(len.min(most)) else { return no_memory() };
    let mut done = 0;
    loop {
        let piece = (len - done).min(bounce.len());
        // SAFETY: the piece lies within what can be read, and within the buffer.
        unsafe { bounce.start().copy_from_nonoverlapping(from.add(done), piece) };
        let got = hand(bounce.start(), piece, done);
        let Ok(taken) = usize::try_from(got) else { return if done > 0 { done as ssize_t } else { got } };
        done += taken;
        if taken != piece || done >= len {
            return done as ssize_t;
        }
    }
}

/// The parts of a vector, if one of them or they themselves may meet a missing page, and the bytes of all.
///
/// # Safety
/// `count` parts lie at `parts`, if `count` is positive.
pub(crate) unsafe fn paged_parts<'a>(parts: *const iovec, count: usize) -> Option<(&'a [iovec], usize)> {
    if parts.is_null() || count == 0 || count > libc::UIO_MAXIOV as usize {
        return None;
    }
    // SAFETY: by this function's condition.
    let parts = unsafe { core::slice::from_raw_parts(parts, count) };
    let is_any = is_paged(parts.as_ptr().cast(), 1)
        || parts.iter().any(|part| is_paged(part.iov_base.cast(), part.iov_len));
    let total = parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.iov_len))?;
    is_any.then_some((parts, total.min(VECTOR_MAX)))
}

/// The most bytes of a vector transferred by one call; more is a short transfer.
pub(crate) const VECTOR_MAX: usize = 64 << 20;

/// Makes a transfer into `parts` by `fetch`, into one buffer.
///
/// # Safety
/// The parts can be written.
pub(crate) unsafe fn scatter(
    parts: &[iovec],
    total: usize,
    fetch: impl FnOnce(*mut u8, usize) -> ssize_t,
) -> ssize_t {
    let Some(bounce) = Bounce::new(total) else { return no_memory() };
    let got = fetch(bounce.start(), total);
    let mut rest = usize::try_from(got).unwrap_or(0).min(total);
    let mut from = bounce.start().cast_const();
    for part in parts {
        let len = part.iov_len.min(rest);
        // SAFETY: by this function's condition; `from` stays within the buffer.
        unsafe {
            part.iov_base.cast::<u8>().copy_from_nonoverlapping(from, len);
            from = from.add(len);
        }
        rest -= len;
    }
    got
}

/// Makes a transfer out of `parts` by `hand`, from one buffer.
///
/// # Safety
/// The parts can be read.
pub(crate) unsafe fn gather(
    parts: &[iovec],
    total: usize,
    hand: impl FnOnce(*mut u8, usize) -> ssize_t,
) -> ssize_t {
    let Some(bounce) = Bounce::new(total) else { return no_memory() };
    let mut filled = 0;
    for part in parts {
        let len = part.iov_len.min(total - filled);
        // SAFETY: by this function's condition; the sum of the lengths is at most the buffer's.
        unsafe { bounce.start().add(filled).copy_from_nonoverlapping(part.iov_base.cast(), len) };
        filled += len;
    }
    hand(bounce.start(), filled)
}

/// `items` of `size` bytes, transferred in bytes.
pub(crate) fn items(transferred: ssize_t, size: usize) -> size_t {
    usize::try_from(transferred).unwrap_or(0) / size
}
