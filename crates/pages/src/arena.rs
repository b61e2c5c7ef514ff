//! An arena: a stretch of address space cut into extents (runs of whole pages in one state).
//!
//! ```text
//! start                                  mapped                              limit
//! │ used │ warm │ used │ cold │ used │ … │ (claimed from the kernel when needed) │
//! ```
//!
//! An extent is used, or free in one of three states: warm (with frames), marked (the kernel may take the
//! frames) or cold (without frames). An arena places, splits and joins extents. It makes no decision about
//! frames and calls the kernel only to claim more address space at its end. Free extents of one state are
//! joined when they meet; those of different states may touch. A request that fits in no single extent may
//! cover a row of touching extents, so that the frames at the row's front are reused.
//!
//! Placement is best fit (warm first, see [`Arena::take_reused`]), from the low end of an extent.

use crate::bins::{Bins, fit};
use crate::error::Misuse;
use crate::tag::{FREE_KINDS, Kind, PageNo, Run, TAG_BYTES, Tags, flag};
use crate::units::{HUGE_PAGES, PAGE, UNIT, UNIT_PAGES, UNIT_SIDE, bytes_of};
use rustix::io::Errno;
use vellum_sys::{Addr, Span, map};

const RUNS_MAX: usize = 8;
/// Extents tried for a row of aligned runs.
const ROWS_MAX: usize = 64;
/// Tags inside an extent that [`Arena::validate`] looks at, from either end.
const VALIDATED: usize = 1024;
/// Pages mapped at once where address space costs nothing: 1 GiB.
const STEP: u32 = 1 << 18;
/// Pages mapped at once where every mapping is accounted. Side tables grow by as much.
pub(crate) const STEP_SHORT: u32 = HUGE_PAGES;

/// Pages handed out, by what they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) start: PageNo,
    pub(crate) pages: u32,
    /// Pages by free kind, indexed like [`FREE_KINDS`].
    pub(crate) of: [u32; 3],
    pub(crate) flags: u8,
    /// The first page from which every page was cold (`start + pages` if the last was not).
    pub(crate) cold_from: PageNo,
}

impl Taken {
    pub(crate) fn end(&self) -> PageNo {
        self.start + self.pages
    }

    /// Bytes of the pages before the first from which every page was cold.
    pub(crate) fn bytes_before_cold(&self) -> usize {
        bytes_of(self.cold_from - self.start)
    }

    pub(crate) fn warm(&self) -> u32 {
        self.of[Kind::Warm.index()]
    }
    pub(crate) fn marked(&self) -> u32 {
        self.of[Kind::Marked.index()]
    }
    pub(crate) fn cold(&self) -> u32 {
        self.of[Kind::Cold.index()]
    }

    /// Pages that may become resident by being touched.
    pub(crate) fn growth(&self) -> u32 {
        let warm = if self.flags & flag::UNTOUCHED == 0 { 0 } else { self.warm() };
        self.cold() + self.marked() + warm
    }
}

/// An arena's three stretches of address space, and their attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) start: Addr,
    pub(crate) tags: Addr,
    pub(crate) side: Addr,
    pub(crate) limit: u32,
    /// Address space is accounted: the arena maps only as much as it needs.
    pub(crate) short: bool,
    pub(crate) huge: bool,
    /// All three stretches are reserved: nobody else can be mapped there.
    pub(crate) reserved: bool,
}

pub(crate) struct Arena {
    pub(crate) place: Place,
    pub(crate) mapped: u32,
    /// The end of the pages that a core dump includes.
    pub(crate) dumped: PageNo,
    pub(crate) tags: Tags,
    bins: [Bins; 3],
}

impl Arena {
    pub(crate) const fn unplaced() -> Arena {
        Arena {
            place: Place {
                start: Addr::NULL,
                tags: Addr::NULL,
                side: Addr::NULL,
                limit: 0,
                short: false,
                huge: false,
                reserved: false,
            },
            mapped: 0,
            dumped: 0,
            tags: Tags::unmapped(),
            bins: [const { Bins::new() }; 3],
        }
    }

    /// Takes `place` into use by mapping a first piece there.
    pub(crate) fn init(&mut self, place: Place) -> Result<(), Errno> {
        self.place = place;
        // SAFETY: tags are mapped by `claim_more` before the count covers them.
        unsafe { self.tags.place(place.tags) };
        self.claim_more(1)
    }

    pub(crate) fn address(&self, page: PageNo) -> Addr {
        self.place.start + bytes_of(page)
    }

