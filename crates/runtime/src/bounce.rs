//! Memory that system calls may be handed in place of paged memory.
//!
//! A transfer into or out of a paged block goes through a buffer here, piece by piece, and is copied in user
//! mode, where a fault waits for its page. The alternative, to touch the block's pages and keep them from
//! being replaced during the call, would need as many frames as the longest transfer, and could have threads
//! wait for one another's.
//!
//! Transfers are made in signal handlers too, so nothing here takes a lock: a few buffers are claimed by one
//! atomic operation each, and when they are all taken, or too small, memory is mapped for the one call.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vellum_sys::{PAGE, map, round_up};

/// Bytes of a buffer: long enough that copying and calling cost little beside each other.
pub(crate) const PIECE: usize = 256 << 10;
const BUFFERS: usize = 4;

/// Where the buffers are that have been needed; 0 before. Core dumps leave them out, as they would not leave
/// out a part of the library's own data.
static PLACES: [AtomicUsize; BUFFERS] = [const { AtomicUsize::new(0) }; BUFFERS];
static TAKEN: [AtomicBool; BUFFERS] = [const { AtomicBool::new(false) }; BUFFERS];

/// A buffer; dropping it gives it back.
pub(crate) struct Bounce {
    start: *mut u8,
    len: usize,
    /// Which of the buffers it is, unless it was mapped.
    which: Option<usize>,
}

impl Bounce {
    /// A buffer of at least `len` bytes; `None` if there is no memory.
    pub(crate) fn new(len: usize) -> Option<Bounce> {
        if len <= PIECE {
            for (which, taken) in TAKEN.iter().enumerate() {
                if taken.swap(true, Ordering::Acquire) {
                    continue;
                }
                let mut start = PLACES[which].load(Ordering::Relaxed);
                if start == 0 {
                    start = map::reserve_writable(PIECE).unwrap_or(0);
                    PLACES[which].store(start, Ordering::Relaxed);
                }
                if start == 0 {
                    taken.store(false, Ordering::Release);
                    return None;
                }
                return Some(Bounce { start: start as *mut u8, len: PIECE, which: Some(which) });
            }
        }
        let len = round_up(len.max(1), PAGE);
        let start = map::reserve_writable(len).ok()?;
        Some(Bounce { start: start as *mut u8, len, which: None })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Bounce {
    fn drop(&mut self) {
        match self.which {
            Some(which) => TAKEN[which].store(false, Ordering::Release),
            None => {
                // SAFETY: mapped by `new`, and used no more.
                let _ = unsafe { map::release(self.start as usize, self.len) };
            }
        }
    }
}
