//! The tier of compressed pages, between the frames and the store.
//!
//! A page that leaves is compressed into memory of the process, and one that comes back from there costs no
//! transfer. Its memory is taken from the frames, so that both together are what was asked for: the writing
//! thread (`behind`) feeds it by segments as pages arrive that compress, up to its share, writes the oldest
//! pages behind to the store when that is full, and gives its memory back where it does not pay (`worth`).
//! The answering thread (`unpack`) decompresses what is asked for.
//!
//! ```text
//!   frames ──▶ writer: compresses (`bench`) ──▶ log of segments (`log`) ──▶ store, the oldest first
//!     ▲  │                                          │                        ▲
//!     │  └── does not compress, or does not pay ────│────────────────────────┘
//!     └───────────────── decompressed ◀─────────────┘
//! ```
//!
//! An entry is a copy of its page, as its slot in the store is one: it stays when the page is brought back,
//! so that a page that was only read leaves again for the price of a checksum. The states of pages know
//! nothing of it; a page that is `Stored` has an entry or a slot or both.
//!
//! # Invariants ([`Tier::validate`])
//! * An entry holds what its page held when it left last: the contents that have the page's checksum. So does
//!   a slot of the same page.
//! * A page that is fresh or vague has no entry.
//! * All is changed with the pager's lock held; entries are added, moved and overwritten by the writing
//!   thread alone, which may read one without.
//!
//! # Sources
//! The compression cache of Douglis 1993 ("The compression cache: using on-line compression to extend
//! physical memory"), and the kernel's zswap. Departures: pages that are in memory keep their entries as long
//! as there is room; memory is a log (`log`); whether it pays is learnt from what is asked for.

mod bench;
mod log;
mod worth;

pub(crate) use bench::{Bench, PIECE, ROUND};
pub(crate) use log::{At, SEGMENT_FRAMES};

use crate::record::State;
use crate::table::Table;
use crate::units::{FRAMES_MIN, PAGE, PageNo};
use core::ptr::NonNull;
use log::{Log, SEGMENTS_MAX};
use rustix::io::Errno;
use vellum_sys::text::Share;
use worth::Worth;

/// The largest share of the frames, in percent.
pub const COMPRESSED_PERCENT_MAX: u32 = 75;
/// With fewer segments, what is compressed would be gone before it is asked for.
const SEGMENTS_MIN: u32 = 4;
/// Free segments that there are before pages are compressed: one to put them in, one to move others to.
pub(crate) const RESERVE: u32 = 2;

/// What to do with an entry of the oldest segment, which is to be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody needs it, or its page has another copy.
    Drop,
    /// It is needed, and there is room.
    Move,
    /// To write it to the store.
    Write,
}

#[derive(Debug)]
pub(crate) struct Tier {
    log: Log,
    /// The entry of each page, by [`At::word`].
    places: Table<u32>,
    /// How much memory is wanted for it, and how many segments that is now.
    wanted: Share,
    limit: u32,
    bench: Option<NonNull<Bench>>,
    worth: Worth,
    /// The most frames' worth of memory that it has had, and bytes that pages were compressed to.
    most: u32,
    bytes: u64,
}

// SAFETY: the bench is the tier's own.
unsafe impl Send for Tier {}

/// How many segments `wanted` is of `frames` frames. The rest is frames enough in any case.
fn segments_of(wanted: Share, frames: u32) -> u32 {
    let of_hundred = |percent: u32| u64::from(frames) * u64::from(percent) / 100;
    let asked = match wanted {
        Share::Off => 0,
        Share::Percent(percent) => of_hundred(percent),
        Share::Bytes(bytes) => bytes / PAGE as u64,
    };
    let most = of_hundred(COMPRESSED_PERCENT_MAX).min(frames.saturating_sub(FRAMES_MIN).into());
    let segments = (asked.min(most) / u64::from(SEGMENT_FRAMES)).min(SEGMENTS_MAX.into()) as u32;
    if segments < SEGMENTS_MIN { 0 } else { segments }
}

impl Tier {
    pub(crate) const fn none() -> Tier {
        Tier {
            log: Log::none(),
            places: Table::empty(),
            wanted: Share::Off,
            limit: 0,
            bench: None,
            worth: Worth::new(),
            most: 0,
            bytes: 0,
        }
    }