    pub(crate) fn page(&self, address: Addr) -> PageNo {
        ((address - self.place.start) / PAGE) as PageNo
    }

    pub(crate) fn span(&self, start: PageNo, pages: u32) -> Span {
        Span::new(self.address(start), bytes_of(pages))
    }

    pub(crate) fn span_of(&self, taken: &Taken) -> Span {
        self.span(taken.start, taken.pages)
    }

    /// The side records of `pages` pages from `start` on, both multiples of a unit's pages.
    pub(crate) fn side_span(&self, start: PageNo, pages: u32) -> Span {
        const PER_PAGE: usize = UNIT_SIDE * PAGE / UNIT;
        Span::new(self.place.side + start as usize * PER_PAGE, pages as usize * PER_PAGE)
    }

    pub(crate) fn mapped_span(&self) -> Span {
        self.span(0, self.mapped)
    }

    pub(crate) fn whole(&self) -> Span {
        self.span(0, self.place.limit)
    }

    pub(crate) fn mapped_pages(&self) -> u32 {
        self.mapped
    }

    /// Returns two things. First, whether a used extent as long as a unit starts at `page`, the start of a
    /// unit. Second, the start of the next unit that does not lie inside an extent that starts there.
    pub(crate) fn unit_at(&mut self, page: PageNo) -> (bool, PageNo) {
        let tag = *self.tags.at(page);
        if tag.kind == Kind::Inside || tag.is_tail {
            return (false, page + UNIT_PAGES);
        }
        (tag.kind == Kind::Used && tag.pages == UNIT_PAGES, (page + tag.pages).next_multiple_of(UNIT_PAGES))
    }

    pub(crate) fn free_pages(&self, kind: Kind) -> u64 {
        self.bins[kind.index()].pages
    }

    pub(crate) fn is_short(&self) -> bool {
        self.place.short
    }

    /// Maps at least `pages` more pages at the end, as cold.
    fn claim_more(&mut self, pages: u32) -> Result<(), Errno> {
        let exact = pages.checked_next_multiple_of(STEP_SHORT).ok_or(Errno::NOMEM)?;
        let step = if self.place.short { STEP_SHORT } else { STEP };
        let generous =
            exact.checked_next_multiple_of(step).unwrap_or(exact).min(self.place.limit - self.mapped);
        if exact > self.place.limit - self.mapped {
            return Err(Errno::NOMEM);
        }
        let mut last = Errno::NOMEM;
        for pages in [generous, exact] {
            match self.claim(pages) {
                Ok(()) => {
                    let start = self.mapped;
                    self.mapped += pages;
                    self.insert_free(start, pages, Kind::Cold, 0);
                    return Ok(());
                }
                Err(errno) => last = errno,
            }
        }
        Err(last)
    }

    /// Takes address space into use that is reserved, or else nobody's.
    fn open(&self, span: Span) -> Result<(), Errno> {
        if self.place.reserved {
            // SAFETY: reserved for this arena and not in use.
            unsafe { map::renew(span) }
        } else {
            map::claim(span)
        }
    }

    fn close(&self, span: Span) {
        // SAFETY: opened by `claim`, under the same lock, and not handed out.
        let _ = unsafe { if self.place.reserved { map::close(span) } else { map::release(span) } };
    }

    /// Maps `pages` pages at the end with their tags and side records; all or nothing.
    fn claim(&mut self, pages: u32) -> Result<(), Errno> {
        let span = self.span(self.mapped, pages);
        self.open(span)?;
        // The tables outlive a retreat of the end, so only what is above them is new.
        let (old, new) = (self.tags.count, self.mapped + pages);
        if new > old {
            let tags =
                Span::new(self.place.tags + old as usize * TAG_BYTES, (new - old) as usize * TAG_BYTES);
            self.open(tags).inspect_err(|_| self.close(span))?;
            let side = self.side_span(old, new - old);
            // SAFETY: any mapping there is this arena's own readable zeros.
            unsafe { map::renew(side) }.inspect_err(|_| {
                self.close(tags);
                self.close(span);
            })?;
            self.tags.count = new;
            if self.dumped != PageNo::MAX {
                map::leave_out_of_dumps(tags);
                map::leave_out_of_dumps(side);
            }
        }
        if self.dumped != PageNo::MAX {
            map::leave_out_of_dumps(span);
        }
        Ok(())
    }

    pub(crate) fn remove_free(&mut self, start: PageNo, pages: u32, kind: Kind) {
        self.bins[kind.index()].remove(&mut self.tags, start);
        self.tags.erase(start, pages);
    }

