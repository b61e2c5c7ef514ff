//! The thread that answers page faults.
//!
//! It waits for the kernel to tell of faults, takes the lock, and answers all that were reported at once.
//! What the next ones will need it has given up while the program goes on, if that goes through memory in
//! order; if it jumps about, before the answer, when taking pages away one by one disturbs nobody. It touches
//! no page of an object and none of the pool that could be missing, makes no call that could wait for the
//! program, and uses no thread-local storage.

use crate::exchange;
use crate::inner::{Inner, Request};
use crate::pager::{AT_FAULTS, AT_STORE, AT_THREAD, Pager, phase};
use crate::policy::Policy;
use crate::record::{State, flag};
use crate::stats::Event;
use crate::store::Backing;
use crate::trouble;
use crate::units::{PAGE, PageNo, Place, SlotNo};
use core::sync::atomic::Ordering;
use rustix::io::Errno;
use vellum_sys::fault::{FAULTS_MAX, Fault, Faults, LOST};
use vellum_sys::lock::Held;
use vellum_sys::{clock, thread};

/// How often a page is read before its store is given up.
const READS: u32 = 3;

/// The fault-handling thread of the pager at `argument`.
pub(crate) extern "C" fn answer<B: Backing + Send + 'static>(argument: usize) -> ! {
    // SAFETY: `Pager::launch` passes a pager that lives for ever.
    let pager = unsafe { &*(argument as *const Pager<B>) };
    thread::close_inherited();
    match pager.open() {
        Ok(()) => {
            pager.phase.store(phase::SERVING, Ordering::Release);
            thread::wake_all(&pager.phase);
            pager.answer_faults();
        }
        Err((step, errno)) => {
            pager.failed_at.store(step, Ordering::Relaxed);
            pager.failure.store(errno.raw_os_error(), Ordering::Relaxed);
            pager.phase.store(phase::FAILED, Ordering::Release);
            thread::wake_all(&pager.phase);
        }
    }
    thread::exit()
}

/// Pages without contents are brought by this many, aligned to as many, while most frames are free: most
/// pages near by are used sooner or later. One that is not costs a frame until frames are short, and is then
/// given up unwritten, for it reads as zero.
const AROUND: u32 = 16;

fn has_plenty(inner: &Inner) -> bool {
    inner.pool.free() > inner.frames / 2
}

/// Pages that are brought together, and whose stream to tell.
struct Cluster {
    first: PageNo,
    count: u32,
    stream: usize,
}

impl<B: Backing + Send> Pager<B> {
    /// Opens what the threads need, and starts the others.
    fn open(&'static self) -> Result<(), (u32, Errno)> {
        let faults = Faults::open().map_err(|errno| (AT_FAULTS, errno))?;
        let (pool, pool_bytes) = {
            let inner = self.inner.lock();
            (inner.pool.start(), inner.pool.bytes())
        };
        let base = self.doorbell() - self.span_bytes();
        faults.register(base, self.span_bytes() + PAGE, true).map_err(|errno| (AT_FAULTS, errno))?;
        faults.register(pool, pool_bytes, false).map_err(|errno| (AT_FAULTS, errno))?;
        // SAFETY: nobody looks before the pager serves.
        unsafe { *self.faults.get() = Some(faults) };
        self.store().open().map_err(|errno| (AT_STORE, errno))?;
        self.launch_helpers().map_err(|errno| (AT_THREAD, errno))
    }

    /// Answers faults until it is asked to stop.
    fn answer_faults(&'static self) {
        let mut told = [Fault::default(); FAULTS_MAX];
        loop {
            let count = match self.faults().wait(&mut told) {
                Ok(count) => count,
                Err(errno) => trouble::stop("is not told of page faults any more", errno),
            };
            let told_at = clock::now_ns();
            let mut inner = self.inner.lock();
            // Who waits for its page uses no processor, which would have to be interrupted for each page that
            // is taken away.
            if inner.streams.is_jumping() {
                self.make_ready(&mut inner);
            }
            for fault in &told[..count] {
                if fault.page == self.doorbell() {
                    self.oblige(&mut inner);
                } else {
                    let page = PageNo(((fault.page - inner.base) / PAGE) as u32);
                    inner.waits.begin(told_at);
                    let others_wait = inner.record(page).flags & flag::WANTED != 0;
                    inner = self.serve(inner, page, fault.write);
                    // The first that still waits is seen to by who brings its page.
                    if others_wait || inner.record(page).flags & flag::WANTED == 0 {
                        inner.waits.end(clock::now_ns());
                    }
                }
            }
            if inner.stopping {
                drop(inner);
                thread::wake(&self.work);
                thread::wake(&self.reads);
                return;
            }
            if !inner.streams.is_jumping() {
                self.make_ready(&mut inner);
            }
            if inner.near > 0 && inner.has_grown() {
                thread::wake(&self.work);
            }
            self.show_waits(&inner);
            self.publish();
        }
    }

