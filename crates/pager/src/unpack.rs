//! Faults on pages that are compressed: no transfer, and no wait for anybody.
//!
//! A program that goes through such pages in order is given more of them each time, as one that goes through
//! the store is; they are not read ahead of it, as they are there.

use crate::inner::Inner;
use crate::pager::Pager;
use crate::record::State;
use crate::stats::Event;
use crate::store::Backing;
use crate::trouble;
use crate::units::{PageNo, Place};

/// Pages brought in one go, at most: others wait for the lock meanwhile.
const TOGETHER: u32 = 32;

impl Inner {
    /// Puts the contents of a page that has a compressed copy at `to`. Whether they are what it left with.
    ///
    /// # Safety
    /// A page of memory at `to` can be written, and is nobody else's.
    pub(crate) unsafe fn unpack(&self, page: PageNo, to: usize) -> bool {
        // SAFETY: by this function's condition.
        unsafe { self.tier.unpack(page, to) && self.key.sum(to as *const u8) == self.sums[page.index()] }
    }
}

impl<B: Backing + Send> Pager<B> {
    /// Brings a page that has a compressed copy, and those behind it if a stream goes on. False if no frame
    /// was free.
    pub(crate) fn unpack(&self, inner: &mut Inner, page: PageNo, write: bool) -> bool {
        let most = inner.chunk.min(inner.pool.free() / 2).clamp(1, TOGETHER);
        let (wanted, stream) = inner.streams.ask(page, most);
        let is_packed = |inner: &Inner, other: PageNo| {
            inner.records[other.index()].state() == State::Stored && inner.tier.has(other)
        };
        let wanted = self.run(inner, page, page, wanted, is_packed);
        let Some((place, count)) = inner.take_frames(wanted, false) else { return false };
        for index in 0..count {
            let (page, place) = (page.plus(index), Place(place.0 + index));
            // SAFETY: a free frame, taken a moment ago.
            if !unsafe { inner.unpack(page, inner.pool.address(place)) } {
                trouble::spoilt(inner.address(page));
            }
            let (stamp, frames) = (inner.record(page).stamp(), inner.frames);
            inner.waits.read(stamp, frames);
            inner.record(page).set_lone(count == 1);
        }
        inner.streams.tell(stream, page, count);
        self.deliver(inner, place, page, count);
        inner.tier.hit();
        self.stats.count(if write { Event::WriteUnpacked } else { Event::ReadUnpacked }, 1);
        true
    }
}
