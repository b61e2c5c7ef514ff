//! The threads that read ahead of a program that goes through memory in order.
//!
//! ```text
//!   program ──▶ │ a cluster it was given │ next one, there │ being read      │ being read      │
//!                                        ▲ marker          ▲ marker          ▲ marker: page unmapped
//! ```
//!
//! A fault that goes on with a stream brings a cluster of pages and has the next one read meanwhile. When
//! that has come all of it is mapped but its first page, the *marker*: the fault on it, which needs no
//! transfer, says that the program has arrived, and has more read: two clusters for each that is reached,
//! until [`AHEAD`] are on their way or waiting. So the device is busy while what came before is checked and
//! mapped and the program computes, and a stream that ends has brought little in vain.
//!
//! A page that is being read is nobody's but the thread's that reads it: faults on it wait, and objects that
//! end meanwhile leave word (as with pages that are being written). If reading fails, or a page is not what
//! it was, its pages are as they were before, and a real access to one finds out in the ordinary way.

use crate::inner::Inner;
use crate::pager::{A_WHILE_NS, Pager};
use crate::policy::Policy;
use crate::record::{State, flag};
use crate::stats::Event;
use crate::store::Backing;
use crate::units::{AHEAD, BATCH, PAGE, PageNo, Place, SlotNo};
use core::sync::atomic::Ordering;
use vellum_sys::lock::Held;
use vellum_sys::{clock, thread};

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

/// Clusters that each marker has read, so that the way ahead of a stream grows by one each time.
const EACH: usize = 2;

/// The clusters that are to be read, and those that are being.
#[derive(Debug)]
pub(crate) struct Clusters {
    waiting: [Option<Ahead>; AHEAD],
    in_all: usize,
}

impl Clusters {
    pub(crate) const fn new() -> Clusters {
        Clusters { waiting: [None; AHEAD], in_all: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_all == 0
    }

    fn is_full(&self) -> bool {
        self.in_all == AHEAD
    }

    /// Adds a cluster; there is room.
    fn push(&mut self, ahead: Ahead) {
        if let Some(place) = self.waiting.iter_mut().find(|place| place.is_none()) {
            *place = Some(ahead);
            self.in_all += 1;
        }
    }

    /// A cluster that nobody reads yet. It counts until [`Clusters::done`].
    fn take(&mut self) -> Option<Ahead> {
        self.waiting.iter_mut().find_map(Option::take)
    }

    fn done(&mut self) {
        self.in_all -= 1;
    }
}

/// A reading thread of the pager at `argument`.
pub(crate) extern "C" fn read<B: Backing + Send + 'static>(argument: usize) -> ! {
    // SAFETY: `Pager::launch_helpers` passes a pager that lives for ever.
    let pager = unsafe { &*(argument as *const Pager<B>) };
    let this = pager.own_number();
    let mut inner = pager.inner.lock();
    loop {
        if pager.is_behind(this) {
            pager.obey(this, inner.change);
        }
        if let Some(ahead) = inner.clusters.take() {
            inner = pager.read_cluster(inner, ahead);
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
    /// Has more of what lies ahead of stream `stream` read, if it lies together in the store and there are
    /// frames for it.
    pub(crate) fn look_ahead(&self, inner: &mut Inner, stream: usize) {
        for _ in 0..EACH {
            let next = inner.streams.wants(stream).filter(|_| !inner.clusters.is_full());
            if !next.is_some_and(|next| self.order(inner, next, stream)) {
                return;
            }
        }
    }

    /// Has the cluster at `page` read; false if that is not to be.
    fn order(&self, inner: &mut Inner, page: PageNo, stream: usize) -> bool {
        let most = inner.chunk.min(inner.pool.free() / 2);
        if most < FEWEST || page.index() >= inner.records.len() {
            return false;
        }
        let Some(slot) = inner.record(page).slot() else { return false };
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
            return false;
        }
        let Some((place, count)) = inner.take_frames(wanted, false) else { return false };
        if count < FEWEST {
            inner.pool.put_free(place, count);
            return false;
        }
        for index in 0..count {
            let (stamp, frames) = (inner.record(page.plus(index)).stamp(), inner.frames);
            inner.waits.read(stamp, frames);
            let record = inner.record(page.plus(index));
            record.set_lone(false);
            record.hold(Place(place.0 + index));
            record.set(State::Reading);
        }
        inner.stored -= count;
        inner.streams.mark(stream, page, count);
        inner.clusters.push(Ahead { page, count, place, slot });
        thread::wake_one(&self.reads);
        true
    }

    fn read_cluster(&'static self, inner: Held<'static, Inner>, ahead: Ahead) -> Held<'static, Inner> {
        let mut sums = [[0; 2]; BATCH];
        let sums = &mut sums[..ahead.count as usize];
        let first = ahead.page.index();
        sums.copy_from_slice(&inner.sums[first..first + sums.len()]);
        let (start, key) = (inner.pool.address(ahead.place), inner.key);
        drop(inner);
        let mut parts =
            [libc::iovec { iov_base: start as *mut libc::c_void, iov_len: ahead.count as usize * PAGE }];
        // SAFETY: the frames are those of pages that are being read, so this thread's.
        let is_read = unsafe { self.store().read(ahead.slot, &mut parts) }.is_ok();
        // SAFETY: as above.
        let sum = |index| unsafe { key.sum((start + index * PAGE) as *const u8) };
        let is_sound = is_read && sums.iter().enumerate().all(|(index, &expected)| sum(index) == expected);
        self.arrive(self.inner.lock(), ahead, is_sound)
    }

