//! The thread that gives pages up: finds out whether the store has them already, and compresses or writes
//! them if it has not.
//!
//! Faults are answered meanwhile: a page being given up has left its address, so nobody can change it, and
//! somebody who asks for it is given it when that is done. Pages go by batches, sorted. The written pages of
//! a batch go to new neighbouring slots where such are found, so that it is one call and reads back as one;
//! otherwise each page to its own.
//!
//! A write that fails loses nothing: its pages stay in memory and are tried again. Only when no frame is to
//! be had for it any more is the program stopped.

use crate::inner::Inner;
use crate::pager::follow::WRITES;
use crate::pager::{A_WHILE_NS, Pager};
use crate::policy::Policy;
use crate::record::{State, flag};
use crate::room::Few;
use crate::share::Share;
use crate::stats::Event;
use crate::store::Backing;
use crate::trouble;
use crate::units::{BATCH, PAGE, PageNo, SlotNo};
use core::sync::atomic::Ordering;
use rustix::io::Errno;
use vellum_sys::lock::Held;
use vellum_sys::{clock, thread};

/// Batches that may wait.
const BATCHES: usize = 4;
/// Writes that may fail in a row, with a pause after each, before nothing more is hoped for.
const FAILURES: u32 = 50;
/// The pause.
const PAUSE_NS: u64 = 10_000_000;
/// How often it is looked what memory there is that is not paged: while that changes, and at least.
const BESIDE_NS: u64 = 5_000_000;
const BESIDE_MOST_NS: u64 = 8 * BESIDE_NS;
/// How often a policy by time is asked whether pages are to be looked at.
const TICK_NS: u64 = 10_000_000;

/// Pages that wait to be given up, or are.
#[derive(Debug)]
pub(crate) struct Queue {
    pages: [[PageNo; BATCH]; BATCHES],
    lens: [usize; BATCHES],
    /// The batch that is next, or being given up, and how many are to be.
    first: usize,
    full: usize,
    failures: u32,
}

impl Queue {
    pub(crate) const fn new() -> Queue {
        Queue { pages: [[PageNo(0); BATCH]; BATCHES], lens: [0; BATCHES], first: 0, full: 0, failures: 0 }
    }

    fn open(&self) -> usize {
        (self.first + self.full) % BATCHES
    }

    /// How many pages there is room for.
    pub(crate) fn room(&self) -> usize {
        if self.full == BATCHES { 0 } else { BATCH - self.lens[self.open()] }
    }

    /// How many pages wait or are being written.
    pub(crate) fn pending(&self) -> u32 {
        self.lens.iter().sum::<usize>() as u32
    }

    /// Adds a page to the batch that is open; there is room.
    pub(crate) fn push(&mut self, page: PageNo) {
        let open = self.open();
        self.pages[open][self.lens[open]] = page;
        self.lens[open] += 1;
        if self.lens[open] == BATCH {
            self.full += 1;
        }
    }

    /// Closes the open batch, if there is anything in it. Returns whether there is something to write.
    fn close(&mut self) -> bool {
        if self.full < BATCHES && self.lens[self.open()] > 0 {
            self.full += 1;
        }
        self.full > 0
    }

    fn next(&self) -> Option<&[PageNo]> {
        (self.full > 0).then(|| &self.pages[self.first][..self.lens[self.first]])
    }

    fn done(&mut self) {
        self.lens[self.first] = 0;
        self.first = (self.first + 1) % BATCHES;
        self.full -= 1;
    }
}

/// The writing thread of the pager at `argument`.
pub(crate) extern "C" fn write<B: Backing + Send + 'static>(argument: usize) -> ! {
    // SAFETY: `Pager::launch_helpers` passes a pager that lives for ever.
    let pager = unsafe { &*(argument as *const Pager<B>) };
    pager.write_batches();
    thread::exit()
}

/// Where the pages of a batch go.
struct Targets {
    slots: [SlotNo; BATCH],
    /// Whether they are new, so that the old ones still hold what they held if writing fails.
    are_new: bool,
}

