//! Moves blocks without copying them: growth that does not fit, relocation, exchange of two blocks.
//!
//! A block below [`MOVE_MIN`] is copied, as a copy within the processor's cache is faster than a system call.
//! The page tables of a larger block are moved, at a cost that hardly depends on the length. `mremap` is
//! fastest but costs a map entry, and is used while few entries are spent; after that `UFFDIO_MOVE` is used.

use crate::arena::Taken;
use crate::error::OutOfMemory;
use crate::pages::{Extent, Pages, locate};
use crate::state::{Block, ENTRIES_MAX, LARGE, Use};
use crate::tag::{Kind, flag};
use crate::units::{ALIGN_MAX, MOVE_MIN, PAGE, bytes_of, pages_of};
use core::ptr::NonNull;
use vellum_sys::transfer::{self, Way};
use vellum_sys::{Addr, Span, limits, map};
use vellum_wire::Counter;

/// A used extent: where its records are, where it is, and its flags.
#[derive(Clone, Copy)]
struct Spot {
    block: Block,
    span: Span,
    flags: u8,
}

/// Copies memory that could not be moved, and flushes it, so that the source is empty as after a move.
///
/// # Safety
/// Both are in the caller's hands, and of one length.
unsafe fn bring_back(from: Span, to: Span) {
    // SAFETY: two different blocks of one length; the first is not needed after this.
    unsafe {
        core::ptr::copy_nonoverlapping(from.start.ptr::<u8>(), to.start.ptr(), from.bytes);
        // Memory that cannot be flushed is cleared by hand.
        if map::flush(from).is_err() {
            from.start.ptr::<u8>().write_bytes(0, from.bytes);
        }
    }
}

impl Pages {
    fn spot_of(&self, addr: NonNull<u8>) -> Option<Spot> {
        let block = locate(&mut self.state.lock(), Addr::of(addr.as_ptr())).ok()?;
        Some(self.spot(block))
    }

    fn spot(&self, block: Block) -> Spot {
        let arena = &mut self.state.lock().arenas[block.arena];
        Spot { block, span: arena.span(block.page, block.pages), flags: arena.flags(block.page) }
    }

    /// Changes a block's length, moving it if necessary. Contents stay, up to the lesser length.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the block is unchanged then.
    ///
    /// # Safety
    /// `addr` is the start of a live block, and nobody relies on its old place afterwards.
    pub unsafe fn resize(&self, addr: NonNull<u8>, bytes: usize) -> Result<Extent, OutOfMemory> {
        // SAFETY: `# Safety` of this function is that of `resize_with`.
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
        // SAFETY: `# Safety` of this function is that of `resize_with`.
        unsafe { self.resize_with(addr, bytes, true) }
    }

    /// # Safety
    /// As [`Pages::resize`].
    unsafe fn resize_with(&self, addr: NonNull<u8>, bytes: usize, zero: bool) -> Result<Extent, OutOfMemory> {
        let refused = OutOfMemory { bytes };
        // SAFETY: `addr` is the start of a live block (`# Safety`).
        if let Some(extent) = unsafe { self.stretch(addr, bytes, zero) } {
            return Ok(extent);
        }
        let pages = pages_of(bytes).ok_or(refused)?;
        let old = self.spot_of(addr).ok_or(refused)?;
        // SAFETY: `old` is that live block, and nobody relies on its old place afterwards (`# Safety`).
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
        let refused = OutOfMemory { bytes: old.span.bytes };
        if !align.is_power_of_two() || align > ALIGN_MAX {
            return Err(refused);
        }
        // SAFETY: `old` is that live block, and nobody relies on its old place afterwards (`# Safety`).
        unsafe { self.shift(old, old.block.pages, (align / PAGE).max(1) as u32, false) }.ok_or(refused)
    }

    /// Moves the contents of `old` to a new block of `pages` pages, whose new bytes are cleared if `zero`.
    ///
    /// # Safety
    /// `old` is a live block whose old place nobody relies on afterwards.
    unsafe fn shift(&self, old: Spot, pages: u32, align: u32, zero: bool) -> Option<Extent> {
        let old_pages = old.block.pages;
        let kept = bytes_of(old_pages.min(pages));
        if limits::is_refused_at_once(bytes_of(pages) - kept) {
            return None;
        }
        // A warm place with room is worth a copy when most of the new block is new.
        let warm = || self.state.lock().arenas[LARGE].free_pages(Kind::Warm);
        let roomy = pages >= old_pages.saturating_mul(2) && warm() >= u64::from(pages);
        if kept >= MOVE_MIN && !roomy && old.flags & flag::TAINTED == 0 {
            let (arena, taken) = self.find_pages(pages, align, Use::Empty)?;
            let new = self.spot(Block { arena, page: taken.start, pages });
            if taken.cold() == taken.pages && self.carry(&old, &new, kept) {
                self.leave(&old);
                if pages > old_pages {
                    self.plan_tail(arena, Taken { cold_from: taken.start + old_pages, ..taken });
                }
                return Some(self.as_extent(&new));
            }
            // SAFETY: both are whole blocks, in this caller's hands.
            return Some(unsafe { self.copy(&old, &new, kept) });
        }
        let (arena, taken) = self.find_pages(pages, align, Use::Growing)?;
        let new = self.spot(Block { arena, page: taken.start, pages });
        if zero {
            let [used, _] = new.span.split_at(taken.bytes_before_cold());
            let added = used.from(new.span.start + kept);
            // SAFETY: a part of the new block, which nobody has been given yet.
            unsafe { added.start.ptr::<u8>().write_bytes(0, added.bytes) };
        }
        // SAFETY: both are whole blocks, in this caller's hands.
        Some(unsafe { self.copy(&old, &new, kept) })
    }

