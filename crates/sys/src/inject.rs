//! Fault injection for `UFFDIO_MOVE`: wrong results like those of kernels that are migrating pages. It is for
//! tests only, in the feature `inject`; no preloaded library is built with this feature.
//!
//! The kernel (6.8 to 6.18 at least) may move a page and still return an error that does not count it:
//! `EEXIST`, as if no page had moved, or `EAGAIN` with a count that is one too small. Kernels return these a
//! few times in a million moves while `/proc/sys/vm/compact_memory` is written; here a test sets their rate.

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use rustix::io::Errno;

/// The effect on the calls that a rule chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Wrong {
    /// Nothing.
    No = 0,
    /// The pages are moved, but the last one is not counted.
    Uncounted = 1,
    /// The pages but the last are moved and counted.
    Short = 2,
}

static WHAT: AtomicU32 = AtomicU32::new(0);
static EVERY: AtomicU32 = AtomicU32::new(0);
static ERRNO: AtomicI32 = AtomicI32::new(0);
static CALLS: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);

/// Has one move in `every` return `errno` from now on, after it was made in the way of `what`.
pub fn moves(what: Wrong, every: u32, errno: Errno) {
    CALLS.store(0, Relaxed);
    DONE.store(0, Relaxed);
    ERRNO.store(errno.raw_os_error(), Relaxed);
    EVERY.store(every.max(1), Relaxed);
    WHAT.store(what as u32, Relaxed);
}

/// Wrong answers since the last [`moves`].
pub fn given() -> u32 {
    DONE.load(Relaxed)
}

/// Makes the move of `request`: its third word is the length, and the fifth receives the bytes moved.
pub(crate) fn answer(
    request: &mut [u64; 5],
    make: impl FnOnce(&mut [u64; 5]) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let what = WHAT.load(Relaxed);
    let is_chosen =
        what != Wrong::No as u32 && (CALLS.fetch_add(1, Relaxed) + 1).is_multiple_of(EVERY.load(Relaxed));
    if !is_chosen {
        return make(request);
    }
    let page = crate::PAGE as u64;
    let len = request[2];
    let errno = ERRNO.load(Relaxed);
    let counted = if what == Wrong::Uncounted as u32 {
        make(request)?;
        len.saturating_sub(page)
    } else {
        request[2] = len.saturating_sub(page);
        if request[2] > 0 {
            make(request)?;
        }
        request[2]
    };
    DONE.fetch_add(1, Relaxed);
    // What the kernel writes: how much was moved, or minus the error if nothing was.
    request[4] = if counted > 0 { counted } else { i64::from(-errno).cast_unsigned() };
    Err(Errno::from_raw_os_error(errno))
}
