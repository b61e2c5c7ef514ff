//! The program's own mappings, as far as they lie within the arenas.
//!
//! A program maps, unmaps and replaces memory by address, and may name any address: one it was given here,
//! one next to that, one it gave back, one that was never this layer's. Every such call is cut into
//! **regions** that have one owner each, under the lock, and each region is dealt with by its owner:
//!
//! | owner | contents | `munmap` | `MAP_FIXED` | changed attributes |
//! | --- | --- | --- | --- | --- |
//! | [`Mapping`](Owner::Mapping) | a mapping handed out here | back to the free lists | stays the program's, tainted | tainted |
//! | [`Block`](Owner::Block) | memory handed out as something else | closed, tainted | tainted | tainted |
//! | [`Nobody`](Owner::Nobody) | free memory, or reserved address space | nothing to do | **claimed** first | a hole: refused |
//! | [`Kernel`](Owner::Kernel) | not this layer's | the kernel's answer | the kernel's answer | the kernel's answer |
//!
//! Invariant: memory that a mapping of the program's occupies is in use here before the kernel is asked to
//! put the mapping there, and stays so until the program has unmapped it. So nothing is handed out twice, in
//! whatever order the program calls. To *claim* a place is to take its free memory off the lists for a
//! mapping that the kernel is about to make; the claim is settled or withdrawn once the kernel has answered.
//!
//! *Tainted* memory has attributes, or contents, that fresh memory has not: it is mapped anew when it is
//! given back.

use crate::error::OutOfMemory;
use crate::huge_window::Range;
use crate::pages::{Extent, Pages, Request, locate};
use crate::state::{ARENAS, LARGE, State, WHOLE};
use crate::tag::{Kind, PageNo, flag};
use crate::units::{ARENA_BYTES, PAGE};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use vellum_sys::lock::Held;
use vellum_sys::{map, thread};

/// How often, and after how long, a claim looks whether frames of free memory are still being dealt with: 0.2
/// s in all.
const AWAY_LOOKS: u32 = 1000;
const AWAY_NS: u64 = 200_000;

/// To whom a region of address space belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Not this layer's.
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
    end: usize,
    /// The extent it is a part of: arena, first page, pages.
    extent: Option<(usize, PageNo, u32)>,
    /// Free memory that somebody has in hand.
    away: bool,
}

impl State {
    fn region(&mut self, at: usize, end: usize) -> Region {
        let all = |owner, end| Region { owner, end, extent: None, away: false };
        if !self.is_init || end <= self.base {
            return all(Owner::Kernel, end);
        }
        if at < self.base {
            return all(Owner::Kernel, self.base.min(end));
        }
        let index = (at - self.base) / ARENA_BYTES;
        if index >= ARENAS {
            let tables_end = self.base + WHOLE;
            let is_table = self.arenas[0].is_reserved() && at < tables_end;
            return if is_table { all(Owner::Block, tables_end.min(end)) } else { all(Owner::Kernel, end) };
        }
        let arena = &mut self.arenas[index];
        let arena_end = arena.address(0) + ARENA_BYTES;
        if !arena.holds(at) {
            // Up to the limit it is reserved, if it is; behind it the program has mapped something.
            let limit = arena.address(arena.limit());
            return match arena.is_reserved() && at < limit {
                true => all(Owner::Nobody, limit.min(end)),
                false => all(Owner::Kernel, arena_end.min(end)),
            };
        }
        let page = arena.page(at);
        let Some((start, pages, kind)) = arena.containing(page) else {
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
            end: arena.address(start + pages).min(end),
            extent: Some((index, start, pages)),
            away: kind == Kind::Used && owner == Owner::Nobody,
        }
    }

    fn add_flags(&mut self, region: &Region, flags: u8) {
        if let Some((arena, start, _)) = region.extent {
            let before = self.arenas[arena].flags(start);
            self.arenas[arena].set_flags(start, before | flags);
        }
    }