    /// Adds a free extent, joining it with neighbours of its kind. Its tags are empty before.
    pub(crate) fn insert_free(&mut self, mut start: PageNo, mut pages: u32, kind: Kind, mut flags: u8) {
        if start > 0 {
            let before = self.tags.ending_at(start - 1);
            if before.kind == kind {
                flags |= self.tags.at(before.start).flags;
                self.remove_free(before.start, before.pages, kind);
                start = before.start;
                pages += before.pages;
            }
        }
        if start + pages < self.mapped {
            let after = start + pages;
            let tag = *self.tags.at(after);
            if tag.kind == kind {
                flags |= tag.flags;
                self.remove_free(after, tag.pages, kind);
                pages += tag.pages;
            }
        }
        self.tags.write(start, pages, kind, flags);
        self.bins[kind.index()].insert(&mut self.tags, start, pages);
        if kind == Kind::Cold {
            self.undump(start, start + pages);
        }
    }

    /// Hands out `pages` pages from `at`, all free, of which the first lies in the extent at `first`.
    pub(crate) fn take_run(&mut self, first: PageNo, at: PageNo, pages: u32) -> Taken {
        let end = at + pages;
        if end > self.dumped {
            self.dump_to(end);
        }
        let mut taken = Taken { start: at, pages, cold_from: end, ..Taken::default() };
        let mut start = first;
        while start < end {
            let tag = *self.tags.at(start);
            debug_assert!(tag.kind.is_free() && !tag.is_tail, "{tag:?} at {start}");
            self.remove_free(start, tag.pages, tag.kind);
            let extent_end = start + tag.pages;
            if start < at {
                self.insert_free(start, at - start, tag.kind, tag.flags);
            }
            let (from, to) = (start.max(at), extent_end.min(end));
            taken.of[tag.kind.index()] += to - from;
            taken.flags |= tag.flags;
            if tag.kind != Kind::Cold {
                taken.cold_from = end;
            } else if taken.cold_from == end {
                taken.cold_from = from;
            }
            if extent_end > end {
                // The pages before are in no extent: mark them used before joining reads their tags.
                self.tags.write(at, pages, Kind::Used, 0);
                self.insert_free(end, extent_end - end, tag.kind, tag.flags);
            }
            start = extent_end;
        }
        self.tags.write(at, pages, Kind::Used, 0);
        taken
    }

    /// Takes `pages` aligned pages of which at least some have frames: the tightest warm extent, else a run
    /// that begins with a warm extent, else a marked extent.
    pub(crate) fn take_reused(&mut self, pages: u32, align: u32) -> Option<Taken> {
        for kind in [Kind::Warm, Kind::Marked] {
            if let Some((first, at)) = self.bins[kind.index()].best_fit(&mut self.tags, pages, align) {
                return Some(self.take_run(first, at, pages));
            }
            if kind == Kind::Warm
                && let Some((first, at)) = self.run_from_warm(pages, align)
            {
                return Some(self.take_run(first, at, pages));
            }
        }
        None
    }

    /// Takes up to `most` aligned runs of `pages` pages, neighbours in memory, with frames: from the tightest
    /// extent that holds all runs, else from the largest.
    pub(crate) fn take_reused_row(&mut self, pages: u32, most: u32) -> Option<Taken> {
        for kind in [Kind::Warm, Kind::Marked] {
            let bins = &self.bins[kind.index()];
            if let Some((first, at)) = bins.best_fit(&mut self.tags, pages * most, pages) {
                return Some(self.take_run(first, at, pages * most));
            }
            let found = bins.largest(&mut self.tags, ROWS_MAX, |_, start, len| {
                let at = fit(start, len, pages, pages)?;
                Some((start, at, (start + len - at) / pages))
            });
            if let Some((first, at, count)) = found {
                return Some(self.take_run(first, at, pages * count.min(most)));
            }
        }
        None
    }

    /// A run of free extents that begins with a warm one and holds `pages` pages.
    fn run_from_warm(&mut self, pages: u32, align: u32) -> Option<(PageNo, PageNo)> {
        let mapped = self.mapped;
        self.bins[Kind::Warm.index()].largest(&mut self.tags, RUNS_MAX, |tags, start, len| {
            // A small front would buy a large cold tail: not worth leaving the roomier cold placement for.
            if len < pages / 4 {
                return None;
            }
            let mut total = len;
            let mut next = start + len;
            while total < pages + align && next < mapped {
                let tag = *tags.at(next);
                if !tag.kind.is_free() {
                    break;
                }
                total += tag.pages;
                next += tag.pages;
            }
            let at = fit(start, total, pages, align)?;
            (at < start + len).then_some((start, at))
        })
    }