    /// Gives the pages of a cluster to the program.
    fn arrive(
        &'static self,
        mut inner: Held<'static, Inner>,
        ahead: Ahead,
        sound: bool,
    ) -> Held<'static, Inner> {
        let pages = (ahead.page.0..ahead.page.0 + ahead.count).map(PageNo);
        let (mut some_wanted, mut some_dropped) = (false, false);
        for page in pages.clone() {
            let flags = inner.record(page).flags;
            if flags & flag::WANTED != 0 {
                some_wanted = true;
                inner.waits.end(clock::now_ns());
            }
            some_dropped |= flags & flag::DROPPED != 0;
        }
        if !sound || some_dropped {
            inner.clusters.done();
            for page in pages {
                inner = self.hand_back(inner, page);
            }
            return inner;
        }
        let marker = u32::from(!some_wanted);
        if marker == 1 {
            inner.record(ahead.page).set(State::Held);
            let Inner { policy, links, .. } = &mut *inner;
            policy.spared(links, ahead.page);
        }
        let (first, place) = (ahead.page.plus(marker), Place(ahead.place.0 + marker));
        let count = ahead.count - marker;
        for page in (first.0..first.0 + count).map(PageNo) {
            inner.record(page).set(State::Arriving);
            inner.record(page).flags = 0;
        }
        // The kernel is slow, and others may go on meanwhile.
        let (from, to) = (inner.pool.address(place), inner.address(first));
        drop(inner);
        self.carry(from, to, count);
        inner = self.inner.lock();
        inner.clusters.done();
        inner.pool.put_empty(place, count);
        self.book_arrived(&mut inner, first, count);
        // The program may have dropped a page between the two, and wait for it since: its fault was reported
        // while the page was arriving.
        self.faults().wake(to, count as usize * PAGE);
        for page in (first.0..first.0 + count).map(PageNo) {
            if core::mem::take(&mut inner.record(page).flags) & flag::DROPPED != 0 {
                inner.forget(page);
            }
        }
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
            inner.waits.end(clock::now_ns());
            inner = self.serve(inner, page, false);
        }
        inner
    }

    /// If `page` is the marker of a stream, has what comes behind its cluster read.
    pub(crate) fn go_on(&self, inner: &mut Inner, page: PageNo) {
        if let Some(stream) = inner.streams.passed(page) {
            self.look_ahead(inner, stream);
        }
    }
}