/// What there was to do about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing: the store has it as it is.
    Unchanged,
    /// Nothing: it has been compressed.
    Packed,
    /// Nothing: it is all zeros.
    Zeros,
    Written,
    /// To write it, which was not possible.
    Failed,
}

impl<B: Backing + Send> Pager<B> {
    /// Has what is in the queue given up.
    pub(crate) fn submit(&self, inner: &mut Inner) {
        if inner.queue.close() {
            thread::wake(&self.work);
        }
    }

    fn write_batches(&'static self) {
        let mut looked = clock::now_ns();
        let (mut looked_beside, mut rest) = (looked, BESIDE_NS);
        let mut inner = self.inner.lock();
        loop {
            let now = clock::now_ns();
            if now.saturating_sub(looked) >= A_WHILE_NS {
                looked = now;
                inner = self.follow_limits(inner);
            }
            let is_due = inner.has_grown() || now.saturating_sub(looked_beside) >= BESIDE_NS;
            if inner.near > 0 && is_due {
                looked_beside = now;
                let before = inner.beside;
                inner = self.follow_rest(inner);
                // A process in which nothing changes is looked at less often.
                rest = match inner.beside.is_at_rest(before) {
                    true => (2 * rest).min(BESIDE_MOST_NS),
                    false => BESIDE_NS,
                };
            }
            if inner.surplus() > 0 {
                self.shrink(&mut inner);
            }
            let mut is_starving = false;
            if inner.tier.has_excess() {
                (inner, is_starving) = self.starve_tier(inner);
            }
            if self.is_behind(WRITES) {
                self.obey(WRITES, inner.change);
            }
            if let Some(pages) = inner.queue.next() {
                let mut few = Few::none();
                pages.iter().for_each(|&page| few.push(page));
                inner = self.give_up_batch(inner, few);
                continue;
            }
            if inner.stopping {
                return;
            }
            if is_starving {
                continue;
            }
            let now = self.now(&inner.policy);
            if inner.policy.is_due(&inner.links, now) {
                let chunk = inner.chunk;
                self.take_away(&mut inner, chunk);
            }
            let ns = if inner.policy.goes_by_time() { TICK_NS } else { A_WHILE_NS };
            let ns = if inner.near > 0 { ns.min(rest) } else { ns };
            let seen = self.work.load(Ordering::Acquire);
            drop(inner);
            thread::wait(&self.work, seen, ns);
            inner = self.inner.lock();
        }
    }

    /// Looks how many frames the limits on this process allow now, and has as many.
    fn follow_limits<'a>(&'a self, inner: Held<'a, Inner>) -> Held<'a, Inner> {
        let (asked, resident) = (inner.asked, inner.resident());
        // Files are read, which may take a while.
        drop(inner);
        let allowed = Share::discover().frames(asked, resident);
        let mut inner = self.inner.lock();
        inner.share = allowed;
        inner.allow();
        self.shrink(&mut inner);
        inner
    }

    /// Looks how many frames the memory that is not paged leaves, and has as many.
    fn follow_rest<'a>(&'a self, mut inner: Held<'a, Inner>) -> Held<'a, Inner> {
        let (before, resident) = (inner.beside, inner.resident());
        inner.seen_resident = resident;
        drop(inner);
        let beside = before.look(resident);
        let mut inner = self.inner.lock();
        inner.beside = beside;
        inner.allow();
        self.shrink(&mut inner);
        inner
    }

    /// Has as many frames as are allowed, as far as they are free; and more given up if they are not.
    fn shrink(&self, inner: &mut Inner) {
        if inner.follow_allowance() {
            self.show_frames(inner.all_frames());
        }
        if inner.surplus() > 0 {
            self.make_ready(inner);
        }
    }

