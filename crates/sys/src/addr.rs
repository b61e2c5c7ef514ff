//! Addresses, spans of addresses, and numbers of pages, in types that do not mix with other numbers.
//!
//! # Invariants
//! * `+` and `-` are those of `usize`: an overflow wraps, or panics in builds that check it.
//! * [`Addr::round_up`] and [`Addr::saturating_add`] stop at the last address. [`Addr::since`] wraps.
//! * A [`Span`] made by [`Span::between`] or cut from another one is empty if it would end before it starts.

use crate::{PAGE, round_down, round_up};
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// An address in a process.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Addr(usize);

impl Addr {
    /// The address 0, at which nothing is ever mapped.
    pub const NULL: Addr = Addr(0);
    /// The last address.
    pub const MAX: Addr = Addr(usize::MAX);

    /// The address with this number.
    pub const fn new(number: usize) -> Addr {
        Addr(number)
    }

    /// The address in `place`, whose provenance is exposed.
    pub fn of<T: ?Sized>(place: *const T) -> Addr {
        Addr(place.cast::<u8>().expose_provenance())
    }

    /// The number of the address.
    pub const fn get(self) -> usize {
        self.0
    }

    /// A pointer to the address, with a provenance that was exposed.
    pub const fn ptr<T>(self) -> *mut T {
        core::ptr::with_exposed_provenance_mut(self.0)
    }

    /// True for [`Addr::NULL`].
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The bytes from `start` to here; wraps where `start` lies behind.
    pub const fn since(self, start: Addr) -> usize {
        self.0.wrapping_sub(start.0)
    }

    /// The address `bytes` bytes on, or the last one.
    #[must_use]
    pub const fn saturating_add(self, bytes: usize) -> Addr {
        Addr(self.0.saturating_add(bytes))
    }

    /// The address `bytes` bytes on, if there is one.
    pub fn checked_add(self, bytes: usize) -> Option<Addr> {
        self.0.checked_add(bytes).map(Addr)
    }

    /// True for a multiple of `unit`, a power of two.
    pub const fn is_aligned(self, unit: usize) -> bool {
        self.0 & (unit - 1) == 0
    }

    /// The last multiple of `unit`, a power of two, up to here.
    #[must_use]
    pub const fn round_down(self, unit: usize) -> Addr {
        Addr(round_down(self.0, unit))
    }

    /// The first multiple of `unit`, a power of two, from here on, or the last one there is.
    #[must_use]
    pub const fn round_up(self, unit: usize) -> Addr {
        Addr(round_up(self.0, unit))
    }
}

impl Add<usize> for Addr {
    type Output = Addr;
    fn add(self, bytes: usize) -> Addr {
        Addr(self.0 + bytes)
    }
}

impl AddAssign<usize> for Addr {
    fn add_assign(&mut self, bytes: usize) {
        self.0 += bytes;
    }
}

impl Sub<usize> for Addr {
    type Output = Addr;
    fn sub(self, bytes: usize) -> Addr {
        Addr(self.0 - bytes)
    }
}

impl Sub<Addr> for Addr {
    type Output = usize;
    fn sub(self, start: Addr) -> usize {
        self.0 - start.0
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A number of base pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PageCount(usize);

impl PageCount {
    /// This many pages.
    pub const fn new(pages: usize) -> PageCount {
        PageCount(pages)
    }

    /// The number.
    pub const fn get(self) -> usize {
        self.0
    }

    /// The bytes of these pages; overflows as `*` does.
    pub const fn bytes(self) -> usize {
        self.0 * PAGE
    }
}

/// `bytes` addresses from `start` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first address.
    pub start: Addr,
    /// The number of addresses.
    pub bytes: usize,
}

impl Span {
    /// No addresses.
    pub const EMPTY: Span = Span::new(Addr::NULL, 0);

    /// The `bytes` bytes from `start` on.
    pub const fn new(start: Addr, bytes: usize) -> Span {
        Span { start, bytes }
    }

    /// The `bytes` bytes from where `place` points on.
    pub fn at<T>(place: *const T, bytes: usize) -> Span {
        Span::new(Addr::of(place), bytes)
    }

    /// The addresses from `start` up to `end`, without it: empty where `end` does not lie behind `start`.
    pub const fn between(start: Addr, end: Addr) -> Span {
        Span { start, bytes: end.0.saturating_sub(start.0) }
    }

    /// The page or other power of two bytes, `unit`, that `address` lies in.
    pub const fn unit_of(address: Addr, unit: usize) -> Span {
        Span { start: address.round_down(unit), bytes: unit }
    }

    /// The first address behind the span; overflows as `+` does.
    pub const fn end(self) -> Addr {
        Addr(self.start.0 + self.bytes)
    }

    /// True if there are no addresses.
    pub const fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// The span, unless it is empty.
    pub fn non_empty(self) -> Option<Span> {
        (self.bytes > 0).then_some(self)
    }

    /// True if `address` is in the span.
    pub const fn contains(self, address: Addr) -> bool {
        address.since(self.start) < self.bytes
    }

