//! The frames that no page is mapped to: the free ones, and those of held pages.
//!
//! The pool is a range of private anonymous memory of twice as many pages (*places*) as there are frames. A place has a frame that is free, or
//! holds a page, or is empty because its frame is mapped elsewhere. Frames come and go by changing page tables, so that the contents of
//! neighbouring pages stay neighbours for writing and reading; twice the room keeps runs of empty places to be found.
//!
//! Invariant: `mapped + held + free = frames`, where a place that is neither empty nor free holds a page. A free place may never have been
//! touched; the kernel gives it its frame when it is.

use crate::bits::{Bits, Run};
use crate::units::{PAGE, Place};
use rustix::io::Errno;
use vellum_sys::map;

/// Places for each frame.
const ROOM: u32 = 2;

#[derive(Debug)]
pub(crate) struct Pool {
    start: usize,
    places: u32,
    free: Bits,
    empty: Bits,
}

impl Pool {
    pub(crate) const fn none() -> Pool {
        Pool { start: 0, places: 0, free: Bits::empty(), empty: Bits::empty() }
    }

    /// A pool of `frames` free frames.
    pub(crate) fn new(frames: u32) -> Result<Pool, Errno> {
        let places = frames * ROOM;
        let (mut free, mut empty) = (Bits::new(places)?, Bits::new(places)?);
        let bytes = places as usize * PAGE;
        let start = map::reserve_readable(bytes)?;
        // SAFETY: reserved a moment ago.
        let made = unsafe { map::make_writable(start, bytes) };
        if let Err(errno) = made {
            // SAFETY: as above; nobody knows of it.
            let _ = unsafe { map::release(start, bytes) };
            return Err(errno);
        }
        // Frames are base pages, which alone can be moved one by one.
        map::advise_huge(start, bytes, false);
        free.insert(0, frames);
        empty.insert(frames, places - frames);
        Ok(Pool { start, places, free, empty })
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.places as usize * PAGE
    }

    pub(crate) fn address(&self, place: Place) -> usize {
        self.start + place.0 as usize * PAGE
    }

    /// Free frames.
    pub(crate) fn free(&self) -> u32 {
        self.free.count()
    }

    /// Frames of held pages.
    pub(crate) fn held(&self) -> u32 {
        self.places - self.free.count() - self.empty.count()
    }

    /// Takes at most `most` neighbouring free frames.
    pub(crate) fn take_free(&mut self, most: u32) -> Option<Run> {
        self.free.take(most)
    }

    /// Frames taken by [`Pool::take_free`], or of held pages, are free now.
    pub(crate) fn put_free(&mut self, start: Place, len: u32) {
        self.free.insert(start.0, len);
    }

    /// Takes at most `most` neighbouring empty places, to move pages to.
    pub(crate) fn take_empty(&mut self, most: u32) -> Option<Run> {
        self.empty.take(most)
    }

    /// Places whose frames have been moved elsewhere, or never came, are empty now.
    pub(crate) fn put_empty(&mut self, start: Place, len: u32) {
        self.empty.insert(start.0, len);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.places > 0 {
            // SAFETY: the mapping is the pool's own, and whoever could use it is gone.
            let _ = unsafe { map::release(self.start, self.bytes()) };
        }
    }
}
