//! The state under the page layer's lock: three arenas and the accounts.
//!
//! | arena | holds | pages |
//! | --- | --- | --- |
//! | fine | all blocks below 4 MiB of a small process | base |
//! | dense | blocks below 4 MiB of a process grown past 12 MiB, handed out densely from the low end | huge, by one window |
//! | large | blocks of 4 MiB and more, and any block that grows, with free space behind each | huge, by a window for each block |
//!
//! The accounts count pages: `live` are handed out; `cached` are free, with frames, unmarked (warm); `marked`
//! are discardable; `resident` are the pages of all three kinds that have frames. Only the resident part of a
//! freed block counts as cached: the rest turns cold ([`survey`](crate)).

use crate::arena::{Arena, Place, Taken};
use crate::bins::Lengths;
use crate::config::{Config, HugePolicy};
use crate::huge_window::Windows;
use crate::low_water::{LeastHeadroom, LowWater};
use crate::resident::Resident;
use crate::suited::{LOWEST, is_suited};
use crate::tag::{Kind, PageNo, TAG_BYTES, flag};
use crate::units::{ALIGN_MAX, ANNEX_BYTES, ARENA_BYTES, DENSE_MIN, HUGE, HUGE_PAGES, LARGE_MIN, PAGE};
use crate::units::{UNIT, UNIT_SIDE};
use core::sync::atomic::Ordering::Relaxed;
use rustix::io::Errno;
use vellum_sys::{Addr, Caps, Span, caps, limits, map};
use vellum_wire::{Counter, Slot};

/// The arenas' places in [`State::arenas`].
pub(crate) const FINE: usize = 0;
pub(crate) const DENSE: usize = 1;
pub(crate) const LARGE: usize = 2;
pub(crate) const ARENAS: usize = 3;

pub(crate) const SPAN: usize = ARENAS * ARENA_BYTES;
const TAGS_BYTES: usize = ARENA_BYTES / PAGE * TAG_BYTES;
const SIDE_BYTES: usize = ARENA_BYTES / UNIT * UNIT_SIDE;
pub(crate) const WHOLE: usize = SPAN + ARENAS * (TAGS_BYTES + SIDE_BYTES);
/// The start of the pager's address space in the last arena (`annex`).
const ANNEX_START: usize = ARENA_BYTES - ANNEX_BYTES;
const LIMITS: [u32; ARENAS] = {
    let mut limits = [(ARENA_BYTES / PAGE) as u32; ARENAS];
    limits[LARGE] = (ANNEX_START / PAGE) as u32;
    limits
};
const _: () = assert!(LARGE + 1 == ARENAS);
/// The number of places for arenas, from [`LOWEST`] on.
const PLACES: usize = 24 << 10;
const TRIES: usize = 64;
/// Free pages behind a new large block: as much again, within these.
const ROOM_MIN: u32 = (32 << 20) / PAGE as u32;
const ROOM_MAX: u32 = (4usize << 30).div_euclid(PAGE) as u32;
/// Cold pages taken between two checks for new limits on address space.
const LIMIT_CHECK: u32 = (1 << 20) / PAGE as u32;
/// Moves that may leave a map entry of their own.
pub(crate) const ENTRIES_MAX: u32 = 256;

static NO_BOARD: Slot = Slot::new();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A block of a fixed size.
    Fixed,
    /// A block that has grown once: room behind it is useful.
    Growing,
    /// A block of a length whose blocks are hardly touched: frames would be wasted on it.
    Sparse,
    /// Many units in one call, from [`LARGE_MIN`] on: such a caller is about to write them all.
    Batch,
    /// The target of moved page tables: it must have no frames.
    Empty,
}

/// Free memory that may have frames, which decays: the kernel takes marked memory only when short.
pub(crate) const KEPT: [Kind; 2] = [Kind::Warm, Kind::Marked];
/// The place of warm pages among these.
pub(crate) const WARM: usize = 0;

/// A used extent: its arena, first page and length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) arena: usize,
    pub(crate) page: PageNo,
    pub(crate) pages: u32,
}

