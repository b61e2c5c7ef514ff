//! The program's own mappings within the arenas.
//!
//! A program maps, unmaps and replaces memory by address, and may pass any address: of memory in use here,
//! next to it, already freed, or never this layer's. Every such call is cut into **regions** that have one
//! owner each, under the lock, and each region is handled by the rule for its owner:
//!
//! | owner | contents | `munmap` | `MAP_FIXED` | changed attributes |
//! | --- | --- | --- | --- | --- |
//! | [`Mapping`](Owner::Mapping) | a mapping handed out here | back to the free lists | stays the program's, tainted | tainted |
//! | [`Block`](Owner::Block) | memory handed out as something else | made inaccessible, tainted | tainted | tainted |
//! | [`Nobody`](Owner::Nobody) | free memory, or reserved address space | nothing to do | **claimed** first | a hole: refused |
//! | [`Kernel`](Owner::Kernel) | not this layer's | the kernel's answer | the kernel's answer | the kernel's answer |
//!
//! *Tainted* memory has other attributes or contents than fresh memory, and is mapped anew when freed. To
//! *claim* a region is to take its free memory off the lists for a mapping that the kernel is about to make.
//! The claim is confirmed or withdrawn after the kernel's answer.
//!
//! Invariant: memory under one of the program's mappings is in use here before the kernel makes the mapping,
//! and until the program has unmapped it. Nothing is handed out twice, whatever the order of the program's
//! calls.

use crate::error::OutOfMemory;
use crate::pages::{Extent, Pages, Request, locate};
use crate::state::{ARENAS, Block, LARGE, State};
use crate::tag::{Kind, PageNo, Run, flag};
use crate::units::{ARENA_BYTES, PAGE};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use vellum_sys::lock::Held;
use vellum_sys::{Addr, Span, map, thread};

/// Checks, and the time between two, while a claim waits for a thread with free memory in hand.
const AWAY_CHECKS: u32 = 1000;
const AWAY_NS: u64 = 200_000;

/// To whom a region of address space belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Memory of neither this layer nor the program's mappings here.
    Kernel,
    /// This layer's, and free.
    Nobody,
    /// The program's: a mapping.
    Mapping,
    /// The program's, handed out as a block, or the layer's own tables.
    Block,
}

/// Why a place cannot be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclaimed {
    /// Something is mapped there, and was not to be replaced.
    Occupied,
    /// The place cannot be given up: the layer's tables lie there, or its memory is being dealt with.
    Refused,
}

/// A stretch of address space with one owner.
struct Region {
    owner: Owner,
    span: Span,
    extent: Option<Block>,
    /// Free memory that another thread has in hand.
    away: bool,
}

impl State {
    fn region(&mut self, range: Span) -> Region {
        let (at, whole) = (range.start, self.whole());
        let all = |owner, end| Region { owner, span: range.before(end), extent: None, away: false };
        if !self.is_init || range.end() <= whole.start {
            return all(Owner::Kernel, range.end());
        }
        if at < whole.start {
            return all(Owner::Kernel, whole.start);
        }
        let index = (at - whole.start) / ARENA_BYTES;
        if index >= ARENAS {
            let is_table = self.arenas[0].is_reserved() && whole.contains(at);
            return if is_table { all(Owner::Block, whole.end()) } else { all(Owner::Kernel, range.end()) };
        }
        let arena = &mut self.arenas[index];
        let arena_end = arena.address(0) + ARENA_BYTES;
        if !arena.mapped_span().contains(at) {
            // Up to the limit it is reserved, if it is; behind it the program has mapped something.
            let limit = arena.whole().end();
            return match arena.is_reserved() && at < limit {
                true => all(Owner::Nobody, limit),
                false => all(Owner::Kernel, arena_end),
            };
        }
        let page = arena.page(at);
        let Some(Run { start, pages, kind }) = arena.containing(page) else {
            return all(Owner::Block, at + PAGE);
        };
        let flags = arena.flags(start);
        let owner = match kind {
            Kind::Used if flags & flag::SEALED != 0 => Owner::Kernel,
            Kind::Used if flags & flag::AWAY != 0 => Owner::Nobody,
            Kind::Used if flags & flag::MAPPING != 0 => Owner::Mapping,
            Kind::Used => Owner::Block,
            _ => Owner::Nobody,
        };
        Region {
            owner,
            span: range.before(arena.address(start + pages)),
            extent: Some(Block { arena: index, page: start, pages }),
            away: kind == Kind::Used && owner == Owner::Nobody,
        }
    }

    fn add_flags(&mut self, region: &Region, flags: u8) {
        if let Some(Block { arena, page, .. }) = region.extent {
            let before = self.arenas[arena].flags(page);
            self.arenas[arena].set_flags(page, before | flags);
        }
    }

    /// Makes a region that is part of a used extent a separate extent; returns its arena and first page.
    fn cut_out(&mut self, region: &Region) -> Option<(usize, PageNo)> {
        let Block { arena, page: start, pages } = region.extent?;
        let arena_of = &mut self.arenas[arena];
        let (page, stop) = (arena_of.page(region.span.start), arena_of.page(region.span.end() - 1) + 1);
        if page > start {
            arena_of.split(start, page - start);
        }
        if stop < start + pages {
            arena_of.split(page, stop - page);
        }
        Some((arena, page))
    }