    /// Plans huge pages for the cold end of a block that moved and grew.
    fn plan_tail(&self, arena: usize, taken: Taken) {
        let mut state = self.state.lock();
        let advice = state.plan_huge(arena, &taken, Use::Growing);
        let block = state.arenas[arena].span_of(&taken);
        self.after_cold(state, &advice, block);
    }

    fn as_extent(&self, spot: &Spot) -> Extent {
        let addr = NonNull::new(spot.span.start.ptr()).expect("arenas lie above the null page");
        Extent { addr, bytes: spot.span.bytes, zeroed: false }
    }

    /// # Safety
    /// Both are live blocks in the caller's hands, each at least `len` bytes.
    unsafe fn copy(&self, old: &Spot, new: &Spot, len: usize) -> Extent {
        let (from, to) = (old.span.start.ptr::<u8>(), new.span.start.ptr());
        // SAFETY: both are as long (`# Safety`), and two different blocks do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
        let state = self.state.lock();
        state.count(Counter::BytesCopied, len as u64);
        self.give_back(state, old.block.arena, old.block.page);
        self.as_extent(new)
    }

    /// Moves the frames of the first `len` bytes of `from` to the empty block `to`; whether it could.
    fn carry(&self, from: &Spot, to: &Spot, len: usize) -> bool {
        let entries = {
            let state = self.state.lock();
            if state.entries < ENTRIES_MAX { transfer::Entries::Gladly } else { transfer::Entries::None }
        };
        let [moved, _] = from.span.split_at(len);
        // SAFETY: both blocks are in the caller's hands and `to` has no frames.
        let way = unsafe { transfer::transfer(moved, to.span.start, entries) };
        let Ok(way) = way else { return false };
        let Block { arena, page, .. } = to.block;
        let mut state = self.state.lock();
        let mut flags = state.arenas[arena].flags(page) | (from.flags & flag::HUGE);
        if way == Way::Remap && flags & flag::ENTRY == 0 {
            flags |= flag::ENTRY;
            state.entries += 1;
        }
        state.arenas[arena].set_flags(page, flags);
        state.count(Counter::BytesRemapped, len as u64);
        true
    }

    /// Gives back a block whose frames have left. Its separate map entry is joined with its neighbours again.
    fn leave(&self, old: &Spot) {
        let Block { arena, page, .. } = old.block;
        let flags = self.state.lock().arenas[arena].flags(page);
        // SAFETY: nothing is there any more, and the block is in this caller's hands until the next line.
        let joined = flags & flag::ENTRY != 0 && unsafe { map::renew(old.span) }.is_ok();
        let mut state = self.state.lock();
        state.entries -= u32::from(joined && state.entries > 0);
        self.free_cold(&mut state, arena, page);
        state.publish();
    }

    /// Exchanges the contents of two blocks of one length by moving page tables, or else by copying.
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
        let (len, pages) = (a.span.bytes, a.block.pages);
        if len != b.span.bytes {
            return Err(OutOfMemory { bytes: len });
        }
        if a.span == b.span {
            return Ok(());
        }
        if len >= MOVE_MIN && (a.flags | b.flags) & flag::TAINTED == 0 {
            let (arena, taken) = self.find_pages(pages, 1, Use::Empty).ok_or(OutOfMemory { bytes: len })?;
            let between = self.spot(Block { arena, page: taken.start, pages });
            let moved = taken.cold() == taken.pages && self.carry(&a, &between, len);
            if moved {
                if self.carry(&b, &a, len) {
                    if !self.carry(&between, &b, len) {
                        // SAFETY: `b` is empty, `between` holds its new contents, all three are in hand.
                        unsafe { bring_back(between.span, b.span) };
                    }
                    self.leave(&between);
                    return Ok(());
                }
                if !self.carry(&between, &a, len) {
                    // SAFETY: `a` is empty, `between` holds its contents, both are in hand.
                    unsafe { bring_back(between.span, a.span) };
                }
            }
            self.leave(&between);
        }
        // SAFETY: two different live blocks of `len` bytes, both in the caller's hands.
        unsafe { core::ptr::swap_nonoverlapping(a.span.start.ptr::<u8>(), b.span.start.ptr(), len) };
        self.state.lock().count(Counter::BytesCopied, 2 * len as u64);
        Ok(())
    }
}
