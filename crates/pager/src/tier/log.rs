//! The memory of compressed pages: a log of segments.
//!
//! ```text
//!   oldest ▶│ entry │ dead │ entry │ ··· │▶│ entry │ entry │ ··· │▶ ··· ▶│ entry │ entry │      │ open
//!                                                                                       ▲ next
//! ```
//!
//! An entry is a header and a compressed page, as long as it happens to be, in one piece. Entries are only
//! ever added at the end of the *open* segment; one that is no longer needed leaves a dead part behind.
//! Segments are emptied in the order in which they were filled, whatever of them is needed being moved to the
//! open one or written to the store (`behind`), and are then whole again. So there is no fragmentation other
//! than dead parts and the ends of segments, and memory is taken and given back by whole segments.
//!
//! Invariants ([`Log::validate`]): a segment is open, in the queue of full ones, free (it has memory and
//! nothing in it), or has no memory; its `live` bytes are those of its entries that some page names.
//!
//! Source: Rosenblum and Ousterhout 1992, "The design and implementation of a log-structured file system",
//! section 3. Departure: the oldest segment is cleaned, not the one with the best ratio of benefit to cost,
//! as age is what decides which pages are written behind.

use crate::table::{Table, Zero};
use crate::units::{PAGE, PageNo};
use rustix::io::Errno;
use vellum_sys::map;

/// Bytes of a segment.
pub(crate) const SEGMENT: usize = 32 << 10;
/// The frames that its memory counts as.
pub(crate) const SEGMENT_FRAMES: u32 = (SEGMENT / PAGE) as u32;
/// What places of entries are multiples of.
const GRAIN: usize = 8;
/// The most segments: what a place, counted in grains, can name.
pub(super) const SEGMENTS_MAX: u32 = (u32::MAX as usize / (SEGMENT / GRAIN)) as u32;

/// What stands before each compressed page.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Header {
    pub(super) page: PageNo,
    pub(super) len: u16,
    /// Not 0 if its page has been given up again since it was compressed.
    pub(super) again: u16,
}

const HEADER: usize = size_of::<Header>();
const _: () = assert!(HEADER == GRAIN && SEGMENT.is_multiple_of(PAGE));

/// The place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At(u32);

impl At {
    /// As a page's record has it: 0 is no place.
    pub(super) fn word(self) -> u32 {
        self.0 + 1
    }

    pub(super) fn of_word(word: u32) -> Option<At> {
        word.checked_sub(1).map(At)
    }

    fn offset(self) -> usize {
        self.0 as usize * GRAIN
    }

