//! Sizes and limits of the pager, and [`PageNo`], a page's number as a separate type.

pub use vellum_sys::PAGE;

/// The fewest frames a pager works with. An instruction may need several pages at once (a vector gather:
/// sixteen), and each thread one. With this many, the page of one fault is still there at the next.
pub const FRAMES_MIN: u32 = 64;
/// The most frames: 256 GiB.
pub const FRAMES_MAX: u32 = 1 << 26;
/// Pages of address space for memory objects by default: 256 GiB.
pub const SPAN_PAGES: u32 = 1 << 26;
/// Pages of a step, the unit in which the store is mapped: 2 MiB.
pub(crate) const STEP: u32 = (vellum_sys::HUGE / PAGE) as u32;

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
