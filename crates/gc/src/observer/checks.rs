//! Modes for finding errors: checks of all invariants in every phase (`paranoid`), collections at random
//! allocations (`eager`), and dead objects overwritten (`poison`).
//!
//! The modes are settings of a heap and need no other build.
//!
//! ```text
//! paranoid   check ─ retire, pin, trace ─ check ─ sweep ─ check          a broken invariant ends the process
//! eager 1    allocate: collect ─ hand out one object                     (whole, sliced or minor collection)
//! eager n    allocate: collect, one time in n ─ hand out a shorter run   (once 64 KiB were allocated; less
//!                                                                         often if over 64 n objects live)
//! poison     sweep: overwrite dead objects                               (`sweep`)
//! ```
//!
//! With all modes on, an object that is freed too early is overwritten at the next allocation, and the code
//! that still uses the object soon fails.
//!
//! # Random points
//! Each allocation collects with probability 1/n, independently of all others. The inlined path has no test
//! for this. A *run* is the free objects that a thread is handed at once: it is cut where the next
//! allocation is to collect, and the slow path that follows collects. If a run is not used up to its cut,
//! the next cut is drawn anew.

use crate::config::Config;
use crate::world::thread::Thread;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Objects that may be traced for each allocation, on average, where collections are at random. The limit
/// bounds the factor by which a large heap slows the program.
const TRACED_EACH: u64 = 64;

/// The difference between successive seeds: 2⁶⁴ divided by the golden ratio (Steele, Lea and Flood 2014,
/// SplitMix).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The random points of a heap.
pub(crate) struct Checks {
    /// On average one allocation in this many collects; 0: off.
    mean: AtomicU32,
    /// The present mean: collections of a large heap are further apart.
    chance: AtomicU32,
    /// The seed of the next thread's random numbers.
    seed: AtomicU64,
}

impl Checks {
    /// A heap with these settings begins.
    pub(super) fn begin(&self, config: &Config) {
        self.seed.store(config.seed, Ordering::Relaxed);
        self.chance.store(config.eager, Ordering::Relaxed);
        self.mean.store(config.eager, Ordering::Relaxed);
    }

    /// Returns whether some or all allocations collect.
    pub(super) fn is_on(&self) -> bool {
        self.mean.load(Ordering::Relaxed) != 0
    }

    /// A random number of the calling thread's (xorshift64*, Vigna 2016).
    pub(crate) fn random(&self, thread: &Thread) -> u64 {
        let mut state = thread.chance.get();
        if state == 0 {
            // Odd, and so not 0.
            state = self.seed.fetch_add(GOLDEN, Ordering::Relaxed).wrapping_mul(GOLDEN) | 1;
        }
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        thread.chance.set(state);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// On average one allocation in this many collects; 0: off.
    pub(crate) fn mean(&self) -> u32 {
        self.mean.load(Ordering::Relaxed)
    }

    /// A collection has marked `objects` objects: sets how far apart the next ones are.
    pub(crate) fn collected(&self, objects: u64) {
        let mean = self.mean();
        if mean > 1 {
            let spread = u32::try_from(objects / TRACED_EACH).unwrap_or(u32::MAX);
            self.chance.store(mean.max(spread), Ordering::Relaxed);
        }
    }

    fn is_drawn(&self, thread: &Thread) -> bool {
        self.random(thread).is_multiple_of(u64::from(self.chance.load(Ordering::Relaxed).max(1)))
    }

    /// Returns whether the allocation that `thread`, the caller, is about to make collects: one beyond the
    /// inlined path, of a large object or in `slot`.
    pub(super) fn is_time(&self, thread: &Thread, slot: Option<usize>) -> bool {
        // The rest of a run was drawn for when the run was handed out.
        let is_left = |slot: usize| thread.runs[slot].next.get() != thread.runs[slot].end.get();
        !slot.is_some_and(is_left)
            && (slot.is_some_and(|slot| thread.cursors[slot].cut.take()) || self.is_drawn(thread))
    }

    /// The number of objects that `thread`, the caller, may get in `slot` before an allocation collects: 1 to
    /// `count`.
    pub(super) fn objects_until_time(&self, thread: &Thread, slot: usize, count: u32) -> u32 {
        let drawn = (1..=count).find(|_| self.is_drawn(thread));
        thread.cursors[slot].cut.set(drawn.is_some());
        drawn.unwrap_or(count)
    }
}