pub(crate) struct State {
    pub(crate) is_init: bool,
    /// The start of the first arena, and of the side table of all.
    pub(crate) start: Addr,
    pub(crate) side: Addr,
    /// Set after the first major collection.
    pub(crate) has_collected: bool,
    /// Set while the annex can still be lent.
    pub(crate) has_annex: bool,
    pub(crate) arenas: [Arena; ARENAS],
    pub(crate) live: u64,
    pub(crate) peak: u64,
    pub(crate) resident: Resident,
    /// Lengths of which the last block that was looked at was mostly empty when it was freed.
    pub(crate) sparse: Lengths,
    /// Pages freed without frames since tables were last given back for that.
    pub(crate) unswept: u32,
    /// Lengths of which the last block that was looked at was touched throughout when it was freed.
    pub(crate) full: Lengths,
    /// Pages cleared since the last probe, and a page in the middle of that: see `untouched`.
    pub(crate) cleared: u64,
    pub(crate) probe: Addr,
    pub(crate) headroom: LeastHeadroom,
    /// Cached pages that the last check of the limits found harmless, less the pages handed out cold since.
    pub(crate) harmless: u64,
    /// When that check was, in coarse milliseconds, and its number.
    pub(crate) checked_ms: u64,
    pub(crate) check: u32,
    /// The low-water mark of each of [`KEPT`].
    pub(crate) low_water: [LowWater; KEPT.len()],
    pub(crate) windows: Windows,
    pub(crate) config: Config,
    pub(crate) entries: u32,
    /// Free extents that somebody has taken out of their lists to deal with their frames, and will put back.
    pub(crate) away: usize,
    /// All system calls are forbidden but those that map memory.
    pub(crate) still: bool,
    /// Cold pages taken since the last check for limits that another process has set.
    pub(crate) unlimited: u32,
    /// The end of all memory that was ever given huge pages in the large arena.
    pub(crate) granted_to: Addr,
    pub(crate) slot: &'static Slot,
}

impl State {
    pub(crate) fn whole(&self) -> Span {
        Span::new(self.start, WHOLE)
    }

    pub(crate) fn annex(&self) -> Span {
        Span::new(self.start + LARGE * ARENA_BYTES + ANNEX_START, ANNEX_BYTES)
    }

    /// The part of the side table that is for the annex.
    pub(crate) fn annex_side(&self) -> Span {
        let units_before = (self.annex().start - self.start) / UNIT;
        Span::new(self.side + units_before * UNIT_SIDE, ANNEX_BYTES / UNIT * UNIT_SIDE)
    }

    /// Ends the lending of the annex if the program puts its own mapping there, at `place`.
    pub(crate) fn annex_is_lost_to(&mut self, place: Span) {
        self.has_annex &= self.annex().intersect(place).is_empty();
    }

    /// Unmaps unused memory, and maps no more than is needed from now on.
    pub(crate) fn map_no_more_than_needed(&mut self) {
        self.release_annex();
        self.arenas.iter_mut().for_each(Arena::on_mlockall);
    }

    /// Checks now and then, by the `pages` cold pages taken, whether another process has set a limit.
    pub(crate) fn check_new_limits(&mut self, pages: u32) {
        self.unlimited = self.unlimited.saturating_add(pages);
        if self.unlimited >= LIMIT_CHECK && !self.arenas[FINE].is_short() && !self.still {
            self.unlimited = 0;
            if limits::address_space_is_limited() {
                self.map_no_more_than_needed();
            }
        }
    }

    /// Unmaps the annex if it was not lent, before all mappings are locked into memory.
    pub(crate) fn release_annex(&mut self) {
        if core::mem::take(&mut self.has_annex) && self.arenas[LARGE].is_reserved() {
            // SAFETY: both are reserved, and the annex was lent to nobody.
            unsafe {
                let _ = map::release(self.annex());
                let _ = map::release(self.annex_side());
            }
        }
    }
}