    /// The addresses that are in both.
    #[must_use]
    pub fn intersect(self, other: Span) -> Span {
        Span::between(self.start.max(other.start), self.end().min(other.end()))
    }

    /// The first `bytes` bytes, at most all, and the rest.
    pub fn split_at(self, bytes: usize) -> [Span; 2] {
        let first = self.bytes.min(bytes);
        [Span::new(self.start, first), Span::new(self.start + first, self.bytes - first)]
    }

    /// The addresses before `address`.
    #[must_use]
    pub fn before(self, address: Addr) -> Span {
        Span::between(self.start, self.end().min(address))
    }

    /// The addresses from `address` on.
    #[must_use]
    pub fn from(self, address: Addr) -> Span {
        Span::between(self.start.max(address), self.end())
    }

    /// The whole units, a power of two bytes each, that lie in the span.
    #[must_use]
    pub const fn whole(self, unit: usize) -> Span {
        Span::between(self.start.round_up(unit), self.end().round_down(unit))
    }

    /// All units, a power of two bytes each, that the span touches.
    #[must_use]
    pub const fn touched(self, unit: usize) -> Span {
        Span::between(self.start.round_down(unit), self.end().round_up(unit))
    }

    /// The whole pages' number.
    pub const fn page_count(self) -> PageCount {
        PageCount(self.bytes / PAGE)
    }

    /// The pages' addresses, from `start` on.
    pub fn pages(self) -> impl DoubleEndedIterator<Item = Addr> {
        (self.start.0..self.start.0 + self.bytes).step_by(PAGE).map(Addr)
    }

    /// Pieces of at most `bytes` bytes, which is not 0, one behind the other.
    pub fn pieces(self, bytes: usize) -> impl Iterator<Item = Span> {
        (0..self.bytes)
            .step_by(bytes)
            .map(move |offset| Span::new(self.start + offset, bytes.min(self.bytes - offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn span(start: usize, end: usize) -> Span {
        Span::between(Addr::new(start), Addr::new(end))
    }

    #[test]
    fn rounding_keeps_multiples_and_stops_at_the_end() {
        let page = Addr::new(3 * PAGE);
        assert_eq!([page.round_up(PAGE), page.round_down(PAGE)], [page; 2]);
        assert_eq!([(page + 1).round_up(PAGE), (page + 1).round_down(PAGE)], [page + PAGE, page]);
        assert_eq!(Addr::MAX.round_up(PAGE), Addr::MAX.round_down(PAGE));
        assert_eq!(Addr::MAX.saturating_add(1), Addr::MAX);
        assert_eq!(Addr::MAX.checked_add(1), None);
        assert!(page.is_aligned(PAGE) && !(page + 8).is_aligned(PAGE));
        assert_eq!((page - Addr::new(PAGE), Addr::NULL.since(Addr::new(1))), (2 * PAGE, usize::MAX));
    }

    #[test]
    fn pointers_survive_the_way_to_addresses_and_back() {
        let value = 7u32;
        let address = Addr::of(&raw const value);
        // SAFETY: points to the value above, whose provenance `of` has exposed.
        assert_eq!(unsafe { *address.ptr::<u32>() }, 7);
        assert_eq!(std::format!("{:?}", Addr::new(255)), "0xff");
    }

    #[test]
    fn spans_are_cut_and_never_turned_around() {
        let all = span(10, 20);
        assert!(all.contains(Addr::new(10)) && !all.contains(Addr::new(20)) && !all.contains(Addr::new(9)));
        assert_eq!(all.intersect(span(5, 12)), span(10, 12));
        assert!(all.intersect(span(20, 30)).is_empty() && all.intersect(span(0, 5)).is_empty());
        assert_eq!(all.split_at(3), [span(10, 13), span(13, 20)]);
        assert_eq!(all.split_at(30), [all, span(20, 20)]);
        assert_eq!((all.before(Addr::new(15)), all.from(Addr::new(15))), (span(10, 15), span(15, 20)));
        assert!(all.before(Addr::new(3)).is_empty() && all.from(Addr::new(30)).is_empty());
        assert_eq!((span(20, 10).bytes, span(20, 10).non_empty()), (0, None));
    }

    #[test]
    fn spans_are_counted_and_walked_in_pages() {
        let some = span(PAGE + 1, 4 * PAGE - 1);
        assert_eq!((some.whole(PAGE), some.touched(PAGE)), (span(2 * PAGE, 3 * PAGE), span(PAGE, 4 * PAGE)));
        assert!(span(PAGE + 1, 2 * PAGE - 1).whole(PAGE).is_empty());
        let whole = some.touched(PAGE);
        assert_eq!(whole.page_count(), PageCount::new(3));
        assert_eq!(PageCount::new(3).bytes(), whole.bytes);
        assert!(whole.pages().eq([1, 2, 3].map(|page| Addr::new(page * PAGE))));
        let pieces: Vec<Span> = whole.pieces(2 * PAGE).collect();
        assert_eq!(pieces, [span(PAGE, 3 * PAGE), span(3 * PAGE, 4 * PAGE)]);
        assert_eq!(Span::unit_of(Addr::new(PAGE + 5), PAGE), span(PAGE, 2 * PAGE));
    }
}