    /// Calls `visit` with each region of `range`, in order, until it returns an error.
    fn for_each_region<E>(
        &mut self,
        range: Span,
        mut visit: impl FnMut(&mut State, &Region) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = range;
        while !rest.is_empty() {
            let region = self.region(rest);
            visit(self, &region)?;
            rest = rest.from(region.span.end());
        }
        Ok(())
    }
}

/// The `bytes` addresses from `start` on, up to the last address.
fn clamped(start: Addr, bytes: usize) -> Span {
    Span::between(start, start.saturating_add(bytes))
}

impl Pages {
    /// Hands out `bytes` zeroed bytes as a mapping of the program's own.
    ///
    /// # Errors
    /// [`OutOfMemory`] as [`Pages::alloc`].
    pub fn map(&self, bytes: usize) -> Result<Extent, OutOfMemory> {
        let extent = self.alloc(Request { bytes, align: PAGE, zero: true })?;
        self.make_mapping(extent.addr);
        Ok(extent)
    }

    /// Makes the block that starts at `addr` a mapping of the program's own.
    pub fn make_mapping(&self, addr: NonNull<u8>) {
        let mut state = self.state.lock();
        if let Ok(Block { arena, page, .. }) = locate(&mut state, Addr::of(addr.as_ptr())) {
            let flags = state.arenas[arena].flags(page);
            state.arenas[arena].set_flags(page, flags | flag::MAPPING);
        }
    }

    /// Makes `bytes` bytes from `addr` on a separate mapping, if they are in one mapping with the attributes
    /// of fresh memory. Returns whether they are.
    pub fn separate_mapping(&self, addr: NonNull<u8>, bytes: usize) -> bool {
        let mut state = self.state.lock();
        let region = state.region(clamped(Addr::of(addr.as_ptr()), bytes));
        let Some(Block { arena, page, .. }) = region.extent else { return false };
        let is_plain = state.arenas[arena].flags(page) & (flag::MAPPING | flag::TAINTED) == flag::MAPPING;
        is_plain && region.span.bytes == bytes && state.cut_out(&region).is_some()
    }

    /// The first part of `range` that has one owner, and who that is.
    pub fn owner(&self, range: Span) -> (Owner, Span) {
        let region = self.state.lock().region(range);
        (region.owner, region.span)
    }

    /// Gives up the first part of `range`, whole pages, that has one owner. Returns who that was, and the
    /// part. The caller has the kernel unmap the part of [`Owner::Kernel`].
    ///
    /// # Safety
    /// The memory is not used any more.
    pub unsafe fn unmap(&self, range: Span) -> (Owner, Span) {
        let mut state = self.state.lock();
        let region = state.region(range);
        match region.owner {
            Owner::Mapping => {
                if let Some((arena, page)) = state.cut_out(&region) {
                    self.give_back(state, arena, page);
                }
            }
            Owner::Block if region.extent.is_some() => {
                // The program unmaps a block of malloc's: its place stays ours until the block is freed.
                state.add_flags(&region, flag::TAINTED);
                // SAFETY: the program gives this memory up; without a map entry to spare it keeps its frames.
                let _ = unsafe { map::close(region.span) };
            }
            _ => {}
        }
        (region.owner, region.span)
    }

    /// Notes that the program is about to change attributes of the `bytes` bytes from `addr` on. They are
    /// mapped anew when freed. Returns the bytes before the first that the program has not mapped.
    pub fn taint(&self, addr: *const u8, bytes: usize) -> usize {
        let range = clamped(Addr::of(addr), bytes);
        let visited = self.state.lock().for_each_region(range, |state, region| {
            match region.owner {
                Owner::Nobody => return Err(region.span.start - range.start),
                Owner::Mapping | Owner::Block => state.add_flags(region, flag::TAINTED),
                Owner::Kernel => {}
            }
            Ok(())
        });
        visited.err().unwrap_or(bytes)
    }

    /// Leaves memory that the program has sealed to the kernel for good.
    pub fn seal(&self, sealed: Span) {
        let _ = self.state.lock().for_each_region(sealed, |state, region| {
            if matches!(region.owner, Owner::Mapping | Owner::Block)
                && let Some((arena, page)) = state.cut_out(region)
            {
                state.arenas[arena].set_flags(page, flag::SEALED);
            }
            Ok::<(), ()>(())
        });
    }

    /// Gives the frames of pages of zeros in `range` back, where they are the program's.
    ///
    /// # Safety
    /// No thread writes there meanwhile.
    pub unsafe fn flush_zeros(&self, range: Span) {
        let mut rest = range;
        while !rest.is_empty() {
            let (owner, part) = self.owner(rest);
            rest = rest.from(part.end());
            let is_resident = |&page: &Addr| map::is_resident(page) == Some(true);
            for page in part.pages().filter(|_| owner == Owner::Mapping).filter(is_resident) {
                // SAFETY: a page of the program's, which it registers and so can read.
                let words = unsafe { core::slice::from_raw_parts(page.ptr::<u64>(), PAGE / 8) };
                if words.iter().all(|&word| word == 0) {
                    // SAFETY: the page reads as before, and nobody writes there.
                    let _ = unsafe { map::flush(Span::new(page, PAGE)) };
                }
            }
        }
    }