impl State {
    pub(crate) const fn new() -> State {
        State {
            is_init: false,
            start: Addr::NULL,
            side: Addr::NULL,
            has_collected: false,
            has_annex: false,
            arenas: [const { Arena::unplaced() }; ARENAS],
            live: 0,
            peak: 0,
            resident: Resident::new(),
            sparse: Lengths::new(),
            unswept: 0,
            full: Lengths::new(),
            cleared: 0,
            probe: Addr::NULL,
            headroom: LeastHeadroom::new(),
            harmless: 0,
            checked_ms: 0,
            check: 0,
            low_water: [const { LowWater::new() }; KEPT.len()],
            windows: Windows::new(),
            config: Config::DEFAULT,
            entries: 0,
            away: 0,
            still: false,
            unlimited: 0,
            granted_to: Addr::NULL,
            slot: &NO_BOARD,
        }
    }

    /// Finds the arenas a place, once.
    pub(crate) fn init(&mut self) -> bool {
        if self.is_init {
            return true;
        }
        if !is_suited() {
            return false;
        }
        let short = limits::address_space_is_accounted();
        for attempt in 0..TRIES {
            let start = LOWEST + (random(attempt) as usize % PLACES) * ALIGN_MAX;
            if self.init_at(Span::new(start, WHOLE), short) {
                self.is_init = true;
                return true;
            }
        }
        false
    }

    fn init_at(&mut self, whole: Span, short: bool) -> bool {
        let [arenas, tables] = whole.split_at(SPAN);
        let [tags, side] = tables.split_at(ARENAS * TAGS_BYTES);
        let reserved = !short
            && match map::reserve(whole) {
                Ok(()) => true,
                Err(Errno::EXIST) => return false,
                // A kernel or container that allows less address space: it is claimed piece by piece.
                Err(_) => false,
            };
        // All of the side table is readable, so that an address that was never handed out is found to have no
        // owner; and first of all, since arenas replace parts of it.
        let readable = if reserved {
            // SAFETY: reserved by the call before, and published to nobody.
            unsafe { map::make_readable(side) }
        } else if short {
            Ok(())
        } else {
            map::claim_readable(side)
        };
        if readable.is_err() {
            self.leave(whole, reserved);
            return false;
        }
        for (index, arena) in self.arenas.iter_mut().enumerate() {
            let place = Place {
                start: arenas.start + index * ARENA_BYTES,
                tags: tags.start + index * TAGS_BYTES,
                side: side.start + index * SIDE_BYTES,
                limit: LIMITS[index],
                short,
                huge: index != FINE,
                reserved,
            };
            if arena.init(place).is_err() {
                self.leave(whole, reserved);
                return false;
            }
        }
        self.start = whole.start;
        self.side = side.start;
        self.has_annex = reserved;
        true
    }

    /// Gives up a place where not everything could be had. A place claimed without a reservation is a few
    /// pages of address space, left behind for good: others may have been mapped between.
    fn leave(&mut self, whole: Span, reserved: bool) {
        self.arenas = [const { Arena::unplaced() }; ARENAS];
        if reserved {
            // SAFETY: reserved by the caller, and published to nobody.
            let _ = unsafe { map::release(whole) };
        }
    }

    /// Which arena serves `pages` pages by preference.
    pub(crate) fn arena_for(&self, pages: u32, usage: Use) -> usize {
        if !matches!(usage, Use::Fixed | Use::Sparse) || pages as usize >= LARGE_MIN / PAGE {
            LARGE
        } else if (usage != Use::Sparse || self.windows.arena_granted().is_none_or(Span::is_empty))
            && self.config.huge != HugePolicy::Never
            && caps::has(Caps::HUGE_PAGES)
            && self.live + u64::from(pages) >= (DENSE_MIN / PAGE) as u64
        {
            DENSE
        } else {
            FINE
        }
    }

    pub(crate) fn decays(&self) -> bool {
        self.config.discard.decays(self.has_collected)
    }