    /// Makes the part of a used extent that lies in `at..region.end` an extent of its own; its first page.
    fn cut_out(&mut self, region: &Region, at: usize) -> Option<(usize, PageNo)> {
        let (arena, start, pages) = region.extent?;
        let arena_of = &mut self.arenas[arena];
        let (page, stop) = (arena_of.page(at), arena_of.page(region.end - 1) + 1);
        if page > start {
            arena_of.split(start, page - start);
        }
        if stop < start + pages {
            arena_of.split(page, stop - page);
        }
        Some((arena, page))
    }
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
        if let Ok((arena, page, _)) = locate(&mut state, addr.as_ptr() as usize) {
            let flags = state.arenas[arena].flags(page);
            state.arenas[arena].set_flags(page, flags | flag::MAPPING);
        }
    }

    /// Makes `bytes` bytes from `addr` on a mapping by themselves, if they are one or a part of one, and have
    /// the attributes of fresh memory; whether they do.
    pub fn separate_mapping(&self, addr: NonNull<u8>, bytes: usize) -> bool {
        let mut state = self.state.lock();
        let start = addr.as_ptr() as usize;
        let region = state.region(start, start.saturating_add(bytes));
        let Some((arena, head, _)) = region.extent else { return false };
        let is_plain = state.arenas[arena].flags(head) & (flag::MAPPING | flag::TAINTED) == flag::MAPPING;
        is_plain && region.end == start + bytes && state.cut_out(&region, start).is_some()
    }

    /// Who owns the memory from `at` on, and up to where, at most `end`.
    pub fn owner(&self, at: usize, end: usize) -> (Owner, usize) {
        let region = self.state.lock().region(at, end);
        (region.owner, region.end)
    }

    /// Gives up what the program has mapped from `at` on, one region of it, at most up to `end`; both
    /// page-aligned. Returns whose that was, and where it ends. The caller asks the kernel to unmap the
    /// [`Owner::Kernel`]'s part.
    ///
    /// # Safety
    /// Nobody uses that memory any more.
    pub unsafe fn unmap(&self, at: usize, end: usize) -> (Owner, usize) {
        let mut state = self.state.lock();
        let region = state.region(at, end);
        match region.owner {
            Owner::Mapping => {
                if let Some((arena, page)) = state.cut_out(&region, at) {
                    self.give_back(state, arena, page);
                }
            }
            Owner::Block if region.extent.is_some() => {
                // The program unmaps what it has from malloc: the memory goes, its place stays ours until the
                // block is freed.
                state.add_flags(&region, flag::TAINTED);
                // SAFETY: the program gives this memory up; without a map entry to spare it keeps its frames.
                let _ = unsafe { map::close(at, region.end - at) };
            }
            _ => {}
        }
        (region.owner, region.end)
    }

    /// Notes that the program is about to change attributes of the memory from `addr` on, `bytes` long, so
    /// that it is mapped anew when it is given back. Returns the bytes before the first that is not mapped as
    /// far as the program knows.
    pub fn taint(&self, addr: *const u8, bytes: usize) -> usize {
        let mut state = self.state.lock();
        let end = (addr as usize).saturating_add(bytes);
        let mut at = addr as usize;
        while at < end {
            let region = state.region(at, end);
            match region.owner {
                Owner::Nobody => return at - addr as usize,
                Owner::Mapping | Owner::Block => state.add_flags(&region, flag::TAINTED),
                Owner::Kernel => {}
            }
            at = region.end;
        }
        bytes
    }

    /// Leaves the memory in `start..end`, which the program has sealed, to the kernel for good.
    pub fn seal(&self, start: usize, end: usize) {
        let mut state = self.state.lock();
        let mut at = start;
        while at < end {
            let region = state.region(at, end);
            if matches!(region.owner, Owner::Mapping | Owner::Block)
                && let Some((arena, page)) = state.cut_out(&region, at)
            {
                state.arenas[arena].set_flags(page, flag::SEALED);
            }
            at = region.end;
        }
    }

    /// Gives the frames of pages of zeros in `start..end` back, where they are the program's.
    ///
    /// # Safety
    /// Nobody writes there meanwhile.
    pub unsafe fn flush_zeros(&self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let (owner, stop) = self.owner(at, end);
            if owner == Owner::Mapping {
                for page in (at..stop).step_by(PAGE).filter(|&page| map::is_resident(page) == Some(true)) {
                    // SAFETY: a page of the program's, which it registers and so can read.
                    let words = unsafe { core::slice::from_raw_parts(page as *const u64, PAGE / 8) };
                    if words.iter().all(|&word| word == 0) {
                        // SAFETY: it reads as before, and nobody writes there.
                        let _ = unsafe { map::flush(page, PAGE) };
                    }
                }
            }
            at = stop;
        }
    }

    /// Takes the place from `start` on for a mapping that the kernel is about to make there, in the place of
    /// what is there if `replace`. Whether any of it is this layer's: then the kernel must be asked for
    /// exactly this place (`MAP_FIXED`), and the claim be ended by [`Pages::settle_claim`] or
    /// [`Pages::withdraw_claim`].
    ///
    /// # Errors
    /// [`Unclaimed`]; nothing has changed then.
    pub fn claim(&self, start: usize, bytes: usize, replace: bool) -> Result<bool, Unclaimed> {
        let end = start.checked_add(bytes).ok_or(Unclaimed::Refused)?;
        let mut state = self.lock_with_all_at_home(start, end)?;
        state.annex_is_lost_to(start, end);
        let (mut ours, mut at) = (false, start);
        while at < end {
            let region = state.region(at, end);
            match (region.owner, region.extent) {
                (Owner::Kernel, _) => {}
                (Owner::Block, None) => return Err(Unclaimed::Refused),
                // Address space that was never handed out is reserved: occupied, to who asks.
                (Owner::Mapping | Owner::Block, _) | (Owner::Nobody, None) if !replace => {
                    return Err(Unclaimed::Occupied);
                }
                _ => ours = true,
            }
            if ours && !replace && region.owner == Owner::Kernel {
                return Err(Unclaimed::Occupied);
            }
            at = region.end;
        }
        if !ours {
            return Ok(false);
        }
        at = start;
        while at < end {
            let region = state.region(at, end);
            match (region.owner, region.extent) {
                (Owner::Nobody, Some((arena, head, _))) => {
                    let first = state.arenas[arena].page(at);
                    let pages = ((region.end - at) / PAGE) as u32;
                    let taken = state.arenas[arena].take_run(head, first, pages);
                    state.arenas[arena].set_flags(first, flag::CLAIMED | flag::MAPPING | flag::TAINTED);
                    state.book_taken(&taken);
                    if arena == LARGE {
                        state.windows.drop_within(Range { start: at, end: region.end });
                    }
                }
                (Owner::Nobody, None) => {
                    let arena = (at - state.base) / ARENA_BYTES;
                    let page = state.arenas[arena].page(at);
                    state.arenas[arena].cut_off(page);
                }
                (Owner::Mapping | Owner::Block, _) => state.add_flags(&region, flag::TAINTED),
                (Owner::Kernel, _) => {}
            }
            at = region.end;
        }
        state.publish();
        Ok(true)
    }

    /// The lock, at a moment when nobody has free memory of the range in hand.
    fn lock_with_all_at_home(&self, start: usize, end: usize) -> Result<Held<'_, State>, Unclaimed> {
        let nobody = AtomicU32::new(0);
        for _ in 0..AWAY_LOOKS {
            let mut state = self.state.lock();
            let (mut at, mut away) = (start, false);
            while at < end && !away {
                let region = state.region(at, end);
                away = region.away;
                at = region.end;
            }
            if !away {
                return Ok(state);
            }
            drop(state);
            thread::wait(&nobody, 0, AWAY_NS);
        }
        Err(Unclaimed::Refused)
    }

    /// Ends a claim: the kernel has made the mapping.
    pub fn settle_claim(&self, start: usize, bytes: usize) {
        let mut state = self.state.lock();
        self.end_claim(&mut state, start, bytes, |state, arena, page| {
            let flags = state.arenas[arena].flags(page);
            state.arenas[arena].set_flags(page, flags & !flag::CLAIMED);
        });
    }

    /// Ends a claim: the kernel has not made the mapping. What the claim took is free again.
    pub fn withdraw_claim(&self, start: usize, bytes: usize) {
        let mut state = self.state.lock();
        self.end_claim(&mut state, start, bytes, |state, arena, page| self.free_extent(state, arena, page));
        state.publish();
    }

    fn end_claim(
        &self,
        state: &mut State,
        start: usize,
        bytes: usize,
        mut deal: impl FnMut(&mut State, usize, PageNo),
    ) {
        let end = start.saturating_add(bytes);
        let mut at = start;
        while at < end {
            let region = state.region(at, end);
            if let Some((arena, head, _)) = region.extent
                && state.arenas[arena].flags(head) & flag::CLAIMED != 0
            {
                deal(state, arena, head);
            }
            at = region.end;
        }
    }

    /// Heeds a program's wish for huge pages in `at..end`, which has one owner: what of a large block has
    /// none yet is granted them at once. The layer decides by itself elsewhere.
    pub fn request_huge(&self, at: usize, end: usize) {
        let mut state = self.state.lock();
        let region = state.region(at, end);
        let Some((LARGE, start, pages)) = region.extent else { return };
        let block = Range {
            start: state.arenas[LARGE].address(start),
            end: state.arenas[LARGE].address(start + pages),
        };
        let Some(range) = state.windows.grant_all(block) else { return };
        state.granted_to = state.granted_to.max(range.end);
        drop(state);
        crate::state::Advice::huge(Some(range)).give();
    }
}
