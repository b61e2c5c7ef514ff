//! Accounts for memory that the program itself maps from the kernel. Such memory adds to the process's peak
//! of resident memory. If that peak would rise, cached frames are returned to the kernel (see `resident`).
//!
//! Signal handlers map and unmap memory. Therefore nothing here waits for the lock of an interrupted thread.

use crate::pages::Pages;
use crate::reason::Reason;
use crate::reason::is_worth_checking;
use crate::state::State;
use crate::tag::Kind;
use crate::units::PAGE;
use core::sync::atomic::Ordering::Relaxed;

impl Pages {
    /// Notes that the program has mapped `bytes` writable bytes from the kernel, and gives back cached memory
    /// by which the process's peak would rise.
    pub fn mapped_elsewhere(&self, bytes: usize) {
        let pages = (bytes / PAGE) as u64;
        self.elsewhere.fetch_add(pages, Relaxed);
        let Some(mut state) = self.state.try_lock() else { return };
        self.book_elsewhere(&mut state);
        let may_flush = state.is_init
            && !state.still
            && state.decays()
            && is_worth_checking(state.free_pages(Kind::Warm));
        let over = if may_flush { state.excess(0, pages).min(pages) } else { 0 };
        drop(state);
        if over > 0 {
            self.flush_some(Kind::Warm, over, Reason::Peak);
        }
    }

    /// Notes that the program is about to unmap `bytes` bytes that it has from the kernel.
    pub fn unmaps_elsewhere(&self, bytes: usize) {
        let Some(mut state) = self.state.try_lock() else { return };
        self.book_elsewhere(&mut state);
        state.before_free();
        state.resident.shrink((bytes / PAGE) as u64);
    }

