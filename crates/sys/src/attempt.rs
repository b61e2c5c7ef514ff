//! Tests of the kernel facilities of [`Caps`]: each is tried on fresh pages, by the calls that Vellum makes.
//!
//! In normal use a process drops a flag of [`Caps`] when the kernel first refuses the facility. A report of
//! what this kernel allows cannot wait for that: it tries each facility and keeps the errno.
//!
//! A test leaves nothing behind: its memory is unmapped and its descriptors are closed. A refused flag is
//! dropped as usual, so a process that has made the tests takes the same fallbacks as any other.

use crate::caps::{self, Caps};
use crate::pressure::Trigger;
use crate::track::{Tracker, Written};
use crate::transfer::Inlet;
use crate::{HUGE, PAGE, Span, barrier, map};
use rustix::io::Errno;

struct Scratch(Span);

impl Scratch {
    fn new(bytes: usize) -> Result<Scratch, Errno> {
        map::reserve_writable(bytes).map(Scratch)
    }

    fn page() -> Result<Scratch, Errno> {
        let page = Scratch::new(PAGE)?;
        // SAFETY: the page was mapped by the line before and is writable.
        unsafe { page.0.start.ptr::<u8>().write_volatile(1) };
        Ok(page)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and used by nobody any more.
        let _ = unsafe { map::release(self.0) };
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
    let page = Scratch::page()?;
    // SAFETY: nothing in the page is needed.
    if unsafe { map::discard(page.0)? } { Ok(()) } else { Err(refusal(Caps::LAZY_FREE)) }
}

/// [`Caps::HUGE_PAGES`]: whether they may be asked for. The system's own policy may still give none.
pub fn huge_pages() -> Result<(), Errno> {
    if map::advise_huge(Scratch::new(HUGE)?.0, true) { Ok(()) } else { Err(refusal(Caps::HUGE_PAGES)) }
}

/// [`Caps::POPULATE`].
pub fn populate() -> Result<(), Errno> {
    map::populate(Scratch::new(PAGE)?.0)
}

/// [`Caps::MOVE`]: moves a page.
pub fn move_pages() -> Result<(), Errno> {
    let (from, to) = (Scratch::page()?, Scratch::page()?);
    // SAFETY: nothing at `to` is needed, and nobody touches it while the inlet is open.
    let inlet = unsafe { Inlet::open(to.0)? };
    // SAFETY: both pages are this function's; `to` was emptied by the inlet.
    unsafe { inlet.take(from.0, to.0.start) }.map_err(|(errno, _)| errno)
}

/// [`Caps::REMAP`]: moves a page's table entry.
pub fn move_tables() -> Result<(), Errno> {
    let (from, to) = (Scratch::page()?, Scratch::page()?);
    // SAFETY: both pages are this function's, and nothing in them is needed.
    unsafe { map::remap(from.0, to.0.start) }
}

/// [`Caps::TRACK`]: finds a page that was written to.
pub fn write_tracking() -> Result<(), Errno> {
    let tracker = Tracker::new()?;
    let page = Scratch::page()?;
    tracker.cover(page.0)?;
    tracker.arm(page.0)?;
    tracker.take(page.0, false, &mut [Written::default()]).map(drop)
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
