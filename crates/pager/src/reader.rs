//! The thread that reads ahead of a program that goes through memory in order.
//!
//! ```text
//!   program ──▶ │ a cluster it was given │ next one, being read │
//!                                        ▲ marker: its first page, left unmapped
//! ```
//!
//! A fault that goes on with a stream brings a cluster of pages and has the next one read meanwhile. When that has come all of it is mapped but its
//! first page, the *marker*: the fault on it, which needs no transfer, says that the program has arrived, and has the cluster after it read. So
//! the device is busy while the program computes, and never more than one cluster ahead of it.
//!
//! What is being read is nobody's but this thread's: faults on it wait, and objects that end meanwhile leave word (as with pages that are being
//! written). If reading fails, or a page is not what it was, its pages are as they were before, and whoever really asks for one finds out
//! in the ordinary way.

use crate::inner::Inner;
use crate::pager::{A_WHILE_NS, Pager};
use crate::policy::Policy;
use crate::record::{State, flag};
use crate::stats::Event;
use crate::store::Backing;
use crate::units::{BATCH, PAGE, PageNo, Place, SlotNo};
use core::sync::atomic::Ordering;
use vellum_sys::lock::Held;
use vellum_sys::thread;

/// The fewest pages worth a second thread's while.
const FEWEST: u32 = 4;

/// A cluster to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    page: PageNo,
    count: u32,
    place: Place,
    slot: SlotNo,
}

/// The reading thread of the pager at `argument`.
pub(crate) extern "C" fn read<B: Backing + Send + 'static>(argument: usize) -> ! {
    // SAFETY: `Pager::launch_helpers` passes a pager that lives for ever.
    let pager = unsafe { &*(argument as *const Pager<B>) };
    let mut inner = pager.inner.lock();
    loop {
        if let Some(ahead) = inner.ahead {
            drop(inner);
            let sound = pager.fetch(ahead);
            inner = pager.arrive(pager.inner.lock(), ahead, sound);
            thread::wake(&pager.written);
        } else if inner.stopping {
            drop(inner);
            thread::exit();
        } else {
            let seen = pager.reads.load(Ordering::Acquire);
            drop(inner);
            thread::wait(&pager.reads, seen, A_WHILE_NS);
            inner = pager.inner.lock();
        }
    }
}

impl<B: Backing + Send> Pager<B> {
    /// Has the cluster at `page` read for stream `stream`, if it lies together in the store and there are frames for it.
    pub(crate) fn look_ahead(&self, inner: &mut Inner, page: PageNo, stream: usize) {
        let most = inner.chunk.min(inner.pool.free() / 2);
        if inner.ahead.is_some() || most < FEWEST || page.index() >= inner.records.len() {
            return;
        }
        let Some(slot) = inner.record(page).slot() else { return };
        let is_next = |inner: &Inner, index: u32| {
            let next = page.plus(index);
            let record = inner.records.get(next.index());
            let is_there = record.is_some_and(|record| {
                record.state() == State::Stored && record.slot() == Some(SlotNo(slot.0 + index))
            });
            is_there && !self.marks().has(next.0)
        };
        let wanted = (0..most).take_while(|&index| is_next(inner, index)).count() as u32;
        if wanted < FEWEST {
            return;
        }
        let Some((place, count)) = inner.take_frames(wanted) else { return };
        if count < FEWEST {
            inner.pool.put_free(place, count);
            return;
        }
        for index in 0..count {
            let record = inner.record(page.plus(index));
            record.hold(Place(place.0 + index));
            record.set(State::Reading);
        }
        inner.streams.mark(stream, page, count);
        inner.ahead = Some(Ahead { page, count, place, slot });
        thread::wake(&self.reads);
    }

    /// Reads a cluster; returns whether every page is what it was when it went.
    fn fetch(&self, ahead: Ahead) -> bool {
        let mut sums = [[0; 2]; BATCH];
        let (start, key) = {
            let inner = self.inner.lock();
            let pages = ahead.page.index()..ahead.page.index() + ahead.count as usize;
            sums[..pages.len()].copy_from_slice(&inner.sums[pages]);
            (inner.pool.address(ahead.place), inner.key)
        };
        let len = ahead.count as usize * PAGE;
        let mut parts = [libc::iovec { iov_base: start as *mut libc::c_void, iov_len: len }];
        // SAFETY: the frames are those of pages that are being read, so this thread's.
        if unsafe { self.store().read(ahead.slot, &mut parts) }.is_err() {
            return false;
        }
        // SAFETY: as above.
        let sum = |index| unsafe { key.sum((start + index * PAGE) as *const u8) };
        sums[..ahead.count as usize].iter().enumerate().all(|(index, &expected)| sum(index) == expected)
    }

    /// Gives the pages of a cluster to the program.
    fn arrive<'a>(&'a self, mut inner: Held<'a, Inner>, ahead: Ahead, sound: bool) -> Held<'a, Inner> {
        inner.ahead = None;
        let pages = (ahead.page.0..ahead.page.0 + ahead.count).map(PageNo);
        let (mut some_wanted, mut some_dropped) = (false, false);
        for page in pages.clone() {
            let flags = inner.record(page).flags;
            some_wanted |= flags & flag::WANTED != 0;
            some_dropped |= flags & flag::DROPPED != 0;
        }
        if !sound || some_dropped {
            for page in pages {
                inner = self.hand_back(inner, page);
            }
            return inner;
        }
        for page in pages {
            inner.record(page).flags = 0;
        }
        let marker = u32::from(!some_wanted);
        if marker == 1 {
            inner.record(ahead.page).set(State::Held);
            let Inner { policy, links, .. } = &mut *inner;
            policy.spared(links, ahead.page);
        }
        let first = ahead.page.plus(marker);
        self.deliver(&mut inner, Place(ahead.place.0 + marker), first, ahead.count - marker);
        self.stats.count(Event::Ahead, 1);
        if some_wanted {
            self.go_on(&mut inner, ahead.page);
        }
        inner
    }

    /// Puts a page that was to be read back to where it was, or to what it has become meanwhile.
    fn hand_back<'a>(&'a self, mut inner: Held<'a, Inner>, page: PageNo) -> Held<'a, Inner> {
        let flags = inner.record(page).flags;
        let left = match flags & (flag::DROPPED | flag::RENEWED) {
            0 => State::Stored,
            flag::DROPPED => State::Vague,
            _ => State::Fresh,
        };
        inner.release(page, left);
        if flags & flag::WANTED != 0 {
            inner = self.serve(inner, page, false);
        }
        inner
    }

    /// If `page` is the marker of a stream, has what comes behind its cluster read.
    pub(crate) fn go_on(&self, inner: &mut Inner, page: PageNo) {
        if let Some((stream, next)) = inner.streams.passed(page) {
            self.look_ahead(inner, next, stream);
        }
    }
}