    /// A tier of which `wanted` of `frames` frames may be, for `pages` pages. It has no memory yet.
    pub(crate) fn new(wanted: Share, frames: u32, pages: u32) -> Result<Tier, Errno> {
        let segments = segments_of(wanted, frames);
        if segments == 0 {
            return Ok(Tier::none());
        }
        let (log, places) = (Log::new(segments)?, Table::new(pages as usize)?);
        let (bench, worth) = (Some(Bench::new()?), Worth::new());
        Ok(Tier { log, places, wanted, limit: segments, bench, worth, ..Tier::none() })
    }

    /// There are `frames` frames to share now.
    pub(crate) fn follow(&mut self, frames: u32) {
        self.limit = segments_of(self.wanted, frames);
    }

    /// Frames that its memory counts as; and the most that were.
    pub(crate) fn frames(&self) -> u32 {
        self.log.owned() * SEGMENT_FRAMES
    }

    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Bytes that pages have been compressed to, since the start.
    pub(crate) fn bytes_in(&self) -> u64 {
        self.bytes
    }

    /// What the writing thread compresses with; only it may use it.
    pub(crate) fn bench(&self) -> Option<NonNull<Bench>> {
        self.bench
    }

    fn place(&self, page: PageNo) -> Option<At> {
        At::of_word(*self.places.get(page.index())?)
    }

    /// Whether there is an entry of `page`.
    pub(crate) fn has(&self, page: PageNo) -> bool {
        self.place(page).is_some()
    }

    /// Whether `at` is where the entry of `page` lies.
    pub(crate) fn is_at(&self, page: PageNo, at: At) -> bool {
        self.place(page) == Some(at)
    }

    /// A page leaves that has no entry: whether it is worth compressing.
    pub(crate) fn wants(&mut self) -> bool {
        if self.limit == 0 {
            return false;
        }
        let entries = (self.log.live() / (PAGE as u64 / 3)) as u32;
        self.worth.leaves(entries, self.log.owned() >= self.limit)
    }

    /// A page that was tried is no shorter.
    pub(crate) fn refuse(&mut self) {
        self.worth.tried(false);
    }

    /// A fault finds its page here.
    pub(crate) fn hit(&mut self) {
        self.worth.hit();
    }

    /// Whether a round of pages ([`Bench::pack`]) has room.
    pub(crate) fn has_room(&self) -> bool {
        self.log.free_segments() >= RESERVE
    }

    /// Whether there may be another segment.
    pub(crate) fn may_grow(&self) -> bool {
        self.log.owned() < self.limit && !self.worth.rests()
    }

    /// Takes memory for another segment, whose frames are the tier's from now on.
    pub(crate) fn adopt(&mut self) -> bool {
        let adopted = self.log.adopt();
        self.most = self.most.max(self.frames());
        adopted
    }

    /// Gives the memory of a free segment back. False if there is none.
    pub(crate) fn disown(&mut self) -> bool {
        self.log.disown()
    }

    /// Whether it has memory that is to go back to the frames.
    pub(crate) fn has_excess(&self) -> bool {
        self.log.owned() > if self.worth.rests() { 0 } else { self.limit }
    }

    /// Adds `bytes`, what `page` is compressed to. False if there is no room.
    pub(crate) fn insert(&mut self, page: PageNo, bytes: &[u8]) -> bool {
        self.remove(page);
        let Some(at) = self.log.append(page, bytes) else { return false };
        self.places[page.index()] = at.word();
        self.worth.tried(true);
        self.bytes += bytes.len() as u64;
        true
    }

    /// `page` leaves again with the contents that its entry has.
    pub(crate) fn renew(&mut self, page: PageNo) {
        if let Some(at) = self.place(page) {
            self.log.header(at).again = 1;
        }
    }

    /// Drops the entry of `page`, if there is one.
    pub(crate) fn remove(&mut self, page: PageNo) {
        if let Some(at) = self.place(page) {
            self.log.remove(at);
            self.places[page.index()] = 0;
        }
    }

    /// The entry of `from`, if there is one, is that of `to`, which has none.
    pub(crate) fn pass(&mut self, from: PageNo, to: PageNo) {
        if let Some(at) = self.place(from) {
            self.log.header(at).page = to;
            self.places[from.index()] = 0;
            self.places[to.index()] = at.word();
        }
    }

