//! Taking pages from their addresses into the pool, and bringing them back.
//!
//! Where the kernel can (`UFFDIO_MOVE`, Linux 6.8) the frame itself changes places: nothing is copied, and no
//! moment exists at which two addresses lead to it or a write could be missed. Elsewhere, and for the odd
//! page the kernel will not move (a forked child still shares it, a device is reading it), the page is
//! protected, copied and dropped; a write between the first and the last of these waits, and finds the page
//! missing when it goes on.
//!
//! An error says how far the kernel came, not what became of the next page, which it may have moved all the
//! same: the contents at the pool's end of the move decide, which nobody else reaches
//! ([`Faults::move_pages`]). A page that is at neither end is *lost*: nothing is ever put in its stead.

use crate::trouble;
use crate::units::PAGE;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rustix::io::Errno;
use vellum_sys::fault::{Faults, LOST, Ours};
use vellum_sys::map;

/// How often a frame that will not move is asked again before it is copied.
const TRIES: u32 = 64;

/// What became of a page that was to be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is in the pool.
    Held,
    /// There was none, though there should have been.
    Lost,
    /// It is where it was.
    Stays,
}

/// Whether pages may be shared with a child, which makes them busy for as long as it lives, and so says
/// nothing of devices. From the first fork on, a direct transfer that the program has under way into a page
/// may be lost: nothing tells which of the two keeps a page busy, and if all that are stayed, a child that
/// lives long would take the frames away.
static HAS_FORKED: AtomicBool = AtomicBool::new(false);

/// This process has made a child that has its view of the pages.
pub(crate) fn has_forked() {
    HAS_FORKED.store(true, Relaxed);
}

/// Takes the pages of `len` bytes at `from` to the empty places at `to`. Returns how many bytes are held now;
/// if not all, what became of the page behind them.
///
/// # Safety
/// `from` is in a range registered with `faults`, `to` in the pool, empty.
pub(crate) unsafe fn take(faults: &Faults, from: usize, to: usize, len: usize) -> (usize, Taken) {
    if !faults.moves() {
        // SAFETY: by this function's condition.
        return match unsafe { take_by_copy(faults, from, to) } {
            Taken::Held => (PAGE, Taken::Held),
            other => (0, other),
        };
    }
    // SAFETY: by this function's condition.
    match unsafe { faults.move_pages(from, to, len, Ours::Destination) } {
        (moved, Ok(())) => (moved, Taken::Held),
        // A device may be writing to it, which no protection keeps off, and what it writes after a copy was
        // made would be lost.
        (moved, Err(Errno::BUSY)) if !HAS_FORKED.load(Relaxed) => (moved, Taken::Stays),
        // SAFETY: by this function's condition; the page moved is done with.
        (moved, Err(_)) => match unsafe { take_by_copy(faults, from + moved, to + moved) } {
            Taken::Held => (moved + PAGE, Taken::Held),
            other => (moved, other),
        },
    }
}

/// # Safety
/// As [`take`], for one page.
unsafe fn take_by_copy(faults: &Faults, from: usize, to: usize) -> Taken {
    // A look at a missing page would wait for us, so it is made sure that there is one.
    match faults.is_hole(from) {
        Ok(false) => {}
        Ok(true) => return Taken::Lost,
        Err(_) => return Taken::Stays,
    }
    if faults.protect(from).is_err() {
        return Taken::Stays;
    }
    // The kernel copies: the program may have forbidden all access to the page, which would be this thread's
    // end.
    // SAFETY: if it can be read; nobody writes to it now.
    let (copied, _) = unsafe { faults.copy_in(from, to, PAGE) };
    // SAFETY: the contents are safe at `to`.
    if copied == PAGE && unsafe { map::flush(from, PAGE) }.is_ok() {
        return Taken::Held;
    }
    // A place that only seems empty would be taken for one to which a page has moved.
    // SAFETY: the original is not needed.
    if let Err(errno) = unsafe { map::flush(to, PAGE) } {
        trouble::stop("cannot empty a place of its pool", errno);
    }
    faults.unprotect(from);
    Taken::Stays
}

/// Brings the frames of `len` bytes at `from` in the pool to the missing pages at `to`, and wakes who waits
/// for them. The places at `from` are empty then.
///
/// All at once where that can be. The kernel takes a run in pieces if the program has forbidden itself part
/// of it, or locked part, which makes several mappings of the range; and pages that it has so changed are
/// copied.
///
/// # Errors
/// What the kernel refuses with, for want of memory; [`LOST`] if a page was not at `from`.
///
/// # Safety
/// `from` is in the pool and present, `to` in a range registered with `faults` and missing there.
pub(crate) unsafe fn bring(faults: &Faults, from: usize, to: usize, len: usize) -> Result<(), Errno> {
    let (mut done, mut piece, mut tries) = (0, len, 0);
    while done < len {
        piece = piece.min(len - done);
        let moves = faults.moves() && tries < TRIES;
        let (brought, result) = if moves {
            // SAFETY: by this function's condition; the page brought is done with.
            unsafe { faults.move_pages(from + done, to + done, piece, Ours::Source) }
        } else {
            // SAFETY: as above; the original is not needed in the pool any more.
            unsafe {
                let (copied, result) = faults.copy_in(from + done, to + done, piece);
                if copied > 0
                    && let Err(errno) = map::flush(from + done, copied)
                {
                    trouble::stop("cannot empty a place of its pool", errno);
                }
                (copied, result)
            }
        };
        done += brought;
        match result {
            Ok(()) => (piece, tries) = (2 * piece, 0),
            Err(LOST) => return Err(LOST),
            // A transfer from the device is over a moment before the kernel lets go of its pages.
            Err(Errno::BUSY) if moves => {
                tries = if brought > 0 { 1 } else { tries + 1 };
                core::hint::spin_loop();
            }
            Err(_) if piece > PAGE => piece = PAGE,
            Err(_) if moves => tries = TRIES,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
