//! The benchmark suite `memory` comes with Vellum and times Vellum's own operations: small and large blocks,
//! batches, growth, and the page layer.
//!
//! The operations are called directly, not through a process's `malloc`: the suite measures the same code
//! with and without Vellum preloaded. If one call takes nanoseconds, an operation consists of many calls,
//! long enough to time.
//!
//! | case | one operation |
//! | --- | --- |
//! | `small 64 B` | `BLOCKS` blocks allocated, then freed in the same order |
//! | `small mixed` | `BLOCKS` blocks of 16 B to 2 KiB, freed in another order |
//! | `batch 64 B` | `BLOCKS` blocks allocated by one call, freed by one |
//! | `grow 1 MiB` | a block of 64 B doubled until it is 1 MiB |
//! | `large 256 KiB`, `large 4 MiB` | `PAIRS` blocks allocated, one byte written in each page, freed |
//! | `relocate 4 MiB` | a block moved by changing page tables |
//! | `pages 2 MiB` | `PAIRS` extents (page ranges) of the page layer allocated and freed |
//! | `flush 1 MiB` | an extent touched and freed, and the cache flushed: includes the page faults |

use crate::bench::Suite;
use std::ptr::null_mut;
use vellum_malloc as front;
use vellum_measure::Rng;
use vellum_pages::{PAGE, Pages, Request, Severity};

/// Blocks in an operation on small blocks.
const BLOCKS: usize = 1000;
/// Blocks or extents in an operation on large ones.
const PAIRS: usize = 20;
/// The seed of the mixed sizes and orders.
const SEED: u64 = 64;
/// The largest of the mixed sizes, as a power of two; the smallest is 16.
const MIXED_LOG2_MAX: u64 = 11;
const MIXED_LOG2_MIN: u64 = 4;

/// The suite's name.
pub const MEMORY: &str = "memory";

/// The suite.
#[must_use]
pub fn memory() -> Suite<'static> {
    let mut suite = Suite::new(MEMORY);
    suite.case("small 64 B", small(vec![64; BLOCKS], (0..BLOCKS).collect()));
    suite.case("small mixed", mixed());
    suite.case("batch 64 B", batch(64));
    suite.case("grow 1 MiB", || grow(64, 1 << 20));
    suite.case("large 256 KiB", || large(256 << 10));
    suite.case("large 4 MiB", || large(4 << 20));
    suite.case_with("relocate 4 MiB", || Block::new(4 << 20), |block| block.relocated(2 << 20));
    suite.case("pages 2 MiB", || extents(2 << 20));
    suite.case("flush 1 MiB", || flushed(1 << 20));
    suite
}

/// Allocates blocks of `sizes` and frees them in `order`.
fn small(sizes: Vec<usize>, order: Vec<usize>) -> impl FnMut() {
    let mut blocks = vec![null_mut(); sizes.len()];
    move || {
        for (block, &bytes) in blocks.iter_mut().zip(&sizes) {
            *block = front::malloc(bytes);
        }
        for &index in &order {
            // SAFETY: each block was allocated above and is freed once; null is allowed.
            unsafe { front::free(blocks[index]) };
        }
    }
}

fn mixed() -> impl FnMut() {
    let mut rng = Rng::new(SEED);
    // Small sizes are more frequent in programs: each octave is equally likely.
    let size = |rng: &mut Rng| {
        let floor = 1usize << (MIXED_LOG2_MIN + rng.below(MIXED_LOG2_MAX - MIXED_LOG2_MIN));
        floor + rng.below(floor as u64) as usize
    };
    let sizes = (0..BLOCKS).map(|_| size(&mut rng)).collect();
    let mut order: Vec<usize> = (0..BLOCKS).collect();
    rng.shuffle(&mut order);
    small(sizes, order)
}

fn batch(bytes: usize) -> impl FnMut() {
    let mut blocks = vec![null_mut(); BLOCKS];
    move || {
        front::malloc_batch(bytes, &mut blocks);
        // SAFETY: the blocks were allocated above, are distinct, and are freed once; nulls are allowed.
        unsafe { front::free_batch(&blocks) };
    }
}

fn grow(from: usize, to: usize) {
    let mut block = front::malloc(from);
    let mut bytes = from;
    while bytes < to && !block.is_null() {
        bytes *= 2;
        // SAFETY: `block` is in use, and only the result is used from here on.
        let grown = unsafe { front::realloc(block, bytes) };
        if grown.is_null() {
            break;
        }
        block = grown;
    }
    // SAFETY: `block` is in use or null, and is not used afterwards.
    unsafe { front::free(block) };
}

fn large(bytes: usize) {
    for _ in 0..PAIRS {
        drop(Block::new(bytes));
    }
}

/// A large block, with a byte of each page written.
struct Block {
    address: *mut u8,
}

impl Block {
    fn new(bytes: usize) -> Block {
        let address = front::malloc(bytes);
        if !address.is_null() {
            // SAFETY: the block is in use and `bytes` long.
            unsafe { touch(address, bytes) };
        }
        Block { address }
    }

    fn relocated(self, align: usize) -> Block {
        // SAFETY: the block is in use; its old address is used afterwards only if the call returns null.
        let moved = unsafe { front::relocate(self.address, align) };
        let address = if moved.is_null() { self.address } else { moved };
        std::mem::forget(self);
        Block { address }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the block is in use or null, and `self` is being dropped.
        unsafe { front::free(self.address) };
    }
}

/// Writes a byte of each page.
///
/// # Safety
/// The `bytes` bytes at `address` are writable.
unsafe fn touch(address: *mut u8, bytes: usize) {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: `at` is below `bytes`, and by `# Safety` these bytes are writable.
        unsafe { address.add(at).write_volatile(1) };
    }
}

fn extents(bytes: usize) {
    let pages = Pages::global();
    for _ in 0..PAIRS {
        if let Ok(extent) = pages.alloc(Request { bytes, align: PAGE, zero: false }) {
            // SAFETY: the extent was allocated above, and no other code has its address.
            let freed = unsafe { pages.free(extent.addr) };
            debug_assert!(freed.is_ok());
        }
    }
}

fn flushed(bytes: usize) {
    let pages = Pages::global();
    if let Ok(extent) = pages.alloc(Request { bytes, align: PAGE, zero: false }) {
        // SAFETY: the extent has at least `bytes` bytes; it was allocated above, and is not used after it is
        // freed.
        let freed = unsafe {
            touch(extent.addr.as_ptr(), bytes);
            pages.free(extent.addr)
        };
        debug_assert!(freed.is_ok());
    }
    pages.trim(Severity::Flush);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Options, Ran};
    use crate::clock::ClockKind;
    use std::time::Duration;
    use vellum_measure::MarkCause;

    fn run(only: Option<&str>) -> Ran {
        let options = Options {
            clock: Some(ClockKind::Monotonic),
            observations: 5,
            warm_up: Duration::ZERO,
            only: only.map(str::to_owned),
            ..Options::default()
        };
        memory().run(&options).unwrap()
    }

    #[test]
    fn every_case_runs_unbatched() {
        let ran = run(None);
        let refused: Vec<String> = ran.refused().map(ToString::to_string).collect();
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(ran.series().count(), memory().names().len());
        assert!(ran.series().all(|series| series.observations.len() == 5));
    }

    #[test]
    fn a_flush_shows_as_faults_and_marks() {
        let ran = run(Some("flush"));
        let series = ran.series().next().unwrap();
        assert!(series.observations.iter().any(|one| one.minor > 0), "{series:?}");
        assert!(series.marks.iter().any(|mark| mark.cause == MarkCause::Trim), "{:?}", series.marks);
    }
}
