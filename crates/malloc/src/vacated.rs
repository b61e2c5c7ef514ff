//! Vacated pages: pages of a slab that are returned to the kernel while other pages of the slab hold blocks
//! in use.
//!
//! A page can be returned when every block that touches it is free. The links and seals of these blocks are
//! lost. All blocks that touch a vacated page are therefore off every list, and the page's bit means that
//! they are free.
//!
//! ```text
//! pages     ┌──────────┬──────────┬──────────┬──────────┐
//!           │ used     │ vacated  │ vacated  │ used     │
//! blocks    └──┬────┬──┴─┬────┬───┴┬────┬────┴┬────┬────┘
//!            free used  free free free free  free used
//!            listed     off the lists        listed
//! ```
//!
//! Pages are vacated inside the heap's gate (its lock). Meanwhile the owner's thread may be on a fast path,
//! which only pushes blocks in front of `free`; lists are taken inside the gate only. The holder of the gate
//! may therefore change the list *behind* the head, and never writes `free`. If the head's page is vacated,
//! the other free blocks are on the list `kept`. The list `free` then has only blocks freed since, and ends
//! where a link leads to a vacated page. The head and count of the list of other threads' frees (`remote`)
//! stay: when the owner takes that list, blocks that have left the list also count as freed.
//!
//! While a page is vacated, [`Slab::limit`] is 0. Each free by the owner thus leaves the fast path for
//! another check ([`Slab::is_vacated`]), as a block freed twice has no seal there.
//!
//! # Invariants
//! * A block that touches a vacated page is free, and on no list.
//! * If a slab with vacated pages is put to sleep, its list never becomes a heap's list before the slab
//!   wakes.
//! * A page is used again only when the remote list's count has been taken: see [`Slab::restore`].

use crate::class::GRANULE;
use crate::slab::{Block, Slab};
use crate::space::block_at;
use core::ptr::null_mut;
use core::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use vellum_pages::{PAGE, UNIT};

const PAGES: usize = UNIT / PAGE;
const _: () = assert!(PAGES == u16::BITS as usize);
const WORD: usize = u64::BITS as usize;

struct Free([u64; UNIT / GRANULE / WORD]);

impl Free {
    /// Adds a block; false if it is there already.
    fn add(&mut self, index: usize) -> bool {
        let bit = 1 << (index % WORD);
        let is_new = self.0[index / WORD] & bit == 0;
        self.0[index / WORD] |= bit;
        is_new
    }

    fn has(&self, index: usize) -> bool {
        self.0[index / WORD] & 1 << (index % WORD) != 0
    }
}

/// The pages from `first` to `last`, as bits.
fn pages_between(first: usize, last: usize) -> u16 {
    (u16::MAX << first) & (u16::MAX >> (PAGES - 1 - last))
}

impl Slab {
    #[inline]
    pub(crate) fn vacated(&self) -> u16 {
        self.vacated.load(Acquire)
    }

    fn set_vacated(&self, pages: u16) {
        self.vacated.store(pages, Release);
        let limit = if pages == 0 { self.whole_limit.load(Relaxed) } else { 0 };
        self.limit.store(limit, Release);
    }

    fn pages_of(&self, address: *const u8) -> u16 {
        let offset = address as usize % UNIT;
        let last = (offset + self.bytes.get() as usize - 1).min(UNIT - 1);
        pages_between(offset / PAGE, last / PAGE)
    }

    /// True if the block at `address` is free because it touches a vacated page.
    pub(crate) fn is_vacated(&self, address: *const u8) -> bool {
        self.vacated() & self.pages_of(address) != 0
    }

    /// The blocks that touch `page`: the first, and the last however many are carved.
    fn blocks_of(&self, page: usize) -> (usize, usize) {
        let bytes = self.bytes.get() as usize;
        (page * PAGE / bytes, ((page + 1) * PAGE - 1) / bytes)
    }

    /// The blocks laid out so far that touch one of `pages`, in order.
    fn blocks_on(&self, pages: u16) -> impl Iterator<Item = usize> {
        let carved = usize::from(self.carved.get());
        let mut next = 0;
        (0..PAGES).filter(move |page| pages & 1 << page != 0).flat_map(move |page| {
            let (first, last) = self.blocks_of(page);
            let range = first.max(next)..(last + 1).min(carved);
            next = range.end.max(next);
            range
        })
    }

    /// Free blocks that are on no list.
    pub(crate) fn unlisted(&self) -> u32 {
        self.blocks_on(self.vacated()).count() as u32
    }

    /// Marks the blocks of a list that ends in null or on one of the pages of `ended`. False if the list is
    /// not valid, which is reported when its blocks are handed out.
    fn mark(&self, first: *mut Block, ended: u16, free: &mut Free) -> bool {
        let mut next = first;
        while !next.is_null() && self.pages_of(next.cast()) & ended == 0 {
            if !self.is_start(next.cast()) || !free.add(next as usize % UNIT / self.bytes.get() as usize) {
                return false;
            }
            // SAFETY: a block of the slab starts there, and is free; blocks are never unmapped.
            match unsafe { (*next).sealed_next() } {
                Some(block) => next = block,
                None => return false,
            }
        }
        true
    }