    /// Does what another thread asks for.
    fn oblige(&self, inner: &mut Inner) {
        match core::mem::replace(&mut inner.request, Request::None) {
            Request::None => {}
            Request::Reserve(slots) => {
                inner.answer = self.store().reserve(slots).map(|()| 0);
                if inner.answer.is_ok() && slots > inner.reserved {
                    inner.free_slots.insert(inner.reserved, slots - inner.reserved);
                    inner.reserved = slots;
                }
            }
            Request::PassOn(from, to, count) => inner.answer = Ok(self.pass_on(inner, from, to, count)),
            Request::Follow => {
                self.lead(inner.change);
                inner.answer = Ok(0);
            }
            Request::Stop => {
                inner.stopping = true;
                inner.answer = Ok(0);
            }
        }
        if let Err(errno) = self.faults().zero(self.doorbell()) {
            trouble::stop("cannot answer a request", errno);
        }
    }

    /// Makes `page` accessible. The lock may be given back and taken again meanwhile.
    pub(crate) fn serve<'a>(
        &'a self,
        mut inner: Held<'a, Inner>,
        page: PageNo,
        write: bool,
    ) -> Held<'a, Inner> {
        loop {
            if inner.pool.free() == 0 {
                inner = self.wait_for_frame(inner);
            }
            let is_needed = !self.marks().has(page.0);
            match inner.record(page).state() {
                State::Mapped => {
                    // Somebody else's fault has brought it. What the program drops is not recorded as mapped
                    // (`Pager::renew`), so that a hole here is a page that is lost.
                    let address = inner.address(page);
                    if self.faults().is_hole(address) == Ok(true) {
                        trouble::lost(address);
                    }
                    self.faults().wake(address, PAGE);
                }
                State::Held => {
                    self.bring_back(&mut inner, page);
                    self.go_on(&mut inner, page);
                }
                State::Writing => inner.record(page).flags |= flag::WANTED,
                State::Arriving => {}
                State::Reading => {
                    let record = inner.record(page);
                    if record.flags & flag::WANTED == 0 {
                        record.flags |= flag::WANTED;
                        self.stats.count(if write { Event::WriteRead } else { Event::ReadRead }, 1);
                    }
                }
                State::Stored if is_needed && inner.tier.has(page) => {
                    if !self.unpack(&mut inner, page, write) {
                        continue;
                    }
                }
                State::Stored if is_needed => {
                    if !self.read(&mut inner, page, write) {
                        continue;
                    }
                }
                State::Fresh if is_needed => {
                    if !self.fill(&mut inner, page, write) {
                        continue;
                    }
                }
                State::Fresh | State::Vague | State::Stored => {
                    if !self.give_any(&mut inner, page, write) {
                        continue;
                    }
                }
            }
            return inner;
        }
    }

    /// Maps the frame of a held page again.
    pub(crate) fn bring_back(&self, inner: &mut Inner, page: PageNo) {
        let place = inner.record(page).place();
        self.bring(inner, place, page, 1);
        if core::mem::take(&mut inner.record(page).flags) & flag::PROBE != 0 {
            inner.neighbours.learn(true);
        }
        inner.record(page).set(State::Mapped);
        let now = self.now(&inner.policy);
        let Inner { policy, links, .. } = inner;
        policy.referenced(links, page, now);
        self.stats.count(Event::Found, 1);
    }

    /// Maps `count` frames from `place` on at `page` and its neighbours.
    fn bring(&self, inner: &mut Inner, place: Place, page: PageNo, count: u32) {
        self.carry(inner.pool.address(place), inner.address(page), count);
        inner.pool.put_empty(place, count);
    }

    /// Has `count` frames, present and of the pool, from `from` on, change their places for `to`, where pages
    /// are missing to which they belong.
    pub(crate) fn carry(&self, from: usize, to: usize, count: u32) {
        // SAFETY: as said; nobody but the caller deals with the frames, or with the pages.
        let brought = unsafe { exchange::bring(self.faults(), from, to, count as usize * PAGE) };
        if brought == Err(LOST) {
            trouble::lost(to);
        }
        if let Err(errno) = brought {
            trouble::stop(
                "cannot map a page, as the kernel has no memory for it or its range is somebody else's",
                errno,
            );
        }
    }

    /// As [`Pager::bring`], for pages that had no frame.
    pub(crate) fn deliver(&self, inner: &mut Inner, place: Place, page: PageNo, count: u32) {
        self.bring(inner, place, page, count);
        self.book_arrived(inner, page, count);
    }

    /// Books `count` pages from `page` on as mapped, which had no frames.
    pub(crate) fn book_arrived(&self, inner: &mut Inner, page: PageNo, count: u32) {
        let now = self.now(&inner.policy);
        let Inner { policy, links, records, stored, .. } = inner;
        for page in (page.0..page.0 + count).map(PageNo) {
            *stored -= u32::from(records[page.index()].state() == State::Stored);
            records[page.index()].set(State::Mapped);
            policy.arrived(links, page, now);
        }
        self.stats.count(Event::Ahead, count - 1);
    }

    /// How many pages from `first` on, at most `wanted`, are `page`, which somebody waits for, or needed and
    /// `alike`.
    pub(crate) fn run(
        &self,
        inner: &Inner,
        first: PageNo,
        page: PageNo,
        wanted: u32,
        alike: impl Fn(&Inner, PageNo) -> bool,
    ) -> u32 {
        let is_next = |count: &u32| {
            let next = first.plus(*count);
            next == page
                || next.index() < inner.records.len() && !self.marks().has(next.0) && alike(inner, next)
        };
        1 + (1..wanted.max(1)).take_while(is_next).count() as u32
    }

    /// Which pages without contents to bring for a fault on `page`, that are `alike`.
    fn around(&self, inner: &mut Inner, page: PageNo, alike: impl Fn(&Inner, PageNo) -> bool) -> Cluster {
        let most = inner.chunk.min(inner.pool.free() / 2).max(1);
        let (wanted, stream) = inner.streams.ask(page, most);
        let mut first = page;
        let mut wanted = wanted;
        if wanted < AROUND.min(most) && has_plenty(inner) {
            let start = page.0 / AROUND * AROUND;
            while first.0 > start
                && page.0 - first.0 + 1 < most
                && !self.marks().has(first.0 - 1)
                && alike(inner, PageNo(first.0 - 1))
            {
                first.0 -= 1;
            }
            wanted = (start + AROUND - first.0).min(most);
        }
        Cluster { first, count: self.run(inner, first, page, wanted, alike), stream }
    }

    /// Brings a page that reads as zero. False if no frame was free.
    fn fill(&self, inner: &mut Inner, page: PageNo, write: bool) -> bool {
        let is_fresh = |inner: &Inner, page: PageNo| inner.records[page.index()].state() == State::Fresh;
        let cluster = self.around(inner, page, is_fresh);
        let event = if write { Event::WriteZeroFilled } else { Event::ReadZeroFilled };
        self.bring_blank(inner, page, cluster, true, event)
    }

    /// Brings a page whose contents nobody needs: any frame will do. False if none was free.
    fn give_any(&self, inner: &mut Inner, page: PageNo, write: bool) -> bool {
        let is_vague = |inner: &Inner, page: PageNo| inner.records[page.index()].state() == State::Vague;
        let cluster = self.around(inner, page, is_vague);
        let event = if write { Event::WriteNotRead } else { Event::ReadNotRead };
        self.bring_blank(inner, page, cluster, false, event)
    }

    /// Brings a cluster of pages that have no contents, zeros if `zero`, for a fault on `page`, which is one
    /// of them.
    fn bring_blank(
        &self,
        inner: &mut Inner,
        page: PageNo,
        cluster: Cluster,
        zero: bool,
        event: Event,
    ) -> bool {
        let Some((place, count)) = inner.take_frames(cluster.count, zero) else { return false };
        // With fewer frames than were wanted the page must be among those that come.
        let first = PageNo(cluster.first.0.max((page.0 + 1).saturating_sub(count)));
        for page in first.0..first.0 + count {
            inner.drop_copies(PageNo(page));
        }
        self.deliver(inner, place, first, count);
        inner.streams.tell(cluster.stream, first, count);
        self.stats.count(event, 1);
        true
    }

    /// Which pages to bring from the store for a fault on `page`, which lies there at `slot`: those behind it
    /// if a stream goes on, neighbours on both sides if that pays, as far as they lie beside it there too.
    fn stored_around(&self, inner: &mut Inner, page: PageNo, slot: SlotNo) -> (Cluster, bool) {
        // In numbers that wrap, neighbours before the page have slots before its slot.
        let alike = |inner: &Inner, other: PageNo| {
            let record = &inner.records[other.index()];
            let beside = slot.0.wrapping_add(other.0.wrapping_sub(page.0));
            record.state() == State::Stored && record.slot() == Some(SlotNo(beside))
        };
        let most = inner.chunk.min(inner.pool.free() / 2).max(1);
        let (wanted, stream) = inner.streams.ask(page, most);
        if wanted > 1 {
            let count = self.run(inner, page, page, wanted, alike);
            return (Cluster { first: page, count, stream }, false);
        }
        let window = inner.neighbours.window().min(most);
        let start = page.0 / window * window;
        let mut first = page;
        while first.0 > start && !self.marks().has(first.0 - 1) && alike(inner, PageNo(first.0 - 1)) {
            first.0 -= 1;
        }
        let count = self.run(inner, first, page, start + window - first.0, alike);
        (Cluster { first, count, stream }, count > 1)
    }

    /// Has `page`, which has just been brought to `place`, held rather than mapped, to see whether anybody
    /// asks for it.
    fn leave_probe(&self, inner: &mut Inner, place: Place, page: PageNo) {
        inner.stored -= 1;
        inner.record(page).hold(place);
        inner.record(page).flags = flag::PROBE;
        let Inner { policy, links, .. } = inner;
        policy.spared(links, page);
        self.stats.count(Event::Ahead, 1);
    }

    /// Reads `count` pages from `first` on, which lie in the store from `slot` on, into free frames at
    /// `place`. Whether all are as they went.
    fn fetch(
        &self,
        inner: &Inner,
        place: Place,
        first: PageNo,
        slot: SlotNo,
        count: u32,
    ) -> Result<bool, Errno> {
        let address = inner.pool.address(place);
        let base = address as *mut libc::c_void;
        let mut parts = [libc::iovec { iov_base: base, iov_len: count as usize * PAGE }];
        // SAFETY: the frames are free, so nobody else's.
        unsafe { self.store().read(slot, &mut parts)? };
        let expected = &inner.sums[first.index()..first.index() + count as usize];
        Ok(expected.iter().enumerate().all(|(index, &expected)| {
            // SAFETY: the frame was just read into and is nobody else's.
            let sum = unsafe { inner.key.sum((address + index * PAGE) as *const u8) };
            sum == expected
        }))
    }

    /// Brings a page from the store, and others with it. False if no frame was free.
    fn read(&self, inner: &mut Inner, page: PageNo, write: bool) -> bool {
        let Some(slot) = inner.record(page).slot() else {
            trouble::stop("has lost a page", Errno::IO);
        };
        let (Cluster { first, count: wanted, stream }, has_probe) = self.stored_around(inner, page, slot);
        let Some((place, mut count)) = inner.take_frames(wanted, false) else { return false };
        // With fewer frames than were wanted the page must be among those that come.
        let mut first = PageNo(first.0.max((page.0 + 1).saturating_sub(count)));
        let mut tries = 0;
        loop {
            let is_whole = self.fetch(inner, place, first, SlotNo(slot.0 - (page.0 - first.0)), count);
            tries += 1;
            match is_whole {
                Ok(true) => break,
                Ok(false) if count == 1 => trouble::corrupt(inner.address(page), slot.0),
                Err(errno) if tries == READS => {
                    trouble::stop("cannot read a page back from its store", errno)
                }
                // What was not asked for may be what cannot be read, or is not what it was: that is
                // complained of when it is asked for.
                _ => {
                    if count > 1 {
                        inner.pool.put_free(Place(place.0 + 1), count - 1);
                    }
                    (first, count) = (page, 1);
                }
            }
        }
        let frames = inner.frames;
        for page in (first.0..first.0 + count).map(PageNo) {
            let stamp = inner.record(page).stamp();
            inner.waits.read(stamp, frames);
            inner.record(page).set_lone(count == 1);
        }
        inner.streams.tell(stream, first, count);
        let goes_on = !has_probe && count == wanted && wanted > 1;
        let (mut place, mut left) = (place, count);
        if has_probe && count > 1 {
            let last = first.plus(count - 1);
            left -= 1;
            if last == page {
                self.leave_probe(inner, place, first);
                (place, first) = (Place(place.0 + 1), first.plus(1));
            } else {
                self.leave_probe(inner, Place(place.0 + left), last);
            }
        }
        self.deliver(inner, place, first, left);
        if goes_on {
            self.look_ahead(inner, stream);
        }
        self.stats.count(if write { Event::WriteRead } else { Event::ReadRead }, 1);
        true
    }
}