    /// Gives the pages of a batch up.
    fn give_up_batch(&'static self, mut inner: Held<'static, Inner>, mut few: Few) -> Held<'static, Inner> {
        few.sort();
        let pages = few.as_slice();
        let mut frames = [0; BATCH];
        for (frame, &page) in frames.iter_mut().zip(pages) {
            let place = inner.record(page).place();
            *frame = inner.pool.address(place);
        }
        let key = inner.key;
        drop(inner);
        let mut sums = [[0; 2]; BATCH];
        for (sum, &frame) in sums.iter_mut().zip(&frames[..pages.len()]) {
            // SAFETY: the frame is in the pool and holds a page that is being given up, which nobody can
            // reach there.
            *sum = unsafe { key.sum(frame as *const u8) };
        }
        inner = self.inner.lock();
        let (mut changed, mut offered) = (Few::none(), Few::none());
        for (&page, &sum) in pages.iter().zip(&sums) {
            let is_packed = inner.tier.has(page);
            let has_copy = is_packed || inner.record(page).slot().is_some();
            if has_copy && inner.sums[page.index()] == sum {
                inner.tier.renew(page);
                // A page that was asked for by itself may be asked for again, and is better found in memory.
                if !is_packed && inner.record(page).is_lone() && inner.tier.wants() {
                    offered.push(page);
                } else {
                    inner = self.conclude(inner, page, Fate::Unchanged);
                }
            } else if sum == inner.zero_sum {
                inner = self.conclude(inner, page, Fate::Zeros);
            } else {
                inner.sums[page.index()] = sum;
                inner.tier.remove(page);
                if inner.tier.wants() {
                    // What the store has of it is of no use, whatever becomes of the page.
                    inner.drop_copies(page);
                    offered.push(page);
                } else {
                    changed.push(page);
                }
            }
        }
        if !offered.as_slice().is_empty() {
            let refused;
            (inner, refused) = self.pack(inner, offered.as_slice());
            for &page in refused.as_slice() {
                if inner.record(page).slot().is_some() {
                    inner = self.conclude(inner, page, Fate::Unchanged);
                } else {
                    changed.push(page);
                }
            }
            changed.sort();
        }
        if !changed.as_slice().is_empty() {
            inner = self.write_batch(inner, changed.as_slice());
        }
        inner.queue.done();
        self.publish();
        thread::wake(&self.written);
        inner
    }

    /// Writes pages, sorted.
    fn write_batch(&'static self, mut inner: Held<'static, Inner>, pages: &[PageNo]) -> Held<'static, Inner> {
        let targets = choose(&mut inner, pages);
        let mut parts = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: PAGE }; BATCH];
        for (part, &page) in parts.iter_mut().zip(pages) {
            let place = inner.record(page).place();
            part.iov_base = inner.pool.address(place) as *mut libc::c_void;
        }
        drop(inner);
        let mut results = [Ok(()); BATCH];
        let slots = &targets.slots[..pages.len()];
        // SAFETY: the frames are in the pool, and stay there while their pages are recorded as being written.
        unsafe { self.write_runs(slots, &mut parts[..pages.len()], &mut results) };
        inner = self.inner.lock();
        let mut failed = None;
        for (index, &page) in pages.iter().enumerate() {
            if let Err(errno) = results[index] {
                failed = Some(errno);
            }
            inner = self.finish(inner, page, targets.slots[index], targets.are_new, results[index].is_ok());
        }
        self.after(inner, failed)
    }

    /// Writes a part to each of `slots`, those to neighbouring ones in one call; says how each went.
    ///
    /// # Safety
    /// The parts can be read.
    pub(crate) unsafe fn write_runs(
        &self,
        slots: &[SlotNo],
        parts: &mut [libc::iovec],
        results: &mut [Result<(), Errno>],
    ) {
        let mut at = 0;
        while at < slots.len() {
            let is_next = |index: &usize| slots[*index].0 as usize == slots[at].0 as usize + index - at;
            let run = (at..slots.len()).take_while(is_next).count();
            // SAFETY: by this function's condition.
            let result = unsafe { self.store().write(slots[at], &mut parts[at..at + run]) };
            results[at..at + run].fill(result);
            at += run;
        }
    }

    /// Gives the frame of a page up that has been compressed.
    pub(crate) fn conclude_packed<'a>(&'a self, inner: Held<'a, Inner>, page: PageNo) -> Held<'a, Inner> {
        self.conclude(inner, page, Fate::Packed)
    }

    /// Books what became of one page that was to be written to `slot`.
    fn finish<'a>(
        &'a self,
        mut inner: Held<'a, Inner>,
        page: PageNo,
        slot: SlotNo,
        is_new: bool,
        is_written: bool,
    ) -> Held<'a, Inner> {
        if is_new && !is_written {
            inner.free_slots.insert(slot.0, 1);
        } else {
            if is_new {
                inner.drop_copies(page);
            }
            inner.record(page).set_slot(Some(slot));
        }
        if !is_written {
            // What its slot holds now is unknown, and its sum is of contents that no slot has.
            inner.drop_copies(page);
        }
        self.conclude(inner, page, if is_written { Fate::Written } else { Fate::Failed })
    }

    /// Gives the frame of a page up, unless somebody wants the page or it has nowhere else to be.
    fn conclude<'a>(&'a self, mut inner: Held<'a, Inner>, page: PageNo, fate: Fate) -> Held<'a, Inner> {
        let flags = core::mem::take(&mut inner.record(page).flags);
        if flags & flag::WANTED != 0 {
            inner.waits.end(clock::now_ns());
        }
        if flags & flag::DROPPED != 0 {
            let left = if flags & flag::RENEWED != 0 { State::Fresh } else { State::Vague };
            inner.release(page, left);
            self.stats.count(Event::Discarded, 1);
            if flags & flag::WANTED != 0 {
                inner = self.serve(inner, page, true);
            }
            return inner;
        }
        match fate {
            Fate::Written => self.stats.count(Event::Written, 1),
            Fate::Packed => self.stats.count(Event::Packed, 1),
            _ => {}
        }
        if fate == Fate::Failed || flags & flag::WANTED != 0 {
            let held = &mut *inner;
            held.record(page).set(State::Held);
            held.policy.spared(&mut held.links, page);
            if flags & flag::WANTED != 0 {
                self.bring_back(held, page);
            }
            return inner;
        }
        if matches!(fate, Fate::Unchanged | Fate::Zeros) {
            self.stats.count(Event::Unchanged, 1);
        }
        inner.release(page, if fate == Fate::Zeros { State::Fresh } else { State::Stored });
        inner
    }

    /// Rests after a failure, and gives up after many.
    pub(crate) fn after<'a>(&'a self, mut inner: Held<'a, Inner>, failed: Option<Errno>) -> Held<'a, Inner> {
        let Some(errno) = failed else {
            inner.queue.failures = 0;
            return inner;
        };
        inner.queue.failures += 1;
        if inner.queue.failures > FAILURES && inner.pool.free() == 0 {
            trouble::stop("cannot write pages to its store", errno);
        }
        drop(inner);
        let seen = self.work.load(Ordering::Acquire);
        thread::wait(&self.work, seen, PAUSE_NS);
        self.inner.lock()
    }
}

/// Slots for `pages`: new neighbours, or where they lie neighbours already, or each where it was or anywhere.
fn choose(inner: &mut Inner, pages: &[PageNo]) -> Targets {
    let mut slots = [SlotNo(0); BATCH];
    let olds = |inner: &mut Inner, index: usize| inner.record(pages[index]).slot();
    let in_place = olds(inner, 0).is_some_and(|first| {
        (0..pages.len()).all(|index| olds(inner, index) == Some(SlotNo(first.0 + index as u32)))
    });
    if !in_place && let Some(run) = inner.free_slots.take_exactly(pages.len() as u32) {
        for (slot, number) in slots.iter_mut().zip(run.start..run.start + run.len) {
            *slot = SlotNo(number);
        }
        return Targets { slots, are_new: true };
    }
    for (index, slot) in slots[..pages.len()].iter_mut().enumerate() {
        *slot = match olds(inner, index).or_else(|| inner.take_slot()) {
            Some(slot) => slot,
            None => trouble::stop("has no room in its store for a page that was promised some", Errno::NOSPC),
        };
    }
    Targets { slots, are_new: false }
}
