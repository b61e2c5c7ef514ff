//! The frames that no page is mapped to: the free ones, and those of held pages.
//!
//! The pool is a range of private anonymous memory of twice as many pages (*places*) as there are frames. A
//! place has a frame that is free, or holds a page, or is empty because its frame is mapped elsewhere. Frames
//! come and go by changing page tables, so that the contents of neighbouring pages stay neighbours for
//! writing and reading; twice the room keeps runs of empty places to be found.
//!
//! Invariants: `mapped + held + free = frames`, where a place that is neither empty nor free holds a page. A
//! free place that is *blank* has no frame yet: the kernel gives it one, full of zeros, when it is asked
//! ([`Pool::furnish`]). No other place is blank.

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
    blank: Bits,
}

impl Pool {
    pub(crate) const fn none() -> Pool {
        Pool { start: 0, places: 0, free: Bits::empty(), empty: Bits::empty(), blank: Bits::empty() }
    }

    /// A pool of `frames` free frames.
    pub(crate) fn new(frames: u32) -> Result<Pool, Errno> {
        let places = frames * ROOM;
        let [mut free, mut empty, mut blank] = [Bits::new(places)?, Bits::new(places)?, Bits::new(places)?];
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
        blank.insert(0, frames);
        Ok(Pool { start, places, free, empty, blank })
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

    /// Takes at most `most` neighbouring free frames, each present; and all zeros, if `zero`.
    pub(crate) fn take_free(&mut self, most: u32, zero: bool) -> Option<Run> {
        let run = self.free.take(most)?;
        let end = run.start + run.len;
        let mut at = run.start;
        while at < end {
            let is_blank = self.blank.has(at);
            let stop = (at..end).find(|&place| self.blank.has(place) != is_blank).unwrap_or(end);
            self.furnish(Run { start: at, len: stop - at }, is_blank, zero);
            at = stop;
        }
        Some(run)
    }

    /// Has free places, all blank or none of them, hold frames of this process alone; zeros, if `zero`.
    fn furnish(&mut self, run: Run, is_blank: bool, zero: bool) {
        let (start, bytes) = (self.address(Place(run.start)), run.len as usize * PAGE);
        if is_blank {
            self.blank.remove(run.start, run.len);
            // Frames that come by one call cost less than by a fault each.
            if run.len > 1 && map::populate(start, bytes).is_ok() {
                return;
            }
        } else if zero {
            // SAFETY: the places are free, so nobody else's.
            unsafe { (start as *mut u8).write_bytes(0, bytes) };
            return;
        }
        for frame in (start..start + bytes).step_by(PAGE) {
            // SAFETY: as above. The write has the kernel give the place its frame, also where a forked child
            // still shares it.
            unsafe { (frame as *mut u8).write_volatile(0) };
        }
    }

    /// A frame has gone back to the kernel from where it was mapped: some empty place may have one in its
    /// stead.
    pub(crate) fn return_frame(&mut self) {
        if let Some(run) = self.empty.take(1) {
            self.blank.insert(run.start, run.len);
            self.free.insert(run.start, run.len);
        }
    }

    /// Frames that are in memory, of `frames` in all.
    pub(crate) fn resident(&self, frames: u32) -> u32 {
        frames - self.blank.count()
    }

    /// Gives at most `most` free frames back to the kernel for good. Returns how many.
    pub(crate) fn retire(&mut self, most: u32) -> u32 {
        let mut retired = 0;
        while retired < most {
            let Some(run) = self.free.take(most - retired) else { break };
            // SAFETY: the places are free, so nobody else's.
            if unsafe { map::flush(self.address(Place(run.start)), run.len as usize * PAGE) }.is_err() {
                self.free.insert(run.start, run.len);
                break;
            }
            for place in run.start..run.start + run.len {
                if self.blank.has(place) {
                    self.blank.remove(place, 1);
                }
            }
            self.empty.insert(run.start, run.len);
            retired += run.len;
        }
        retired
    }

    /// Adds `count` frames that the kernel is to provide when they are asked for. Returns how many there is
    /// room for.
    pub(crate) fn add(&mut self, count: u32) -> u32 {
        let before = self.free();
        (0..count).for_each(|_| self.return_frame());
        self.free() - before
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
            // SAFETY: the mapping is the pool's own, and its users are gone.
            let _ = unsafe { map::release(self.start, self.bytes()) };
        }
    }
}