    /// Links those blocks of a marked list that touch no page of `gone` in front of `chain`. Safety: the list
    /// has been marked, and nobody else uses it.
    unsafe fn sift(&self, first: *mut Block, ended: u16, gone: u16, chain: &mut *mut Block) {
        let mut next = first;
        while !next.is_null() && self.pages_of(next.cast()) & ended == 0 {
            let block = next;
            // SAFETY: a block of a marked list that nobody else uses.
            unsafe {
                next = (*block).sealed_next().unwrap_or(null_mut());
                if self.pages_of(block.cast()) & gone == 0 {
                    (*block).link(*chain);
                    *chain = block;
                }
            }
        }
    }

    /// Takes all blocks off the lists that touch pages on which nothing is in use, and returns these pages,
    /// whose frames the caller returns. Inside the gate, or with the gate held. Blocks of the heap's own list
    /// count as in use.
    pub(crate) fn vacate(&self, unit: *mut u8) -> u16 {
        let remote = self.remote.peek();
        let free_blocks = u32::from(self.carved.get()).saturating_sub(self.live()) + remote.blocks;
        let old = self.vacated();
        let worth = (old.count_ones() + 1) * PAGE as u32;
        // Of slabs with blocks of a batch, the lists are read outside the gate.
        if self.unclean.get() || free_blocks * self.bytes.get() < worth {
            return 0;
        }
        // Blocks only come back to a slab between two of the calls that take some, which forget this.
        if self.walked.replace(free_blocks) == free_blocks {
            return 0;
        }
        let head = self.free.get();
        let remote_head = remote.head.map_or(null_mut(), |granule| block_at(unit, granule));
        let mut free = Free([0; _]);
        let are_lists = self.mark(head, old, &mut free)
            && self.mark(self.kept.get(), 0, &mut free)
            && self.mark(remote_head, 0, &mut free);
        if !are_lists {
            return 0;
        }
        self.blocks_on(old).for_each(|index| {
            free.add(index);
        });
        let held = if remote_head.is_null() { 0 } else { self.pages_of(remote_head.cast()) };
        let new = self.free_pages(&free) & !held | old;
        if new == old {
            return 0;
        }
        self.set_vacated(new);
        let mut chain = null_mut();
        // SAFETY: the lists were marked above. Nobody else changes what is behind their heads, nor `kept`.
        unsafe {
            self.sift(self.kept.replace(null_mut()), 0, new, &mut chain);
            if !head.is_null() && self.pages_of(head.cast()) & old == 0 {
                self.sift((*head).sealed_next().unwrap_or(null_mut()), old, new, &mut chain);
            }
            if head.is_null() || self.pages_of(head.cast()) & new != 0 {
                self.kept.set(chain);
            } else {
                (*head).link(chain);
            }
            if !remote_head.is_null() {
                let mut behind = null_mut();
                self.sift((*remote_head).sealed_next().unwrap_or(null_mut()), 0, new, &mut behind);
                (*remote_head).link(behind);
            }
        }
        new & !old
    }

    /// The pages behind all that is laid out.
    pub(crate) fn uncarved(&self) -> u16 {
        let first = (usize::from(self.carved.get()) * self.bytes.get() as usize).div_ceil(PAGE);
        if first < PAGES { pages_between(first, PAGES - 1) } else { 0 }
    }

    /// The pages of which every block is free.
    fn free_pages(&self, free: &Free) -> u16 {
        let (carved, capacity) = (usize::from(self.carved.get()), usize::from(self.shape().capacity));
        let is_free = |page: &usize| {
            let (first, last) = self.blocks_of(*page);
            // Where blocks are still to be laid out, a page has not proved to be of no use.
            let is_laid_out = first < carved && (last < carved || carved == capacity);
            is_laid_out && (first..(last + 1).min(carved)).all(|index| free.has(index))
        };
        (0..PAGES).filter(is_free).fold(0, |pages, page| pages | 1 << page)
    }

    /// Takes every block of the slab's own lists: a chain, and its length. For the owner, inside its gate.
    pub(crate) fn gather(&self) -> (*mut Block, u32) {
        let (mut chain, mut blocks) = (null_mut(), 0);
        for first in [self.kept.replace(null_mut()), self.free.replace(null_mut())] {
            let mut next = first;
            while !next.is_null() && !self.is_vacated(next.cast()) {
                let block = next;
                // SAFETY: the block is free, and on this list alone.
                unsafe {
                    next = (*block).next();
                    (*block).link(chain);
                }
                chain = block;
                blocks += 1;
            }
        }
        (chain, blocks)
    }

    /// Takes back a vacated page, or the few that one block touches. Returns a chain of the blocks that are
    /// whole then, and their number. For the owner, inside its gate, with nothing on the remote list, as a
    /// block that is handed out must be credited before.
    pub(crate) fn restore(&self, unit: *mut u8) -> (*mut Block, u32) {
        let old = self.vacated();
        let Some(index) = self.blocks_on(old).next() else {
            self.set_vacated(0);
            return (null_mut(), 0);
        };
        let bytes = self.bytes.get() as usize;
        let place = |index: usize| unit.wrapping_add(index * bytes);
        let new = old & !self.pages_of(place(index));
        let (mut chain, mut blocks) = (null_mut::<Block>(), 0);
        for index in self.blocks_on(old & !new) {
            let block = place(index).cast::<Block>();
            if self.pages_of(block.cast()) & new != 0 {
                continue;
            }
            // SAFETY: the block is free and on no list, by the invariant.
            unsafe { (*block).link(chain) };
            chain = block;
            blocks += 1;
        }
        self.set_vacated(new);
        (chain, blocks)
    }
}
