//! Capabilities tried on pages of their own, by the calls that the rest of the house makes.
//!
//! Elsewhere a flag of [`Caps`] is dropped by the first refusal that a process meets. A report of what this
//! kernel allows cannot wait for one: it tries each, and keeps the errno.
//!
//! Nothing stays: memory is unmapped again, and descriptors are closed. A flag that was refused is dropped as
//! usual, so a process that has tried takes the same ways as any other.

use crate::caps::{self, Caps};
use crate::pressure::Trigger;
use crate::track::{Tracker, Written};
use crate::transfer::Inlet;
use crate::{HUGE, PAGE, barrier, map};
use rustix::io::Errno;

/// Pages that nobody else knows of.
struct Scratch {
    start: usize,
    len: usize,
}

impl Scratch {
    /// `len` bytes, written to.
    fn new(len: usize) -> Result<Scratch, Errno> {
        let scratch = Scratch { start: map::reserve_writable(len)?, len };
        for at in (scratch.start..scratch.start + len).step_by(PAGE) {
            // SAFETY: within memory that was mapped a moment ago.
            unsafe { core::ptr::with_exposed_provenance_mut::<u8>(at).write_volatile(1) };
        }
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and used by nobody any more.
        let _ = unsafe { map::release(self.start, self.len) };
    }
}

fn refusal(one: Caps) -> Errno {
    caps::refusal(one).unwrap_or(Errno::NOSYS)
}

/// [`Caps::LAZY_FREE`].
///
/// # Errors
/// The kernel's errno, as for all of these.
pub fn lazy_free() -> Result<(), Errno> {
    let page = Scratch::new(PAGE)?;
    // SAFETY: nothing in the page is needed.
    if unsafe { map::discard(page.start, PAGE)? } { Ok(()) } else { Err(refusal(Caps::LAZY_FREE)) }
}

/// [`Caps::HUGE_PAGES`]: whether they may be asked for. The system's own policy may still give none.
pub fn huge_pages() -> Result<(), Errno> {
    let room = Scratch { start: map::reserve_writable(HUGE)?, len: HUGE };
    if map::advise_huge(room.start, HUGE, true) { Ok(()) } else { Err(refusal(Caps::HUGE_PAGES)) }
}

/// [`Caps::POPULATE`].
pub fn populate() -> Result<(), Errno> {
    let page = Scratch { start: map::reserve_writable(PAGE)?, len: PAGE };
    map::populate(page.start, PAGE)
}

/// [`Caps::MOVE`]: moves a page.
pub fn move_pages() -> Result<(), Errno> {
    let (from, to) = (Scratch::new(PAGE)?, Scratch::new(PAGE)?);
    // SAFETY: nothing at `to` is needed, and nobody touches it while the inlet is open.
    let inlet = unsafe { Inlet::open(to.start, PAGE)? };
    // SAFETY: both pages are this function's; `to` was emptied by the inlet.
    unsafe { inlet.take(from.start, to.start, PAGE) }.map_err(|(errno, _)| errno)
}

/// [`Caps::REMAP`]: moves a page's table entry.
pub fn move_tables() -> Result<(), Errno> {
    let (from, to) = (Scratch::new(PAGE)?, Scratch::new(PAGE)?);
    // SAFETY: both pages are this function's, and nothing in them is needed.
    unsafe { map::remap(from.start, to.start, PAGE) }
}

/// [`Caps::TRACK`]: finds a page that was written to.
pub fn write_tracking() -> Result<(), Errno> {
    let tracker = Tracker::new()?;
    let page = Scratch::new(PAGE)?;
    tracker.cover(page.start, PAGE)?;
    tracker.arm(page.start, page.start + PAGE)?;
    tracker.take(page.start, page.start + PAGE, false, &mut [Written::default()]).map(drop)
}

/// [`Caps::MEMBARRIER`].
pub fn fences() -> Result<(), Errno> {
    if barrier::fence_every_thread() { Ok(()) } else { Err(refusal(Caps::MEMBARRIER)) }
}

/// [`Caps::PRESSURE`].
pub fn pressure() -> Result<(), Errno> {
    Trigger::set().map(drop).ok_or_else(|| refusal(Caps::PRESSURE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_says_why_and_what_works_works_again() {
        for (one, attempt) in [
            (Caps::LAZY_FREE, lazy_free as fn() -> Result<(), Errno>),
            (Caps::HUGE_PAGES, huge_pages),
            (Caps::POPULATE, populate),
            (Caps::MOVE, move_pages),
            (Caps::REMAP, move_tables),
            (Caps::TRACK, write_tracking),
            (Caps::MEMBARRIER, fences),
            (Caps::PRESSURE, pressure),
        ] {
            let (first, second) = (attempt(), attempt());
            assert_eq!(first.is_ok(), second.is_ok(), "{one:?}: {first:?}, {second:?}");
            if first.is_ok() {
                assert_eq!((caps::has(one), caps::refusal(one)), (true, None), "{one:?}");
            }
        }
    }
}
