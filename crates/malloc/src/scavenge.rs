//! Passes: each visits the slabs of a heap and returns their unused pages to the kernel.
//!
//! A **pass** visits every awake slab of a heap (one with free blocks), and puts the fullest slabs in front.
//! The first pass after a slab woke only marks it. If a later pass finds the mark, the slab was not needed
//! for the *decay time* (the time after which unused memory is returned). Its unused pages are then
//! *vacated*: they are returned, and the free blocks on them leave every list ([`crate::vacated`]). Unused
//! pages of the slab being carved may hold data of an earlier slab, and are also vacated.
//!
//! - A pass is due every decay time for heaps that have changed since their last pass. The helper thread
//!   makes the pass, a few slabs at a time, if the heap is idle; if not, the heap's thread does.
//! - An **eager** pass (`malloc_trim`, memory shortage) vacates every slab at once.
//! - Pages that cannot be returned, as they are locked, are tried again by the next pass.
//! - The pass after a withdrawal of huge pages returns all vacated pages **again**, as the kernel may have
//!   given them frames.
//! - If a slab's unit is the pager's, no page is returned: unused pages are paged out.

use crate::class::CLASSES;
use crate::heap::{Bin, Heap};
use crate::pass::bit;
use crate::slab::{Block, Rest, Slab};
use crate::space::block_at;
use crate::state::MALLOC;
use crate::units;
use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering::Relaxed;
use vellum_pages::{PAGE, Pages};
use vellum_sys::Addr;

/// Degrees of filling by which slabs are sorted.
const FILLINGS: usize = 4;
/// Slabs of a class that are put in order: the next to be taken.
const SORTED_MAX: usize = 256;

impl Heap {
    /// Makes a pass due if the heap has changed since the last one.
    pub(crate) fn request_pass(&self) {
        if self.pass.idle_turns.load(Relaxed) != self.gate.turns() {
            self.pass.request(false);
        }
    }

    /// Visits up to `most` slabs. Inside the gate, or with the gate held.
    pub(crate) fn advance_pass(&'static self, most: usize) {
        let pass = &self.pass;
        let (begins, what) = pass.begin_or_go_on();
        if begins {
            pass.has_marked.set(false);
            pass.began_turns.set(self.gate.turns());
            self.enter_class(1, what);
        }
        let mut visited = 0;
        while visited < most {
            // SAFETY: slabs on a bin's list are live descriptions; one that leaves is passed over.
            let Some(slab) = (unsafe { pass.next.get().as_ref() }) else {
                if pass.class.get() + 1 == CLASSES {
                    return self.end_pass();
                }
                self.enter_class(pass.class.get() + 1, what);
                continue;
            };
            pass.next.set(slab.next.get());
            self.give_back_again(slab, what);
            if slab.rest.set(Rest::MET) || what & bit::EAGER != 0 {
                self.vacate(slab, what & bit::EAGER != 0);
            } else {
                pass.has_marked.set(true);
            }
            visited += 1;
        }
    }

    fn enter_class(&self, class: usize, what: u8) {
        let bin = &self.bins[class];
        sort(bin);
        self.pass.class.set(class);
        self.pass.next.set(bin.awake.get());
        let is_eager = what & bit::EAGER != 0;
        // SAFETY: the slab being carved is a live description.
        let Some(slab) = (unsafe { bin.carving.get().as_ref() }) else { return };
        if units::are_paged(self.unit_of(slab)) {
            return;
        }
        if slab.rest.has(Rest::BARE) && what & bit::AGAIN == 0 {
            return;
        }
        if slab.rest.set(Rest::MET) || is_eager {
            // Locked memory stays, and is tried again.
            if self.flush_pages(slab, slab.uncarved(), is_eager) {
                slab.rest.set(Rest::BARE);
            }
        } else {
            self.pass.has_marked.set(true);
        }
    }

    /// Vacates every slab. Inside the gate.
    pub(crate) fn finish_pass(&'static self) {
        self.pass.request(true);
        while self.pass.is_due() {
            self.advance_pass(usize::MAX);
        }
    }

    fn end_pass(&self) {
        let pass = &self.pass;
        pass.next.set(null());
        if !pass.has_marked.get() {
            pass.idle_turns.store(pass.began_turns.get(), Relaxed);
        }
        pass.end();
    }

