//! The writing thread's part in the tier of compressed pages (`tier`): compressing, making room, and writing
//! behind.
//!
//! Pages that leave are compressed outside the lock, a round at a time. Room is made before each round: by
//! another segment, as long as the share allows, for which frames are given up that the round leaves free;
//! then by emptying the oldest. Its pages that are needed are moved, if it is dead parts that take the room,
//! or written to the store, sorted and in large pieces. A write that fails loses nothing: its pages stay
//! compressed, and pages that leave meanwhile go where they go without the tier.

use crate::inner::Inner;
use crate::pager::Pager;
use crate::record::State;
use crate::room::Few;
use crate::stats::Event;
use crate::store::Backing;
use crate::tier::{At, Fate, PIECE, RESERVE, ROUND, Tier};
use crate::trouble;
use crate::units::{PAGE, PageNo, SlotNo};
use rustix::io::Errno;
use vellum_sys::lock::Held;

/// Entries that are being written behind, in order of their pages.
struct Piece {
    entries: [(PageNo, Option<At>); PIECE],
    len: usize,
}

impl Piece {
    const fn none() -> Piece {
        Piece { entries: [(PageNo(u32::MAX), None); PIECE], len: 0 }
    }

    fn push(&mut self, page: PageNo, at: At) {
        self.entries[self.len] = (page, Some(at));
        self.len += 1;
    }

    fn is_full(&self) -> bool {
        self.len == PIECE
    }

    fn each(&self) -> impl Iterator<Item = (PageNo, At)> {
        self.entries[..self.len].iter().filter_map(|&(page, at)| Some((page, at?)))
    }
}

impl<B: Backing + Send> Pager<B> {
    /// Compresses `pages`, which are being given up. Returns those for which that was not to be.
    pub(crate) fn pack(
        &'static self,
        mut inner: Held<'static, Inner>,
        pages: &[PageNo],
    ) -> (Held<'static, Inner>, Few) {
        let mut refused = Few::none();
        let mut rest = pages;
        while !rest.is_empty() {
            inner = self.make_packed_room(inner);
            let Some(bench) = inner.tier.bench().filter(|_| inner.tier.has_room()) else { break };
            let mut frames = [0; ROUND];
            for (frame, &page) in frames.iter_mut().zip(rest) {
                let place = inner.record(page).place();
                *frame = inner.pool.address(place);
            }
            drop(inner);
            // SAFETY: this is the writing thread, which alone uses the bench.
            let bench = unsafe { &mut *bench.as_ptr() };
            // SAFETY: the frames are in the pool and hold pages that are being given up, which nobody can
            // reach there.
            let done = unsafe { bench.pack(&frames[..rest.len().min(ROUND)]) };
            inner = self.inner.lock();
            for (&page, bytes) in rest[..done].iter().zip(bench.packed()) {
                if bytes.is_empty() {
                    inner.tier.refuse();
                    refused.push(page);
                } else if inner.tier.insert(page, bytes) {
                    inner = self.conclude_packed(inner, page);
                } else {
                    refused.push(page);
                }
            }
            inner.settle();
            rest = &rest[done..];
        }
        rest.iter().for_each(|&page| refused.push(page));
        (inner, refused)
    }