    fn segment(self) -> u32 {
        (self.offset() / SEGMENT) as u32
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Segment {
    /// Bytes that entries have been put in, and those of them that are needed.
    used: u32,
    live: u32,
    /// The next in its list, plus one.
    next: u32,
}

// SAFETY: integers only.
unsafe impl Zero for Segment {}

#[derive(Debug)]
pub(super) struct Log {
    start: usize,
    segments: Table<Segment>,
    /// Segments that have memory.
    owned: u32,
    /// The full ones, oldest first; the open one; the free ones; those without memory. Each plus one.
    oldest: u32,
    newest: u32,
    open: u32,
    free: u32,
    bare: u32,
    free_count: u32,
    live: u64,
}

/// Bytes that an entry takes for a compressed page of `len` bytes.
pub(super) const fn size_of_entry(len: usize) -> usize {
    (HEADER + len).next_multiple_of(GRAIN)
}

impl Log {
    pub(super) const fn none() -> Log {
        Log {
            start: 0,
            segments: Table::empty(),
            owned: 0,
            oldest: 0,
            newest: 0,
            open: 0,
            free: 0,
            bare: 0,
            free_count: 0,
            live: 0,
        }
    }

    /// A log of at most `most` segments, none of which has memory yet.
    pub(super) fn new(most: u32) -> Result<Log, Errno> {
        if most == 0 {
            return Ok(Log::none());
        }
        let mut segments = Table::<Segment>::new(most as usize)?;
        let bytes = most as usize * SEGMENT;
        let start = map::reserve_readable(bytes)?;
        // SAFETY: reserved a moment ago.
        if let Err(errno) = unsafe { map::make_writable(start, bytes) } {
            // SAFETY: as above; nobody knows of it.
            let _ = unsafe { map::release(start, bytes) };
            return Err(errno);
        }
        // Memory that was never written to must not become resident with what lies beside it.
        map::advise_huge(start, bytes, false);
        for (index, segment) in segments.iter_mut().enumerate() {
            segment.next = if index + 1 < most as usize { index as u32 + 2 } else { 0 };
        }
        Ok(Log { start, segments, bare: 1, ..Log::none() })
    }

    /// Segments with memory, and those of them with nothing in it.
    pub(super) fn owned(&self) -> u32 {
        self.owned
    }

    pub(super) fn free_segments(&self) -> u32 {
        self.free_count
    }

    /// Bytes of entries that are needed.
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// Gives one segment more memory. False if all have some, or there is none.
    pub(super) fn adopt(&mut self) -> bool {
        let Some(index) = self.bare.checked_sub(1) else { return false };
        // Memory that comes by one call costs less than by a fault for each page, which is the other way.
        let _ = map::populate(self.start + index as usize * SEGMENT, SEGMENT);
        self.bare = self.segments[index as usize].next;
        self.owned += 1;
        self.put_free(index);
        true
    }

    /// Takes the memory of a free segment from it. False if none is free, or the kernel refuses.
    pub(super) fn disown(&mut self) -> bool {
        let Some(index) = self.free.checked_sub(1) else { return false };
        // SAFETY: nothing lies in the segment.
        if unsafe { map::flush(self.start + index as usize * SEGMENT, SEGMENT) }.is_err() {
            return false;
        }
        self.free = self.segments[index as usize].next;
        self.free_count -= 1;
        self.owned -= 1;
        self.segments[index as usize].next = self.bare;
        self.bare = index + 1;
        true
    }

    fn put_free(&mut self, index: u32) {
        self.segments[index as usize] = Segment { used: 0, live: 0, next: self.free };
        self.free = index + 1;
        self.free_count += 1;
    }

    /// Closes the open segment, so that it is the newest of the full ones.
    pub(super) fn close(&mut self) {
        let open = core::mem::take(&mut self.open);
        let Some(index) = open.checked_sub(1) else { return };
        self.segments[index as usize].next = 0;
        match self.newest.checked_sub(1) {
            Some(newest) => self.segments[newest as usize].next = open,
            None => self.oldest = open,
        }
        self.newest = open;
    }

    /// Adds an entry for a page. `None` if it does not fit the open segment, and no other is free.
    pub(super) fn append(&mut self, page: PageNo, bytes: &[u8]) -> Option<At> {
        let size = size_of_entry(bytes.len());
        let fits = |log: &Log| {
            let open = log.open.checked_sub(1)?;
            (log.segments[open as usize].used as usize + size <= SEGMENT).then_some(open)
        };
        let open = match fits(self) {
            Some(open) => open,
            None => {
                let index = self.free.checked_sub(1)?;
                self.close();
                self.free = self.segments[index as usize].next;
                self.free_count -= 1;
                self.open = index + 1;
                index
            }
        };
        let segment = &mut self.segments[open as usize];
        let at = At(((open as usize * SEGMENT + segment.used as usize) / GRAIN) as u32);
        segment.used += size as u32;
        segment.live += size as u32;
        self.live += size as u64;
        let header = Header { page, len: bytes.len() as u16, again: 0 };
        let place = (self.start + at.offset()) as *mut u8;
        // SAFETY: within the open segment, behind its last entry, and aligned to a grain. An entry that
        // is moved comes from another segment.
        unsafe {
            place.cast::<Header>().write(header);
            place.add(HEADER).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        Some(at)
    }

    pub(super) fn header(&mut self, at: At) -> &mut Header {
        // SAFETY: an entry lies there, whose header `append` has written; the log is borrowed.
        unsafe { &mut *((self.start + at.offset()) as *mut Header) }
    }

    /// Where the compressed page of an entry lies, and how many bytes it has.
    pub(super) fn bytes(&self, at: At) -> (usize, usize) {
        let address = self.start + at.offset();
        // SAFETY: as in `header`.
        let header = unsafe { &*(address as *const Header) };
        (address + HEADER, usize::from(header.len))
    }

    /// An entry is needed no more.
    pub(super) fn remove(&mut self, at: At) {
        let size = size_of_entry(self.bytes(at).1);
        self.segments[at.segment() as usize].live -= size as u32;
        self.live -= size as u64;
    }

    /// The oldest of the full segments.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.oldest.checked_sub(1)
    }

    /// The entry at `offset` of a segment, dead or not, and the offset of the next. `None` behind the last.
    pub(super) fn entry(&self, segment: u32, offset: u32) -> Option<(At, Header, u32)> {
        if offset >= self.segments[segment as usize].used {
            return None;
        }
        let at = At(((segment as usize * SEGMENT + offset as usize) / GRAIN) as u32);
        // SAFETY: an entry starts there: the first of a segment at its start, each other behind one.
        let header = unsafe { *((self.start + at.offset()) as *const Header) };
        Some((at, header, offset + size_of_entry(usize::from(header.len)) as u32))
    }

    /// The oldest segment, in which nothing is needed, is free.
    pub(super) fn recycle_oldest(&mut self) {
        let Some(index) = self.oldest() else { return };
        debug_assert_eq!(self.segments[index as usize].live, 0);
        self.oldest = self.segments[index as usize].next;
        if self.oldest == 0 {
            self.newest = 0;
        }
        self.put_free(index);
    }

    /// Gives all memory back to the kernel, in a child in which nothing is compressed any more.
    pub(super) fn flush(&mut self) {
        if self.start != 0 {
            // SAFETY: the log's own memory, which nobody reads any more.
            let _ = unsafe { map::flush(self.start, self.segments.len() * SEGMENT) };
        }
    }

    /// Checks lists and counts; `is_live` says whether a page names an entry. Slow.
    pub(super) fn validate(&self, is_live: impl Fn(At, PageNo) -> bool) -> Result<u32, &'static str> {
        let (mut entries, mut live, mut filled, mut free) = (0, 0, 0, 0);
        let mut check = |index: u32| {
            filled += 1;
            let (mut offset, mut sum) = (0, 0);
            while let Some((at, header, next)) = self.entry(index, offset) {
                if is_live(at, header.page) {
                    sum += size_of_entry(usize::from(header.len)) as u32;
                    entries += 1;
                }
                offset = next;
            }
            live += u64::from(sum);
            sum == self.segments[index as usize].live && offset == self.segments[index as usize].used
        };
        let mut at = self.oldest;
        while let Some(index) = at.checked_sub(1) {
            if !check(index) {
                return Err("a segment of compressed pages counts other bytes than it has");
            }
            at = self.segments[index as usize].next;
        }
        if self.open.checked_sub(1).is_some_and(|open| !check(open)) {
            return Err("the open segment of compressed pages counts other bytes than it has");
        }
        let mut at = self.free;
        while let Some(index) = at.checked_sub(1) {
            free += 1;
            at = self.segments[index as usize].next;
        }
        if live != self.live || free != self.free_count || filled + free != self.owned {
            return Err("segments of compressed pages were lost or made");
        }
        Ok(entries)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.start != 0 {
            // SAFETY: the mapping is the log's own, and its users are gone.
            let _ = unsafe { map::release(self.start, self.segments.len() * SEGMENT) };
        }
    }
}