    /// Takes the largest warm extent if it holds `pages` aligned pages: room for a block that grows.
    pub(crate) fn take_roomiest(&mut self, pages: u32, align: u32) -> Option<Taken> {
        let (first, at) = self.bins[Kind::Warm.index()].largest(&mut self.tags, 1, |_, start, len| {
            fit(start, len, pages, align).map(|at| (start, at))
        })?;
        Some(self.take_run(first, at, pages))
    }

    /// Takes `pages` aligned cold pages with `room` free pages behind them, claiming address space if needed.
    pub(crate) fn take_cold(&mut self, pages: u32, align: u32, room: u32) -> Option<Taken> {
        let cold = Kind::Cold.index();
        for room in [room, 0] {
            let wanted = pages.checked_add(room)?;
            if let Some((first, at)) = self.bins[cold].best_fit(&mut self.tags, wanted, align) {
                return Some(self.take_run(first, at, pages));
            }
            let lead = if align > 1 { align } else { 0 };
            if self.claim_more(wanted.checked_add(lead)?).is_ok()
                && let Some((first, at)) = self.bins[cold].best_fit(&mut self.tags, wanted, align)
            {
                return Some(self.take_run(first, at, pages));
            }
        }
        None
    }

    /// Free pages behind the used extent at `start`, up to `wanted`, claiming address space at the end.
    fn free_behind(&mut self, start: PageNo, wanted: u32) -> u32 {
        let mut next = start + self.tags.at(start).pages;
        let mut found = 0;
        loop {
            while found < wanted && next < self.mapped {
                let tag = *self.tags.at(next);
                if !tag.kind.is_free() {
                    return found;
                }
                found += tag.pages;
                next += tag.pages;
            }
            if found >= wanted || self.claim_more(wanted - found).is_err() {
                return found;
            }
            // What was claimed may have joined the last free extent: look again from the start.
            next = start + self.tags.at(start).pages;
            found = 0;
        }
    }

    /// True if the used extent at `start` can grow to `pages` in place.
    pub(crate) fn growth_is_possible(&mut self, start: PageNo, pages: u32) -> bool {
        let wanted = pages - self.tags.at(start).pages;
        self.free_behind(start, wanted) >= wanted
    }

    /// Grows the used extent at `start` to `pages` in place. After `growth_is_possible`, under the same lock.
    pub(crate) fn grow(&mut self, start: PageNo, pages: u32) -> Taken {
        let tag = *self.tags.at(start);
        let next = start + tag.pages;
        let taken = self.take_run(next, next, pages - tag.pages);
        self.tags.erase(start, tag.pages);
        self.tags.erase(next, taken.pages);
        self.tags.write(start, pages, Kind::Used, tag.flags | taken.flags);
        taken
    }

    /// Makes the used extent at `start` two, the second from `start + keep`.
    pub(crate) fn split(&mut self, start: PageNo, keep: u32) {
        let tag = *self.tags.at(start);
        debug_assert!(keep > 0 && keep < tag.pages);
        self.tags.erase(start, tag.pages);
        self.tags.write(start, keep, Kind::Used, tag.flags);
        self.tags.write(start + keep, tag.pages - keep, Kind::Used, tag.flags);
    }

    /// Gives the used extent at `start` back as `kind`; returns its length.
    pub(crate) fn free_extent(&mut self, start: PageNo, kind: Kind) -> u32 {
        let tag = *self.tags.at(start);
        debug_assert!(tag.kind == Kind::Used && !tag.is_tail, "{tag:?} given back at {start}");
        self.tags.erase(start, tag.pages);
        let flags = if kind == Kind::Cold { 0 } else { tag.flags & flag::FREE };
        self.insert_free(start, tag.pages, kind, flags);
        tag.pages
    }

    /// Takes a free extent of `kind`, largest and oldest first, at most `most` pages of it, so that its
    /// frames can be given back without the lock. [`Arena::free_extent`] returns it.
    pub(crate) fn take_victim(&mut self, kind: Kind, most: u32) -> Option<Taken> {
        let (start, pages) =
            self.bins[kind.index()].largest(&mut self.tags, 1, |_, start, len| Some((start, len)))?;
        // From the high end: the low end is where the next request is placed.
        let count = pages.min(most);
        let taken = self.take_run(start, start + pages - count, count);
        self.tags.at(taken.start).flags = taken.flags;
        Some(taken)
    }