    /// Makes room for a round of pages, if there can be any.
    fn make_packed_room(&'static self, mut inner: Held<'static, Inner>) -> Held<'static, Inner> {
        // Each segment that is emptied without gain has been spared once, for what was wanted again.
        let mut left = 2 * inner.tier.frames() + RESERVE;
        while !inner.tier.has_room() && left > 0 {
            left -= 1;
            if inner.feed_tier() {
                continue;
            }
            if inner.tier.may_grow() {
                break;
            }
            let emptied;
            (inner, emptied) = self.empty_oldest(inner, false);
            if !emptied {
                break;
            }
        }
        inner
    }

    /// Has the tier give back memory that it is to have no longer: one segment's. False if that was not
    /// possible.
    pub(crate) fn starve_tier(
        &'static self,
        mut inner: Held<'static, Inner>,
    ) -> (Held<'static, Inner>, bool) {
        if inner.starve_tier() {
            return (inner, true);
        }
        let emptied;
        (inner, emptied) = self.empty_oldest(inner, true);
        let given_back = emptied && inner.starve_tier();
        (inner, given_back)
    }

    /// Empties the oldest segment. False if there is none, or what is needed of it could not be written.
    fn empty_oldest(
        &'static self,
        mut inner: Held<'static, Inner>,
        is_ending: bool,
    ) -> (Held<'static, Inner>, bool) {
        let Some(segment) = inner.tier.oldest(is_ending) else { return (inner, false) };
        loop {
            let mut piece = Piece::none();
            let mut offset = 0;
            while !piece.is_full()
                && let Some((at, page, next)) = inner.tier.next_entry(segment, offset)
            {
                offset = next;
                if self.marks().has(page.0) && inner.record(page).state() == State::Stored {
                    inner.forget(page);
                    continue;
                }
                let (state, has_slot) = (inner.record(page).state(), inner.record(page).slot().is_some());
                match inner.tier.fate(at, state != State::Stored, has_slot, is_ending) {
                    Fate::Drop => inner.tier.remove(page),
                    Fate::Move if inner.tier.relocate(page, at) => {}
                    Fate::Move if state != State::Stored || has_slot => inner.tier.remove(page),
                    Fate::Move | Fate::Write => piece.push(page, at),
                }
            }
            if piece.len == 0 {
                inner.tier.recycle_oldest();
                return (inner, true);
            }
            let written;
            (inner, written) = self.write_behind(inner, piece);
            if !written {
                return (inner, false);
            }
        }
    }

    /// Writes entries to new slots, and drops them. False if that failed.
    fn write_behind(
        &'static self,
        mut inner: Held<'static, Inner>,
        mut piece: Piece,
    ) -> (Held<'static, Inner>, bool) {
        let Some(bench) = inner.tier.bench() else { return (inner, false) };
        piece.entries[..piece.len].sort_unstable_by_key(|&(page, _)| page);
        let mut slots = [SlotNo(0); PIECE];
        if let Some(run) = inner.free_slots.take_exactly(piece.len as u32) {
            for (slot, number) in slots.iter_mut().zip(run.start..run.start + run.len) {
                *slot = SlotNo(number);
            }
        } else {
            for slot in &mut slots[..piece.len] {
                *slot = inner.take_slot().unwrap_or_else(|| {
                    trouble::stop("has no room in its store for a page that was promised some", Errno::NOSPC)
                });
            }
        }
        inner.slots_written_behind = piece.len as u32;
        let mut bytes = [(0, 0); PIECE];
        for (bytes, (_, at)) in bytes.iter_mut().zip(piece.each()) {
            *bytes = inner.tier.bytes(at);
        }
        let base = inner.base;
        drop(inner);
        // SAFETY: this is the writing thread, which alone uses the bench.
        let bench = unsafe { &mut *bench.as_ptr() };
        let mut parts = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: PAGE }; PIECE];
        for (index, (page, _)) in piece.each().enumerate() {
            // SAFETY: the segment is emptied, and used again, by this thread alone.
            if !unsafe { Tier::unpack_at(bytes[index], bench.page(index)) } {
                trouble::spoilt(base + page.index() * PAGE);
            }
            parts[index].iov_base = bench.page(index).as_mut_ptr().cast();
        }
        let mut results = [Ok(()); PIECE];
        // SAFETY: the pages of the bench stay where they are.
        unsafe { self.write_runs(&slots[..piece.len], &mut parts[..piece.len], &mut results) };
        inner = self.inner.lock();
        inner.slots_written_behind = 0;
        let mut failed = None;
        for (index, (page, at)) in piece.each().enumerate() {
            match results[index] {
                // The page may have been brought back meanwhile, and written to: this is still what it left
                // with.
                Ok(()) if inner.tier.is_at(page, at) && inner.record(page).slot().is_none() => {
                    inner.record(page).set_slot(Some(slots[index]));
                    inner.tier.remove(page);
                    self.stats.count(Event::Written, 1);
                }
                result => {
                    inner.free_slots.insert(slots[index].0, 1);
                    failed = result.err().or(failed);
                }
            }
        }
        (self.after(inner, failed), failed.is_none())
    }
}
