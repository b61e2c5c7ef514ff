//! Changing where a block is without copying it: growth that does not fit, relocation, exchange.
//!
//! A block below [`MOVE_MIN`] is copied: in a cache that is warm anyway a copy is faster than a system call.
//! From there on its page tables move, at a cost that hardly depends on the length: by `mremap`, which is
//! fastest and leaves the block a map entry of its own, while few blocks have one, and by `UFFDIO_MOVE` after
//! that.

use crate::arena::Taken;
use crate::error::OutOfMemory;
use crate::pages::{Extent, Pages, locate};
use crate::state::{ENTRIES_MAX, LARGE, Use};
use crate::tag::{Kind, PageNo, flag};
use crate::units::{ALIGN_MAX, MOVE_MIN, PAGE, pages_of};
use core::ptr::NonNull;
use vellum_sys::transfer::{self, Way};
use vellum_sys::{limits, map};
use vellum_wire::Counter;

/// A used extent, by where its records are.
#[derive(Clone, Copy)]
struct Spot {
    arena: usize,
    page: PageNo,
    pages: u32,
    start: usize,
    flags: u8,
}

/// Copies what could not be moved, and flushes where it was, so that the place is empty as after a move.
///
/// # Safety
/// Both are in the caller's hands, at least `len` bytes each.
unsafe fn bring_back(from: &Spot, to: &Spot, len: usize) {
    // SAFETY: two different blocks do not overlap; the first is not needed after this.
    unsafe {
        core::ptr::copy_nonoverlapping(from.start as *const u8, to.start as *mut u8, len);
        // If not even this works, zeros will do as well.
        if map::flush(from.start, len).is_err() {
            (from.start as *mut u8).write_bytes(0, len);
        }
    }
}

impl Pages {
    fn spot_of(&self, addr: NonNull<u8>) -> Option<Spot> {
        let mut state = self.state.lock();
        let start = addr.as_ptr() as usize;
        let (arena, page, pages) = locate(&mut state, start).ok()?;
        let flags = state.arenas[arena].flags(page);
        Some(Spot { arena, page, pages, start, flags })
    }

    /// Changes a block's length, moving it if it cannot grow where it is. Contents are kept up to the smaller
    /// length.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the block is unchanged then.
    ///
    /// # Safety
    /// `addr` is the start of a live block, and nobody relies on its old place afterwards.
    pub unsafe fn resize(&self, addr: NonNull<u8>, bytes: usize) -> Result<Extent, OutOfMemory> {
        // SAFETY: passed on.
        unsafe { self.resize_with(addr, bytes, false) }
    }

