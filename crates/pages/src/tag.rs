//! The tag table: one record for each page, kept outside the memory it describes.
//!
//! ```text
//! pages  │ 0 1 2 3 4 5 6 │ 7 │ 8 9 ...
//! tags   │ H . . . . . T │ H │ H ...      H head, T tail (a one-page extent has a head only), . nothing
//! ```
//!
//! Invariants: the tags of an extent's first and last page, free or used, hold its length and state; every
//! other tag is [`Kind::Inside`]. Neighbours are found in constant time (boundary tags, Knuth 1973), and the
//! start of an extent is never guessed. The table lies in address space beside its arena. Only pages of the
//! table with tags in use are resident: at most 16 bytes for each page of the arena, 0.4 %.

use core::fmt;
use vellum_sys::Addr;

pub(crate) type PageNo = u32;
pub(crate) const NONE: PageNo = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Not at the end of an extent.
    Inside = 0,
    Used,
    /// Free, frames kept, contents undefined.
    Warm,
    /// Free, and discardable for the kernel: frames may be there.
    Marked,
    /// Free, no frames: the next touch finds zeros.
    Cold,
}

/// The free states, in the order in which they are reused.
pub(crate) const FREE_KINDS: [Kind; 3] = [Kind::Warm, Kind::Marked, Kind::Cold];

impl Kind {
    pub(crate) const fn is_free(self) -> bool {
        matches!(self, Kind::Warm | Kind::Marked | Kind::Cold)
    }

    /// The index of a free kind in [`FREE_KINDS`].
    pub(crate) const fn index(self) -> usize {
        self as usize - Kind::Warm as usize
    }
}

/// Facts about an extent that travel with it.
pub(crate) mod flag {
    /// Has a separate map entry in it: flushing maps it anew, which joins the entries again.
    pub(crate) const ENTRY: u8 = 1 << 0;
    /// A used extent of which a part had no frames when it was handed out: its resident part is not known. A
    /// warm extent of which some pages are not resident.
    pub(crate) const UNTOUCHED: u8 = 1 << 1;
    /// Some of it may be in huge pages.
    pub(crate) const HUGE: u8 = 1 << 2;
    /// The program changed the mapping's attributes: the extent must be mapped anew before its next use.
    pub(crate) const TAINTED: u8 = 1 << 3;
    /// Handed out as a mapping of the program's own: `munmap` gives it back, `free` does not.
    pub(crate) const MAPPING: u8 = 1 << 4;
    /// Taken for a mapping that the kernel has yet to make.
    pub(crate) const CLAIMED: u8 = 1 << 5;
    /// Free, and out of its list while somebody deals with its frames.
    pub(crate) const AWAY: u8 = 1 << 6;
    /// Used, and sealed by the program: the kernel's for good.
    pub(crate) const SEALED: u8 = 1 << 7;
    /// The flags of a free extent in its list.
    pub(crate) const FREE: u8 = ENTRY | UNTOUCHED | HUGE;
}

/// An extent: its first page, its length and its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: PageNo,
    pub(crate) pages: u32,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Tag {
    /// Length of the extent, in a head or tail.
    pub(crate) pages: u32,
    pub(crate) kind: Kind,
    pub(crate) is_tail: bool,
    pub(crate) flags: u8,
    unused: u8,
    pub(crate) prev: PageNo,
    pub(crate) next: PageNo,
}

pub(crate) const TAG_BYTES: usize = 16;

const _: () = assert!(size_of::<Tag>() == TAG_BYTES);
const _: () = assert!(Kind::Inside as u8 == 0, "a table of zeros says nothing of any page");

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_tail { "tail" } else { "head" };
        write!(f, "{:?} {end} of {} pages, flags {:#x}", self.kind, self.pages, self.flags)
    }
}

pub(crate) struct Tags {
    first: *mut Tag,
    pub(crate) count: u32,
}

// SAFETY: the table is only reached through its arena, which is behind a lock.
unsafe impl Send for Tags {}

impl Tags {
    pub(crate) const fn unmapped() -> Tags {
        Tags { first: core::ptr::null_mut(), count: 0 }
    }

    /// # Safety
    /// At `start` zeroed memory for tags is mapped, or will be before `count` covers it.
    pub(crate) unsafe fn place(&mut self, start: Addr) {
        self.first = start.ptr();
    }

    #[inline]
    pub(crate) fn at(&mut self, page: PageNo) -> &mut Tag {
        assert!(page < self.count, "page {page} of {}", self.count);
        // SAFETY: tags below `count` are mapped; zeros are a valid Tag; `self` is borrowed mutably.
        unsafe { &mut *self.first.add(page as usize) }
    }

    #[inline]
    pub(crate) fn write(&mut self, start: PageNo, pages: u32, kind: Kind, flags: u8) {
        let tag = Tag { pages, kind, is_tail: false, flags, unused: 0, prev: NONE, next: NONE };
        *self.at(start) = tag;
        if pages > 1 {
            *self.at(start + pages - 1) = Tag { is_tail: true, ..tag };
        }
    }

    #[inline]
    pub(crate) fn erase(&mut self, start: PageNo, pages: u32) {
        self.at(start).kind = Kind::Inside;
        self.at(start + pages - 1).kind = Kind::Inside;
    }

    pub(crate) fn ending_at(&mut self, page: PageNo) -> Run {
        let tag = *self.at(page);
        debug_assert!(tag.kind != Kind::Inside && (tag.is_tail || tag.pages == 1), "{tag:?} ends at {page}");
        Run { start: page + 1 - tag.pages, pages: tag.pages, kind: tag.kind }
    }
}