    /// The longest cold extents of at least `min` pages, the longest first.
    pub(crate) fn longest_cold<const N: usize>(&mut self, min: u32) -> [Option<Run>; N] {
        let mut found = [None; N];
        let mut slots = found.iter_mut();
        let _ = self.bins[Kind::Cold.index()].largest(&mut self.tags, N, |_, start, pages| {
            if pages < min {
                return Some(());
            }
            *slots.next()? = Some(Run { start, pages, kind: Kind::Cold });
            None
        });
        found
    }

    /// True if the address space between the mapped pages and the limit is reserved for this arena.
    pub(crate) fn is_reserved(&self) -> bool {
        self.place.reserved
    }

    /// Leaves the address space from `page` on, and all mappings there, to the program for good.
    pub(crate) fn cut_off(&mut self, page: PageNo) {
        self.place.limit = self.place.limit.min(page.max(self.mapped));
    }

    pub(crate) fn flags(&mut self, start: PageNo) -> u8 {
        self.tags.at(start).flags
    }

    pub(crate) fn set_flags(&mut self, start: PageNo, flags: u8) {
        self.tags.at(start).flags = flags;
    }

    /// Length of the used extent that starts at `page`; an error if none does.
    pub(crate) fn used_at(&mut self, page: PageNo) -> Result<u32, Misuse> {
        let tag = *self.tags.at(page);
        match tag.kind {
            Kind::Used if !tag.is_tail => Ok(tag.pages),
            Kind::Warm | Kind::Marked | Kind::Cold => Err(Misuse::AlreadyFree),
            Kind::Used | Kind::Inside => match self.containing(page) {
                Some(Run { start, kind: Kind::Used, .. }) => {
                    Err(Misuse::InsideBlock { start: self.address(start) })
                }
                _ => Err(Misuse::AlreadyFree),
            },
        }
    }

    /// The extent that `page` is in. Walks back to its head: for errors and rare calls.
    pub(crate) fn containing(&mut self, page: PageNo) -> Option<Run> {
        (0..=page).rev().find_map(|start| {
            let tag = *self.tags.at(start);
            let is_head = tag.kind != Kind::Inside && !tag.is_tail;
            is_head.then_some(Run { start, pages: tag.pages, kind: tag.kind })
        })
    }

    /// Writes and clears the tables inside an extent, as smaller extents in its place would.
    #[cfg(test)]
    pub(crate) fn touch_tables(&mut self, page: PageNo, pages: u32) {
        for inner in page + 1..page + pages - 1 {
            self.tags.at(inner).kind = Kind::Inside;
            self.tags.at(inner).pages = 1;
        }
        let (first, end) = (page.div_ceil(UNIT_PAGES), (page + pages) / UNIT_PAGES);
        for unit in first..end {
            let record = (self.place.side + unit as usize * UNIT_SIDE).ptr::<u8>();
            // SAFETY: the table is mapped for the units of what is mapped; a record of zeros is none.
            unsafe { record.write_bytes(0, UNIT_SIDE) };
        }
    }

    /// Checks every invariant by walking the arena; names the first that is broken.
    pub(crate) fn validate(&mut self) -> Result<(), &'static str> {
        let mut sums = [0u64; 3];
        let mut page = 0;
        let mut before = Kind::Used;
        while page < self.mapped {
            let tag = *self.tags.at(page);
            if tag.kind == Kind::Inside || tag.is_tail || tag.pages == 0 {
                return Err("an extent has no head");
            }
            let run = Run { start: page, pages: tag.pages, kind: tag.kind };
            if self.tags.ending_at(page + tag.pages - 1) != run {
                return Err("an extent's tail differs from its head");
            }
            let last = page + tag.pages - 1;
            let near_ends = (page + 1..last).take(VALIDATED).chain((page + 1..last).rev().take(VALIDATED));
            for inner in near_ends {
                if self.tags.at(inner).kind != Kind::Inside {
                    return Err("a tag inside an extent is not empty");
                }
            }
            if tag.kind.is_free() {
                if tag.kind == before {
                    return Err("two free extents of one kind touch");
                }
                sums[tag.kind.index()] += u64::from(tag.pages);
            }
            before = tag.kind;
            page += tag.pages;
        }
        if page != self.mapped {
            return Err("the last extent reaches past the end");
        }
        for kind in FREE_KINDS {
            if self.bins[kind.index()].pages != sums[kind.index()] {
                return Err("a list's page count differs from its extents");
            }
        }
        Ok(())
    }
}