    /// [`Pages::resize`] whose new bytes read as zero.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn resize_zeroed(&self, addr: NonNull<u8>, bytes: usize) -> Result<Extent, OutOfMemory> {
        // SAFETY: passed on.
        unsafe { self.resize_with(addr, bytes, true) }
    }

    /// # Safety
    /// As [`Pages::resize`].
    unsafe fn resize_with(&self, addr: NonNull<u8>, bytes: usize, zero: bool) -> Result<Extent, OutOfMemory> {
        let refused = OutOfMemory { bytes };
        // SAFETY: by this function's condition.
        if let Some(extent) = unsafe { self.stretch(addr, bytes, zero) } {
            return Ok(extent);
        }
        let pages = pages_of(bytes).ok_or(refused)?;
        let old = self.spot_of(addr).ok_or(refused)?;
        // SAFETY: as above; `old` is that block.
        unsafe { self.shift(old, pages, 1, zero) }.ok_or(refused)
    }

    /// Moves a block to another place with the same contents; returns where it is now.
    ///
    /// # Errors
    /// [`OutOfMemory`] when there is no place; the block is unchanged then.
    ///
    /// # Safety
    /// As [`Pages::resize`].
    pub unsafe fn relocate(&self, addr: NonNull<u8>, align: usize) -> Result<Extent, OutOfMemory> {
        let old = self.spot_of(addr).ok_or(OutOfMemory { bytes: 0 })?;
        let refused = OutOfMemory { bytes: old.pages as usize * PAGE };
        if !align.is_power_of_two() || align > ALIGN_MAX {
            return Err(refused);
        }
        // SAFETY: by this function's condition; `old` is that block.
        unsafe { self.shift(old, old.pages, (align / PAGE).max(1) as u32, false) }.ok_or(refused)
    }

    /// Puts the contents of `old` into a new block of `pages` pages, new bytes cleared if `zero`, and gives
    /// `old` back.
    ///
    /// # Safety
    /// `old` is a live block whose old place nobody relies on afterwards.
    unsafe fn shift(&self, old: Spot, pages: u32, align: u32, zero: bool) -> Option<Extent> {
        let kept = old.pages.min(pages) as usize * PAGE;
        if limits::is_refused_at_once(pages as usize * PAGE - kept) {
            return None;
        }
        // A warm place with room is worth a copy when most of the new block is new.
        let warm = || self.state.lock().arenas[LARGE].free_pages(Kind::Warm);
        let roomy = pages >= old.pages.saturating_mul(2) && warm() >= u64::from(pages);
        if kept >= MOVE_MIN && !roomy && old.flags & flag::TAINTED == 0 {
            let (arena, taken) = self.find_pages(pages, align, Use::Empty)?;
            let new = self.spot(arena, taken.start, pages);
            if taken.cold() == taken.pages && self.carry(&old, &new, kept) {
                self.leave(&old);
                if pages > old.pages {
                    self.plan_tail(arena, Taken { cold_from: taken.start + old.pages, ..taken });
                }
                return Some(self.as_extent(&new));
            }
            // SAFETY: both are whole blocks, in this caller's hands.
            return Some(unsafe { self.copy(&old, &new, kept) });
        }
        let (arena, taken) = self.find_pages(pages, align, Use::Growing)?;
        let new = self.spot(arena, taken.start, pages);
        if zero {
            let used = (taken.cold_from - taken.start) as usize * PAGE;
            // SAFETY: the new block's pages behind what is kept.
            unsafe { ((new.start + kept) as *mut u8).write_bytes(0, used.saturating_sub(kept)) };
        }
        // SAFETY: as above.
        Some(unsafe { self.copy(&old, &new, kept) })
    }

    /// Sees to huge pages for the cold end of a block that moved and grew.
    fn plan_tail(&self, arena: usize, taken: Taken) {
        let mut state = self.state.lock();
        let advice = state.plan_huge(arena, &taken, Use::Growing);
        let (start, end) = (
            state.arenas[arena].address(taken.start),
            state.arenas[arena].address(taken.start + taken.pages),
        );
        self.after_cold(state, &advice, start, end);
    }

    fn spot(&self, arena: usize, page: PageNo, pages: u32) -> Spot {
        let mut state = self.state.lock();
        let flags = state.arenas[arena].flags(page);
        Spot { arena, page, pages, start: state.arenas[arena].address(page), flags }
    }

    fn as_extent(&self, spot: &Spot) -> Extent {
        let addr = NonNull::new(spot.start as *mut u8).expect("arenas lie above the null page");
        Extent { addr, bytes: spot.pages as usize * PAGE, zeroed: false }
    }

    /// # Safety
    /// Both are live blocks in the caller's hands, each at least `len` bytes.
    unsafe fn copy(&self, old: &Spot, new: &Spot, len: usize) -> Extent {
        // SAFETY: two different blocks do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(old.start as *const u8, new.start as *mut u8, len) };
        let state = self.state.lock();
        state.count(Counter::BytesCopied, len as u64);
        self.give_back(state, old.arena, old.page);
        self.as_extent(new)
    }

    /// Moves the frames of the first `len` bytes of `from` to the empty block `to`; whether it could.
    fn carry(&self, from: &Spot, to: &Spot, len: usize) -> bool {
        let entries = {
            let state = self.state.lock();
            if state.entries < ENTRIES_MAX { transfer::Entries::Gladly } else { transfer::Entries::None }
        };
        // SAFETY: both blocks are in the caller's hands and `to` has no frames.
        let way = unsafe { transfer::transfer(from.start, to.start, len, entries) };
        let Ok(way) = way else { return false };
        let mut state = self.state.lock();
        let mut flags = state.arenas[to.arena].flags(to.page) | (from.flags & flag::HUGE);
        if way == Way::Remap && flags & flag::ENTRY == 0 {
            flags |= flag::ENTRY;
            state.entries += 1;
        }
        state.arenas[to.arena].set_flags(to.page, flags);
        state.count(Counter::BytesRemapped, len as u64);
        true
    }

    /// Gives back a block whose frames have left. A map entry of its own is joined to its neighbours again.
    fn leave(&self, old: &Spot) {
        let flags = self.state.lock().arenas[old.arena].flags(old.page);
        // SAFETY: nothing is there any more, and the block is in this caller's hands until the next line.
        let joined =
            flags & flag::ENTRY != 0 && unsafe { map::renew(old.start, old.pages as usize * PAGE) }.is_ok();
        let mut state = self.state.lock();
        state.entries -= u32::from(joined && state.entries > 0);
        self.free_cold(&mut state, old.arena, old.page);
        state.publish();
    }

    /// Exchanges the contents of two blocks of one length by moving page tables; by copying where that is not
    /// possible or does not pay.
    ///
    /// # Errors
    /// [`OutOfMemory`] if either is no live block, their lengths differ, or there is no address space to
    /// exchange through; nothing has changed then.
    ///
    /// # Safety
    /// Both are in the caller's hands.
    pub unsafe fn swap(&self, a: NonNull<u8>, b: NonNull<u8>) -> Result<(), OutOfMemory> {
        let (Some(a), Some(b)) = (self.spot_of(a), self.spot_of(b)) else {
            return Err(OutOfMemory { bytes: 0 });
        };
        let len = a.pages as usize * PAGE;
        if a.pages != b.pages {
            return Err(OutOfMemory { bytes: len });
        }
        if a.start == b.start {
            return Ok(());
        }
        if len >= MOVE_MIN && (a.flags | b.flags) & flag::TAINTED == 0 {
            let (arena, taken) = self.find_pages(a.pages, 1, Use::Empty).ok_or(OutOfMemory { bytes: len })?;
            let between = self.spot(arena, taken.start, a.pages);
            let moved = taken.cold() == taken.pages && self.carry(&a, &between, len);
            if moved {
                if self.carry(&b, &a, len) {
                    if !self.carry(&between, &b, len) {
                        // SAFETY: `b` is empty, `between` holds its new contents, all three are in hand.
                        unsafe { bring_back(&between, &b, len) };
                    }
                    self.leave(&between);
                    return Ok(());
                }
                if !self.carry(&between, &a, len) {
                    // SAFETY: as above, the other way round.
                    unsafe { bring_back(&between, &a, len) };
                }
            }
            self.leave(&between);
        }
        // SAFETY: two different live blocks of `len` bytes, both in the caller's hands.
        unsafe { core::ptr::swap_nonoverlapping(a.start as *mut u8, b.start as *mut u8, len) };
        self.state.lock().count(Counter::BytesCopied, 2 * len as u64);
        Ok(())
    }
}