    /// Decompresses the entry of `page` to `to`. False if there is none, or it is no page.
    ///
    /// # Safety
    /// A page of memory at `to` can be written, and is nobody else's.
    pub(crate) unsafe fn unpack(&self, page: PageNo, to: usize) -> bool {
        let Some(at) = self.place(page) else { return false };
        let (start, len) = self.log.bytes(at);
        // SAFETY: an entry's bytes, which nobody overwrites under the lock.
        let bytes = unsafe { core::slice::from_raw_parts(start as *const u8, len) };
        // SAFETY: by this function's condition.
        bench::unpack(bytes, unsafe { core::slice::from_raw_parts_mut(to as *mut u8, PAGE) })
    }

    /// Decompresses the entry at `at` into `page`, without the lock.
    ///
    /// # Safety
    /// `start` and `len` are of [`Tier::bytes`], asked by the writing thread, which has not emptied the
    /// segment since.
    pub(crate) unsafe fn unpack_at((start, len): (usize, usize), page: &mut [u8]) -> bool {
        // SAFETY: by this function's condition.
        bench::unpack(unsafe { core::slice::from_raw_parts(start as *const u8, len) }, page)
    }

    /// The bytes of an entry: where they start, and how many.
    pub(crate) fn bytes(&self, at: At) -> (usize, usize) {
        self.log.bytes(at)
    }

    /// The oldest segment that pages were put in, if there is any; the open one, if `all`.
    pub(crate) fn oldest(&mut self, all: bool) -> Option<u32> {
        if all && self.log.oldest().is_none() {
            self.log.close();
        }
        self.log.oldest()
    }

    /// The first entry that is needed from `offset` of a segment on, and the offset of the next.
    pub(crate) fn next_entry(&self, segment: u32, mut offset: u32) -> Option<(At, PageNo, u32)> {
        while let Some((at, header, next)) = self.log.entry(segment, offset) {
            if self.is_at(header.page, at) {
                return Some((at, header.page, next));
            }
            offset = next;
        }
        None
    }

    /// What to do with the entry at `at`: its page is in memory, or has a slot, as said. All go if
    /// `is_ending`.
    pub(crate) fn fate(&mut self, at: At, is_in_memory: bool, has_slot: bool, is_ending: bool) -> Fate {
        if !is_ending {
            /// Up to this part of its memory in use, it is the dead parts that take the room.
            const LOOSE: (u64, u64) = (3, 4);
            let memory = u64::from(self.frames()) * PAGE as u64;
            let again = core::mem::take(&mut self.log.header(at).again) != 0;
            let is_loose = self.log.live() * LOOSE.1 <= memory * LOOSE.0;
            if is_loose || again && !is_in_memory {
                return Fate::Move;
            }
        }
        if is_in_memory || has_slot { Fate::Drop } else { Fate::Write }
    }

    /// Moves an entry of the oldest segment to the open one. False if there is no room.
    pub(crate) fn relocate(&mut self, page: PageNo, at: At) -> bool {
        let (start, len) = self.log.bytes(at);
        // SAFETY: an entry's bytes, which are copied to another segment.
        let bytes = unsafe { core::slice::from_raw_parts(start as *const u8, len) };
        let Some(to) = self.log.append(page, bytes) else { return false };
        self.log.remove(at);
        self.places[page.index()] = to.word();
        true
    }

    /// The oldest segment has been emptied.
    pub(crate) fn recycle_oldest(&mut self) {
        self.log.recycle_oldest();
    }

    /// Gives its memory back, in a child that has got every page.
    pub(crate) fn flush(&mut self) {
        self.log.flush();
    }

    /// Checks the invariants; `state` is of a page. Slow.
    pub(crate) fn validate(&self, state: impl Fn(PageNo) -> State) -> Result<(), &'static str> {
        let entries = self.log.validate(|at, page| self.is_at(page, at))?;
        let mut named = 0;
        for (index, _) in self.places.iter().enumerate().filter(|(_, word)| **word != 0) {
            named += 1;
            if matches!(state(PageNo(index as u32)), State::Fresh | State::Vague) {
                return Err("a page without contents has a compressed copy");
            }
        }
        if entries != named {
            return Err("a page names a compressed copy that is not its own");
        }
        Ok(())
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        if let Some(bench) = self.bench.take() {
            // SAFETY: the writing thread has ended, or never was.
            unsafe { Bench::end(bench) };
        }
    }
}