    pub(crate) fn arena_at(&self, address: Addr) -> Option<usize> {
        let index = address.since(self.start) / ARENA_BYTES;
        let is_mapped = || self.arenas[index].mapped_span().contains(address);
        (self.is_init && index < ARENAS && is_mapped()).then_some(index)
    }

    pub(crate) fn free_pages(&self, kind: Kind) -> u64 {
        self.arenas.iter().map(|arena| arena.free_pages(kind)).sum()
    }

    /// The free pages to leave behind a cold block of `pages` pages in `arena`.
    pub(crate) fn room(&self, arena: usize, pages: u32) -> u32 {
        if arena == LARGE && !self.arenas[arena].is_short() { pages.clamp(ROOM_MIN, ROOM_MAX) } else { 0 }
    }

    /// The alignment of a cold block, in pages: a huge page's for large ones, also to move page tables.
    pub(crate) fn cold_align(&self, arena: usize, align: u32) -> u32 {
        if arena == LARGE && !self.arenas[arena].is_short() { align.max(HUGE_PAGES) } else { align }
    }

    /// Books pages just taken from the free lists.
    pub(crate) fn book_taken(&mut self, taken: &Taken) {
        self.live += u64::from(taken.pages);
        self.peak = self.peak.max(self.live);
        self.resident.grow(u64::from(taken.growth()));
        self.note_needed();
        self.harmless = self.harmless.saturating_sub(u64::from(taken.cold()));
        self.note_low();
        if taken.warm() + taken.marked() > 0 {
            self.count(Counter::CacheHits, 1);
            self.count(Counter::BytesWarm, u64::from(taken.warm() + taken.marked()) * PAGE as u64);
        }
    }

    /// Has the kernel count resident pages, unless system calls are forbidden.
    fn recount(&mut self) {
        let pages = if self.still { None } else { vellum_sys::usage::resident() };
        self.resident.recount(pages);
        self.note_needed();
    }

    pub(crate) fn note_needed(&mut self) {
        let kept = self.free_pages(Kind::Warm) + self.free_pages(Kind::Marked);
        self.resident.note_needed(kept);
    }

    /// Notes how much memory was needed, before memory is freed.
    pub(crate) fn before_free(&mut self) {
        if self.resident.is_stale() {
            self.recount();
        }
    }

    /// Cached pages by which the process's peak would be too high if `more` pages were handed out without
    /// frames. Among the pages handed out, `untouched` are about to become resident.
    ///
    /// The higher of two excesses counts: by resident memory, and by memory handed out. The second bound is
    /// for a program that allocates all its memory first and touches it later.
    pub(crate) fn excess(&mut self, more: u64, untouched: u64) -> u64 {
        let warm = self.free_pages(Kind::Warm);
        if warm <= self.resident.slack(0) {
            return 0;
        }
        if self.resident.over(more, warm) > 0 && self.resident.has_grown_beyond(untouched) {
            self.recount();
            self.resident.grow(untouched);
        }
        let live = self.live + more;
        let peak = self.peak.max(live);
        let handed_out = (live + warm).saturating_sub(peak + self.resident.slack(peak)).min(warm);
        self.resident.over(more, warm).max(handed_out)
    }

    pub(crate) fn note_low(&mut self) {
        for (which, kind) in KEPT.into_iter().enumerate() {
            let pages = self.free_pages(kind);
            self.low_water[which].note(pages);
        }
    }