    /// Returns the pages of a slab on which nothing is in use; true if there were any. `is_asked` if the
    /// program or a shortage requests it.
    pub(crate) fn vacate(&self, slab: &Slab, is_asked: bool) -> bool {
        // To look which of its blocks are free would bring pages that nobody asks for.
        if units::are_paged(self.unit_of(slab)) {
            return false;
        }
        let pages = slab.vacate(self.unit_of(slab));
        if !self.flush_pages(slab, pages, is_asked) {
            slab.rest.set(Rest::LOCKED);
        }
        pages != 0
    }

    /// Returns once more the pages that could not be returned before, and, if `what` has [`bit::AGAIN`],
    /// pages that the kernel may have filled.
    fn give_back_again(&self, slab: &Slab, what: u8) {
        let pages = slab.vacated();
        if slab.rest.clear(Rest::LOCKED) {
            if !self.flush_pages(slab, pages, what & bit::EAGER != 0) {
                slab.rest.set(Rest::LOCKED);
            }
        } else if pages != 0 && what & bit::AGAIN != 0 {
            // SAFETY: as in `flush_pages`.
            unsafe { Pages::global().flush_inside_again(Addr::of(self.unit_of(slab)), pages) };
        }
    }

    /// Returns pages; true if all of them were.
    fn flush_pages(&self, slab: &Slab, pages: u16, is_asked: bool) -> bool {
        if pages == 0 {
            return true;
        }
        let unit = Addr::of(self.unit_of(slab));
        // SAFETY: these pages hold nothing, or nothing but free blocks that are on no list.
        let bytes = unsafe { Pages::global().flush_inside(unit, pages, is_asked) };
        MALLOC.returned.fetch_add(bytes, Relaxed);
        bytes == pages.count_ones() as usize * PAGE
    }

    /// Takes blocks out of an awake slab with vacated pages, which may stay awake. Inside the gate.
    pub(crate) fn take_sparse(&self, bin: &Bin, slab: &Slab) -> *mut Block {
        let unit = self.unit_of(slab);
        slab.walked.set(0);
        let taken = slab.remote.take();
        let (mut chain, mut blocks) = slab.gather();
        let mut next = taken.head.map_or(null_mut(), |granule| block_at(unit, granule));
        while !next.is_null() {
            let block = next;
            // SAFETY: the list's blocks are free, belong to the slab, and end in null.
            unsafe {
                next = (*block).next();
                (*block).link(chain);
            }
            chain = block;
            blocks += 1;
        }
        if chain.is_null() {
            (chain, blocks) = slab.restore(unit);
        }
        if slab.vacated() == 0 {
            self.unlink(bin, slab);
            slab.sleep();
        } else {
            slab.needed.store(slab.live().wrapping_add(blocks).wrapping_sub(taken.blocks), Relaxed);
        }
        self.count(bin, slab.bytes.get(), blocks);
        chain
    }
}

/// Puts the fullest of a class's first slabs in front: the next blocks come from there, and sparse slabs
/// empty.
fn sort(bin: &Bin) {
    let (mut first, mut last) = ([null::<Slab>(); FILLINGS], [null::<Slab>(); FILLINGS]);
    let mut rest = bin.awake.get();
    for _ in 0..SORTED_MAX {
        // SAFETY: slabs on a bin's list are live descriptions, here as below.
        let Some(slab) = (unsafe { rest.as_ref() }) else { break };
        rest = slab.next.get();
        let filling = slab.live() as usize * FILLINGS / (usize::from(slab.shape().capacity) + 1);
        let sparseness = FILLINGS - 1 - filling.min(FILLINGS - 1);
        // SAFETY: null, or a slab of the list: a live description.
        match unsafe { last[sparseness].as_ref() } {
            Some(before) => before.next.set(slab),
            None => first[sparseness] = slab,
        }
        slab.previous.set(last[sparseness]);
        slab.next.set(null());
        last[sparseness] = slab;
    }
    // From the sparsest to the fullest, each in front of those before.
    for (first, last) in first.into_iter().zip(last).rev() {
        // SAFETY: null, or slabs of the list: live descriptions.
        let (Some(head), Some(end)) = (unsafe { first.as_ref() }, unsafe { last.as_ref() }) else { continue };
        end.next.set(rest);
        // SAFETY: null, or the next slab of the list: a live description.
        if let Some(behind) = unsafe { rest.as_ref() } {
            behind.previous.set(end);
        }
        head.previous.set(null());
        rest = head;
    }
    bin.awake.set(rest);
}