    fn book_elsewhere(&self, state: &mut State) {
        state.resident.grow(self.elsewhere.swap(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Request;
    use crate::resident::Resident;
    use core::ptr::NonNull;
    use proptest::prelude::*;
    use vellum_skip::alone;
    use vellum_sys::{Span, map};
    use vellum_wire::{Counter, Slot};

    // Tests that look at what is resident do so in processes of their own.
    const MIB: usize = 1 << 20;
    /// Tables beside the blocks, the tests' own memory, and the error of the kernel's count.
    const MARGIN: usize = 5 * MIB;

    fn layer() -> (Pages, &'static Slot) {
        let pages = Pages::new();
        let slot: &'static Slot = Box::leak(Box::new(Slot::new()));
        pages.attach_slot(slot);
        (pages, slot)
    }

    fn block(pages: &Pages, bytes: usize, zero: bool) -> NonNull<u8> {
        pages.alloc(Request { bytes, align: PAGE, zero }).expect("memory").addr
    }

    fn touch(block: NonNull<u8>, bytes: usize, first: usize, step: usize) {
        for at in (first * PAGE..bytes).step_by(step * PAGE) {
            // SAFETY: within a block of the test's own.
            unsafe { block.add(at).write_volatile(1) };
        }
    }

    fn free(pages: &Pages, block: NonNull<u8>) {
        // SAFETY: a block of the test's own, which nothing uses any more.
        unsafe { pages.free(block) }.expect("a live block");
    }

    fn resident() -> usize {
        vellum_sys::usage::resident().expect("/proc/self/statm") as usize * PAGE
    }

    fn with_cached(bytes: usize) -> (Pages, &'static Slot) {
        let (pages, slot) = layer();
        let block = block(&pages, bytes, false);
        touch(block, bytes, 0, 1);
        free(&pages, block);
        (pages, slot)
    }

    fn counted(slot: &Slot, counter: Counter) -> usize {
        slot.counter(counter).load(Relaxed) as usize
    }

    #[test]
    fn what_is_cached_makes_room_for_what_is_mapped_elsewhere() {
        alone(|| {
            let (pages, slot) = with_cached(64 * MIB);
            pages.mapped_elsewhere(16 * MIB);
            let first = counted(slot, Counter::FlushedPeak);
            assert!((13 * MIB..=16 * MIB).contains(&first), "{first} of 16 MiB");
            pages.mapped_elsewhere(200 * MIB);
            let cached = counted(slot, Counter::NowCached);
            assert!(cached <= 4 * MIB, "{cached} bytes are cached still");
        });
    }

    #[test]
    fn memory_mapped_elsewhere_again_and_again_empties_the_cache_once() {
        alone(|| {
            let (pages, slot) = with_cached(64 * MIB);
            for _ in 0..100 {
                pages.mapped_elsewhere(16 * MIB);
                pages.unmaps_elsewhere(16 * MIB);
            }
            let flushed = counted(slot, Counter::FlushedPeak);
            assert!(flushed <= 18 * MIB, "{flushed} bytes went");
        });
    }

    /// A block: its pages, the first that is touched, the step, whether it is zeroed.
    type Use = (usize, usize, usize, bool);

    fn uses() -> impl Strategy<Value = Use> {
        let pages = prop_oneof![2 => 1usize..40, 4 => 40usize..700, 2 => 700usize..6000];
        let step = prop_oneof![3 => Just(1usize), 1 => Just(2), 1 => 3usize..10, 3 => 50usize..500];
        (pages, 0usize..64, step, any::<bool>())
    }

    /// Rounds: blocks allocated and touched, then all but a few freed.
    fn rounds() -> impl Strategy<Value = Vec<Vec<(Use, bool)>>> {
        let kept = prop_oneof![9 => Just(false), 1 => Just(true)];
        prop::collection::vec(prop::collection::vec((uses(), kept), 1..30), 2..12)
    }

    fn resident_in(block: NonNull<u8>, bytes: usize) -> usize {
        let pieces = Span::at(block.as_ptr(), bytes).pieces(map::RESIDENCY_MAX * PAGE);
        pieces.map(|piece| map::residency(piece).expect("mincore").pages * PAGE).sum()
    }

    fn allowed(most: usize) -> usize {
        most + Resident::new().slack((most / PAGE) as u64) as usize * PAGE + MARGIN
    }

    /// Random programs that touch their blocks densely, sparsely or hardly at all have the peak of a model,
    /// and the slack. The model gives every page of a freed block back at once.
    #[test]
    fn the_peak_is_that_of_a_program_without_a_cache() {
        let config = ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() };
        alone(|| {
            proptest!(config, |(rounds in rounds())| {
                let (pages, _slot) = layer();
                let before = resident();
                let (mut needed, mut most) = (0, 0);
                for round in rounds {
                    let mut blocks = Vec::new();
                    for ((length, first, step, zero), is_kept) in round {
                        let bytes = length * PAGE;
                        let block = block(&pages, bytes, zero);
                        touch(block, bytes, first, step);
                        let there = resident_in(block, bytes);
                        needed += there;
                        most = most.max(needed);
                        if !is_kept {
                            blocks.push((block, there));
                        }
                        let grown = resident().saturating_sub(before);
                        prop_assert!(grown <= allowed(most), "{} KiB resident, {} needed", grown >> 10, most >> 10);
                    }
                    for (block, there) in blocks {
                        free(&pages, block);
                        needed -= there;
                    }
                }
                prop_assert_eq!(pages.validate(), Ok(()));
            });
        });
    }

    /// Rounds of the same sparse blocks need in each round the memory of the first.
    #[test]
    fn sparse_memory_stays_sparse() {
        alone(|| {
            // Blocks, their pages, of how many one is touched; beside them dense blocks, before or after.
            for (count, pages_of_each, step, dense, is_before) in [
                (200, 75, 40, 0, false),
                (60, 300, 150, 0, false),
                (200, 75, 40, 20, false),
                (200, 75, 40, 20, true),
                (4, 16384, 256, 1, false),
                (4, 16384, 256, 1, true),
                (30, 600, 3, 0, false),
            ] {
                for zero in [false, true] {
                    let (pages, _slot) = layer();
                    let (before, mut most) = (resident(), 0);
                    let bytes = pages_of_each * PAGE;
                    for round in 0..12 {
                        let sparse = || {
                            let block = block(&pages, bytes, zero);
                            touch(block, bytes, round % 7, step);
                            block
                        };
                        let full = || {
                            let block = block(&pages, 2 * MIB, false);
                            touch(block, 2 * MIB, 0, 1);
                            block
                        };
                        let mut blocks: Vec<_> = Vec::new();
                        if is_before {
                            blocks.extend((0..dense).map(|_| full()));
                        }
                        blocks.extend((0..count).map(|_| sparse()));
                        if !is_before {
                            blocks.extend((0..dense).map(|_| full()));
                        }
                        let grown = resident().saturating_sub(before);
                        most = if round == 0 { grown } else { most };
                        assert!(
                            grown <= allowed(most),
                            "round {round} of {count} blocks of {pages_of_each} pages, 1 of {step}, {dense} \
                         {is_before}, zeroed {zero}: {} KiB, {} at first",
                            grown >> 10,
                            most >> 10
                        );
                        blocks.into_iter().for_each(|block| free(&pages, block));
                    }
                    assert_eq!(pages.validate(), Ok(()));
                }
            }
        });
    }

    #[test]
    fn a_dense_part_of_a_block_stays_warm() {
        let (pages, slot) = layer();
        let bytes = 8 * MIB;
        let block = block(&pages, bytes, false);
        touch(block, bytes / 2, 0, 1);
        touch(block, bytes, bytes / 2 / PAGE, 100);
        free(&pages, block);
        let cached = counted(slot, Counter::NowCached);
        assert!((bytes / 2..bytes / 2 + MIB / 2).contains(&cached), "{cached} bytes");
    }
}