    /// Adds to a counter. Only called under the lock, so a plain addition is enough.
    #[inline]
    pub(crate) fn count(&self, counter: Counter, amount: u64) {
        let word = self.slot.counter(counter);
        word.store(word.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    pub(crate) fn publish(&self) {
        let bytes = |pages: u64| pages * PAGE as u64;
        self.slot.set(Counter::NowLive, bytes(self.live));
        self.slot.set(Counter::NowCached, bytes(self.free_pages(Kind::Warm)));
        self.slot.set(Counter::NowMarked, bytes(self.free_pages(Kind::Marked)));
        self.slot.set(Counter::PeakLive, bytes(self.peak));
    }

    /// The advice to the kernel on freshly taken cold memory.
    pub(crate) fn plan_huge(&mut self, arena: usize, taken: &Taken, usage: Use) -> Advice {
        if usage == Use::Sparse && self.config.huge == HugePolicy::Auto {
            return Advice::NONE;
        }
        let cold = self.arenas[arena].span(taken.cold_from, taken.end() - taken.cold_from);
        if arena == DENSE && self.windows.is_near_arena_window(cold) {
            let wanted = self.windows.arena_trial(cold);
            return Advice { wanted, is_trial: wanted.is_some(), watch: true, ..Advice::NONE };
        }
        if arena != LARGE || cold.is_empty() || !caps::has(Caps::HUGE_PAGES) {
            return Advice::NONE;
        }
        // Map entries end at huge pages only, so that frames can be moved a huge page at a time.
        let wanted = match self.config.huge {
            HugePolicy::Never => None,
            HugePolicy::Auto if usage != Use::Batch => self.windows.watch_block(cold),
            _ => cold.whole(HUGE).non_empty(),
        };
        let kept = wanted.map_or(cold.start, Span::end);
        // Address space used again may be advised from its last block. Past the block's end this may forbid
        // huge pages to a neighbour's first piece, which costs it little.
        let unwanted = (kept < cold.end() && cold.start < self.granted_to)
            .then(|| Span::between(kept.round_up(HUGE), cold.end().round_up(HUGE)));
        self.granted_to = self.granted_to.max(kept);
        let watch = self.config.huge == HugePolicy::Auto && usage != Use::Batch && kept < cold.end();
        let is_trial = wanted.is_some() && self.config.huge == HugePolicy::Auto && self.windows.is_tried();
        Advice { wanted, unwanted, watch, is_trial }
    }

    /// The advice on memory by which a block grew in place.
    pub(crate) fn plan_growth(&mut self, arena: usize, block: Span, taken: &Taken) -> Advice {
        if arena == LARGE && self.config.huge == HugePolicy::Auto && caps::has(Caps::HUGE_PAGES) {
            let cold_from = self.arenas[arena].address(taken.cold_from);
            let small = block.end() - cold_from < LARGE_MIN;
            if self.windows.extend(block) || small && self.windows.watch_growth(block, cold_from) {
                return Advice { watch: true, ..Advice::NONE };
            }
        }
        self.plan_huge(arena, taken, Use::Growing)
    }

    pub(crate) fn flags_for(taken: &Taken, advice: &Advice) -> u8 {
        let mut flags = taken.flags & (flag::ENTRY | flag::HUGE);
        if taken.growth() > 0 {
            flags |= flag::UNTOUCHED;
        }
        if advice.wanted.is_some() || advice.watch {
            flags |= flag::HUGE;
        }
        flags
    }
}

/// A number to place arenas by. Only makes addresses differ between processes; no secret may depend on it.
fn random(attempt: usize) -> u64 {
    let mut bytes = [0u8; 8];
    if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK) == Ok(8) {
        return u64::from_le_bytes(bytes);
    }
    vellum_sys::clock::now_ns().wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(attempt as u64)
}

/// The kernel's advice for a range of cold memory, given after the lock is released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice {
    pub(crate) wanted: Option<Span>,
    pub(crate) unwanted: Option<Span>,
    /// A window may have to move soon.
    pub(crate) watch: bool,
    /// The first huge page must show that it is cheap.
    pub(crate) is_trial: bool,
}

impl Advice {
    pub(crate) const NONE: Advice = Advice { wanted: None, unwanted: None, watch: false, is_trial: false };

    /// Huge pages for `wanted`, if any.
    pub(crate) fn huge(wanted: Option<Span>) -> Advice {
        Advice { wanted, ..Advice::NONE }
    }

    pub(crate) fn give(&self) {
        for (span, huge) in [(self.wanted, true), (self.unwanted, false)] {
            if let Some(span) = span {
                map::advise_huge(span, huge);
            }
        }
    }
}
