//! Blocks that are handed out with frames and never touched, in a process near its cgroup's limit.
//!
//! A block that gets cached frames keeps them, even if the program touches little of it. Without Vellum it
//! would have no frames before the first touch. A program that fits its limit could be killed for the
//! difference. Therefore the kernel may take unwritten pages if the process is near its limit:
//!
//! - A block with undefined contents is marked discardable (`MADV_FREE`) when it is handed out. A written
//!   page stays; under pressure the kernel takes the others. This costs a third of a fault for each page.
//! - A block that must read as zero gets cold memory, since clearing cached frames would write them. If the
//!   last block of that length was touched throughout, cached frames are cleared instead, up to a part of the
//!   memory that the process holds. After that amount one block is cold again, the *probe*. If the probe is
//!   still untouched at the next request, no length counts as touched any more.
//!
//! A process far below its limit pays nothing. Its untouched frames are part of memory that it had before.

use crate::arena::Taken;
use crate::bins::Lengths;
use crate::pages::Pages;
use crate::state::{State, Use};
use crate::tag::flag;
use crate::units::{PAGE, UNIT_PAGES};
use vellum_sys::{Addr, map};
use vellum_wire::Counter;

/// The part of the process's memory that may be cleared before a probe is due.
const CLEARED_PART: u64 = 16;
/// A process that holds less than this part of its limit is far below it.
const FAR_PART: u64 = 16;

impl State {
    /// A look found `bytes` below the limit of a control group, `None` if there is no limit.
    pub(crate) fn note_group_headroom(&mut self, bytes: Option<u64>) {
        let held = self.resident.bound() * PAGE as u64;
        self.resident.is_tight = bytes.is_some_and(|bytes| bytes / FAR_PART < held) && self.decays();
    }
}

impl Pages {
    /// The use of a new block of `pages` pages.
    pub(crate) fn use_for(&self, pages: u32, zero: bool) -> Use {
        if !zero || pages < UNIT_PAGES {
            return Use::Fixed;
        }
        let mut state = self.state.lock();
        if !state.resident.is_tight {
            return Use::Fixed;
        }
        if !state.probe.is_null() && map::is_resident(state.probe) == Some(false) {
            state.full = Lengths::new();
        }
        state.probe = Addr::NULL;
        if !state.full.has(pages) {
            return Use::Sparse;
        }
        state.cleared += u64::from(pages);
        if state.cleared <= state.resident.bound() / CLEARED_PART { Use::Fixed } else { Use::Sparse }
    }

    /// Lets the kernel have what the program does not write of a block just taken; it is cleared if `zero`.
    pub(crate) fn lend(&self, arena: usize, taken: &Taken, usage: Use, zero: bool) {
        if taken.pages < UNIT_PAGES || usage == Use::Fixed && (zero || taken.warm() < UNIT_PAGES) {
            return;
        }
        let mut state = self.state.lock();
        if usage == Use::Sparse {
            if state.full.has(taken.pages) {
                state.probe = state.arenas[arena].address(taken.start + taken.pages / 2);
                state.cleared = 0;
            }
            return;
        }
        if !state.resident.is_tight || state.still {
            return;
        }
        let arena = &mut state.arenas[arena];
        let [warm, _] = arena.span_of(taken).split_at(taken.bytes_before_cold());
        let flags = arena.flags(taken.start);
        arena.set_flags(taken.start, flags | flag::UNTOUCHED);
        state.count(Counter::BytesDiscarded, warm.bytes as u64);
        drop(state);
        // SAFETY: the block's contents are undefined, and nobody has it yet.
        let _ = unsafe { map::discard(warm) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use core::ptr::NonNull;
    use std::vec::Vec;
    use vellum_skip::alone;
    use vellum_sys::Span;

    const MIB: usize = 1 << 20;
    const BLOCK: usize = 40 * PAGE;

    fn block(pages: &Pages, zero: bool, count: usize) -> Vec<NonNull<u8>> {
        let request = Request { bytes: BLOCK, align: PAGE, zero };
        (0..count).map(|_| pages.alloc(request).unwrap().addr).collect()
    }

    fn touch(blocks: &[NonNull<u8>]) {
        for block in blocks {
            // SAFETY: a block of this test alone.
            (0..BLOCK).step_by(PAGE).for_each(|at| unsafe { block.add(at).write_volatile(1) });
        }
    }

    fn free(pages: &Pages, blocks: Vec<NonNull<u8>>) {
        // SAFETY: a block of this test alone.
        blocks.into_iter().for_each(|block| unsafe { pages.free(block).map(drop).unwrap() });
    }

    fn resident(blocks: &[NonNull<u8>]) -> usize {
        let there = |block: &NonNull<u8>| map::residency(Span::at(block.as_ptr(), BLOCK)).unwrap().pages;
        blocks.iter().map(there).sum()
    }

    /// A layer near a limit, with the frames of blocks that were touched throughout.
    fn layer() -> Pages {
        let pages = Pages::new();
        let dense = block(&pages, false, 200);
        touch(&dense);
        pages.state.lock().resident.grow((16 * MIB / PAGE) as u64);
        pages.state.lock().note_group_headroom(Some(MIB as u64));
        free(&pages, dense);
        pages
    }

    #[test]
    fn zeroed_blocks_that_are_not_touched_get_no_frames() {
        alone(|| {
            let far = layer();
            far.state.lock().note_group_headroom(None);
            assert!(resident(&block(&far, true, 100)) >= 90 * BLOCK / PAGE, "far from a limit");
            let pages = layer();
            // The most that may be cleared before the probe: all blocks count as resident.
            let bound = pages.state.lock().resident.bound() as usize + 200 * BLOCK / PAGE;
            let may = bound / CLEARED_PART as usize + BLOCK / PAGE;
            let sparse = block(&pages, true, 200);
            assert!(resident(&sparse) <= may, "{} pages, {may} at most", resident(&sparse));
            free(&pages, sparse);
            // Touched throughout again, the length earns cached frames again.
            for _ in 0..3 {
                let dense = block(&pages, true, 100);
                touch(&dense);
                free(&pages, dense);
            }
            let cleared = block(&pages, true, 4);
            assert!(resident(&cleared) >= 2 * BLOCK / PAGE, "{} pages", resident(&cleared));
            pages.validate().unwrap();
        });
    }

    #[test]
    fn what_is_not_written_is_the_kernels() {
        alone(|| {
            let pages = layer();
            let lent = block(&pages, false, 50);
            touch(&lent[..25]);
            for (index, block) in lent.iter().enumerate() {
                // Under pressure; the kernel would choose when.
                // SAFETY: advice on memory of this test alone, which keeps what is written.
                let _ = unsafe {
                    rustix::mm::madvise(block.as_ptr().cast(), BLOCK, rustix::mm::Advice::LinuxPageOut)
                };
                // SAFETY: a block of this test alone.
                assert!(index >= 25 || unsafe { block.read_volatile() } == 1);
            }
            assert_eq!(resident(&lent[..25]), 25 * BLOCK / PAGE);
            assert!(resident(&lent[25..]) < 25 * BLOCK / PAGE / 2, "{} pages", resident(&lent[25..]));
        });
    }
}