    /// Takes `place` for a mapping that the kernel is about to make there, over existing mappings if
    /// `replace`. Returns whether any of it is this layer's: then the kernel must be given exactly this place
    /// (`MAP_FIXED`), and [`Pages::confirm_claim`] or [`Pages::withdraw_claim`] ends the claim.
    ///
    /// # Errors
    /// [`Unclaimed`]; nothing has changed then.
    pub fn claim(&self, place: Span, replace: bool) -> Result<bool, Unclaimed> {
        place.start.checked_add(place.bytes).ok_or(Unclaimed::Refused)?;
        let mut state = self.lock_with_all_at_home(place)?;
        state.annex_is_lost_to(place);
        let mut ours = false;
        state.for_each_region(place, |_, region| {
            match (region.owner, region.extent) {
                (Owner::Kernel, _) => {}
                (Owner::Block, None) => return Err(Unclaimed::Refused),
                // Address space that was never handed out is reserved, and so occupied for the program.
                (Owner::Mapping | Owner::Block, _) | (Owner::Nobody, None) if !replace => {
                    return Err(Unclaimed::Occupied);
                }
                _ => ours = true,
            }
            if ours && !replace && region.owner == Owner::Kernel {
                return Err(Unclaimed::Occupied);
            }
            Ok(())
        })?;
        if !ours {
            return Ok(false);
        }
        state.for_each_region(place, |state, region| {
            match (region.owner, region.extent) {
                (Owner::Nobody, Some(Block { arena, page: head, .. })) => {
                    let first = state.arenas[arena].page(region.span.start);
                    let pages = region.span.page_count().get() as u32;
                    let taken = state.arenas[arena].take_run(head, first, pages);
                    state.arenas[arena].set_flags(first, flag::CLAIMED | flag::MAPPING | flag::TAINTED);
                    state.book_taken(&taken);
                    if arena == LARGE {
                        state.windows.drop_within(region.span);
                    }
                }
                (Owner::Nobody, None) => {
                    let arena = (region.span.start - state.start) / ARENA_BYTES;
                    let page = state.arenas[arena].page(region.span.start);
                    state.arenas[arena].cut_off(page);
                }
                (Owner::Mapping | Owner::Block, _) => state.add_flags(region, flag::TAINTED),
                (Owner::Kernel, _) => {}
            }
            Ok(())
        })?;
        state.publish();
        Ok(true)
    }

    /// The lock, at a moment when no thread has free memory of `place` in hand.
    fn lock_with_all_at_home(&self, place: Span) -> Result<Held<'_, State>, Unclaimed> {
        let nobody = AtomicU32::new(0);
        for _ in 0..AWAY_CHECKS {
            let mut state = self.state.lock();
            let away = |_: &mut State, region: &Region| if region.away { Err(()) } else { Ok(()) };
            if state.for_each_region(place, away).is_ok() {
                return Ok(state);
            }
            drop(state);
            thread::wait(&nobody, 0, AWAY_NS);
        }
        Err(Unclaimed::Refused)
    }

    /// Ends a claim: the kernel has made the mapping.
    pub fn confirm_claim(&self, place: Span) {
        end_claim(&mut self.state.lock(), place, |state, arena, page| {
            let flags = state.arenas[arena].flags(page);
            state.arenas[arena].set_flags(page, flags & !flag::CLAIMED);
        });
    }

    /// Ends a claim: the kernel has not made the mapping. Memory that the claim took is free again.
    pub fn withdraw_claim(&self, place: Span) {
        let mut state = self.state.lock();
        end_claim(&mut state, place, |state, arena, page| self.free_extent(state, arena, page));
        state.publish();
    }

    /// Follows a program's request for huge pages in `range`, which has one owner: all of a large block is
    /// granted them at once. Other memory gets them by the rules of `huge_window`.
    pub fn request_huge(&self, range: Span) {
        let mut state = self.state.lock();
        let Some(Block { arena: LARGE, page, pages }) = state.region(range).extent else { return };
        let block = state.arenas[LARGE].span(page, pages);
        let Some(granted) = state.windows.grant_all(block) else { return };
        state.granted_to = state.granted_to.max(granted.end());
        drop(state);
        crate::state::Advice::huge(Some(granted)).give();
    }
}

/// Calls `finish` with the arena and first page of each extent that is claimed in `place`.
fn end_claim(state: &mut State, place: Span, mut finish: impl FnMut(&mut State, usize, PageNo)) {
    let _ = state.for_each_region(place, |state, region| {
        if let Some(Block { arena, page, .. }) = region.extent
            && state.arenas[arena].flags(page) & flag::CLAIMED != 0
        {
            finish(state, arena, page);
        }
        Ok::<(), ()>(())
    });
}
