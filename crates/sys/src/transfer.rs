//! Moving pages between ranges of one process without copying.
//!
//! Two ways, by what they cost afterwards:
//!
//! * `UFFDIO_MOVE` (Linux 6.8) rewrites each page's place. The destination's mapping stays one with its neighbours:
//!   no map entry is spent. A huge page moves as one.
//! * `mremap` moves page-table entries, whole tables where both ends are aligned alike to 2 MiB, and leaves the
//!   destination a map entry of its own.
//!
//! The descriptor for the first is opened for each transfer and closed after it: a program that closes every
//! descriptor it finds can break nothing, and no number of its own is taken for longer than the move.

use crate::caps::{self, Caps};
use crate::map;
use crate::uffd::{self, Range, UFFDIO_MOVE, UFFDIO_UNREGISTER, ioctl};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

const MOVE_MODE_ALLOW_SRC_HOLES: u64 = 1 << 1;

#[repr(C)]
struct MoveRequest {
    dst: u64,
    src: u64,
    len: u64,
    mode: u64,
    moved: i64,
}

/// How a transfer was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By `UFFDIO_MOVE`: no map entry spent.
    Move,
    /// By `mremap`: `to` has a map entry of its own now.
    Remap,
}

/// Whether map entries may be spent on a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// No.
    None,
    /// Yes: moving tables is faster than moving pages.
    Gladly,
}

/// A range of empty memory that pages are being moved into. Dropping it ends that: only then may the range be touched.
#[derive(Debug)]
pub struct Inlet {
    file: OwnedFd,
    range: Range,
}

impl Inlet {
    /// Opens the `len` bytes at `to`, which are mapped and have no frames. Until the inlet is closed a touch there would wait
    /// for ever.
    ///
    /// # Errors
    /// The errno with which the kernel refuses; [`Caps::MOVE`] is dropped if it will always.
    pub fn open(to: usize, len: usize) -> Result<Inlet, Errno> {
        if !caps::has(Caps::MOVE) {
            return Err(Errno::NOSYS);
        }
        let opened = uffd::open(uffd::USER_MODE_ONLY, uffd::FEATURE_MOVE).and_then(|file| {
            let range = Range { start: to as u64, len: len as u64 };
            uffd::register(&file, to, len, uffd::REGISTER_MODE_MISSING)?;
            Ok(Inlet { file, range })
        });
        if let Err(errno) = opened
            && caps::means_missing(errno)
        {
            caps::drop(Caps::MOVE);
        }
        opened
    }

    /// Moves the pages of `from` to `to`, holes included.
    ///
    /// # Errors
    /// The errno, and how many bytes from the start have moved.
    ///
    /// # Safety
    /// `from` is mapped, private, anonymous and the caller's alone; `to` is within the inlet and empty.
    pub unsafe fn take(&self, from: usize, to: usize, len: usize) -> Result<(), (Errno, usize)> {
        let mut done = 0;
        // The kernel moves out of one map entry at a time, and cannot be asked where it ends.
        let mut piece = len;
        while done < len {
            piece = piece.min(len - done);
            let mut request = MoveRequest {
                dst: (to + done) as u64,
                src: (from + done) as u64,
                len: piece as u64,
                mode: MOVE_MODE_ALLOW_SRC_HOLES,
                moved: 0,
            };
            let result = ioctl(&self.file, UFFDIO_MOVE, &mut request);
            done += usize::try_from(request.moved).unwrap_or(0);
            match result {
                Ok(_) | Err(Errno::AGAIN) => {}
                Err(Errno::INVAL) if piece > crate::HUGE => piece = crate::round_up(piece / 2, crate::HUGE),
                Err(errno) => return Err((errno, done)),
            }
        }
        Ok(())
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        // Closing the descriptor would do, but asking lets the mapping join its neighbours before anybody looks.
        let _ = ioctl(&self.file, UFFDIO_UNREGISTER, &mut self.range);
    }
}

/// # Errors
/// The errno, and how many bytes from the start are at `to` already.
///
/// # Safety
/// As [`transfer`].
unsafe fn move_pages(from: usize, to: usize, len: usize) -> Result<(), (Errno, usize)> {
    let inlet = Inlet::open(to, len).map_err(|errno| (errno, 0))?;
    // SAFETY: by this function's condition.
    unsafe { inlet.take(from, to, len) }
}

/// Moves `len` bytes of pages from `from` to `to`, leaving `from` mapped and empty. Nothing is lost on an error: what
/// had moved is moved back.
///
/// # Errors
/// The last errno, when no way works: the caller copies.
///
/// # Safety
/// Both ranges are mapped, page-aligned, private, anonymous, the caller's alone, and do not overlap; no page at `to` is
/// needed or resident.
pub unsafe fn transfer(from: usize, to: usize, len: usize, entries: Entries) -> Result<Way, Errno> {
    let mut last = Errno::NOSYS;
    let ways = match entries {
        Entries::None => [Some(Way::Move), None],
        Entries::Gladly => [Some(Way::Remap), Some(Way::Move)],
    };
    for way in ways.into_iter().flatten() {
        let done = match way {
            // SAFETY: by this function's condition.
            Way::Move => unsafe { by_moving(from, to, len) },
            // SAFETY: by this function's condition.
            Way::Remap => unsafe { map::remap(from, to, len) },
        };
        match done {
            Ok(()) => return Ok(way),
            Err(errno) => last = errno,
        }
    }
    Err(last)
}

/// # Safety
/// As [`transfer`].
unsafe fn by_moving(from: usize, to: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: by this function's condition.
    let Err((errno, moved)) = (unsafe { move_pages(from, to, len) }) else { return Ok(()) };
    if moved > 0 {
        // Pages that a forked child still shares cannot be moved: put back what was.
        // SAFETY: `from` is empty up to `moved`, the pages that were there are at `to`.
        if let Err((_, back)) = unsafe { move_pages(to, from, moved) } {
            // SAFETY: `from + back ..` is empty, the pages at `to + back ..` are the moved ones, both the caller's.
            unsafe { copy_back(to + back, from + back, moved - back) };
        }
    }
    Err(errno)
}

/// # Safety
/// Both ranges are mapped, writable, the caller's, and do not overlap.
unsafe fn copy_back(from: usize, to: usize, len: usize) {
    // SAFETY: by this function's condition.
    unsafe {
        core::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, len);
        let _ = map::flush(from, len);
    }
}
