//! Units, in types that do not mix.

pub use vellum_sys::PAGE;

/// The fewest frames a pager works with. One instruction may need several pages at once (a vector gather:
/// sixteen), and each thread one; with this many, what one page fault brings is not gone before the next.
pub const FRAMES_MIN: u32 = 64;
/// The most frames: 256 GiB of them.
pub const FRAMES_MAX: u32 = 1 << 26;
/// Pages of address space for memory objects unless asked otherwise: 256 GiB.
pub const SPAN_PAGES: u32 = 1 << 26;
/// The most pages dealt with in one go: moved out, written, brought ahead.
pub(crate) const BATCH: usize = 256;

/// The most clusters that are read ahead of a stream, and all together: that many transfers keep a device
/// busy while what came before is checked and mapped. Each has a thread.
pub(crate) const AHEAD: usize = 2;

/// The number of a page, counted from the start of the pager's span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageNo(pub u32);

impl PageNo {
    /// The page as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The page `count` pages on.
    #[inline]
    #[must_use]
    pub const fn plus(self, count: u32) -> PageNo {
        PageNo(self.0 + count)
    }
}

/// Where a frame is kept that no page is mapped to: a page of the pool's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Place(pub u32);

/// A page's worth of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SlotNo(pub u32);
