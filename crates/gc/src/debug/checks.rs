//! Modes for finding errors: every invariant checked in every phase, and collections where nobody expects
//! them.
//!
//! They are settings of a heap and not of a build: a program that misbehaves is run again with them, as it
//! is.
//!
//! ```text
//! paranoid   check ─ retire, pin, trace ─ check ─ sweep ─ check          a broken invariant ends the process
//! eager 1    allocate: collect ─ hand out one object                     (or make a slice, or a minor one)
//! eager n    allocate: collect, once in n ─ hand out a run cut short     (from 64 KiB on; less often
//!                                                                         where more than 64 n objects live)
//! poison     sweep: overwrite dead objects                               (`sweep`)
//! ```
//!
//! Together they show an object that is freed too early at the next allocation, to the object's owner.
//!
//! # Random points
//! Each allocation collects with one chance in n, whatever came before. A run is handed out whole, and the
//! inlined path tests nothing. So the run is cut where the next allocation would collect, the cut is
//! recorded, and the slow path that follows collects. If a run is not used up to its cut, the next draw is
//! independent of it: nobody has seen the cut.

use crate::config::Config;
use crate::mutator::thread::Thread;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vellum_sys::text;

/// On average one allocation in this many collects; 0: off.
static MEAN: AtomicU32 = AtomicU32::new(0);

/// The same at present: where much is alive, collections are further apart.
static CHANCE: AtomicU32 = AtomicU32::new(0);

/// Objects that may be traced for each allocation, on average, where collections are at random: so a program
/// with a large heap gets slower by a factor, and ends.
const TRACED_EACH: u64 = 64;

/// The seed of the next thread's random numbers.
static SEED: AtomicU64 = AtomicU64::new(0);

/// The difference between successive seeds: 2⁶⁴ divided by the golden ratio (Steele, Lea and Flood 2014,
/// SplitMix).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// How strictly a user wants a heap to be checked: every invariant is checked, dead objects are overwritten,
/// and one allocation in `mean` collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strict {
    /// [`Config::eager`], 1 at least.
    pub mean: u32,
    /// [`Config::seed`].
    pub seed: u64,
}

impl Strict {
    /// Parses `MEAN` or `MEAN,seed=SEED`; `None` if it is neither.
    pub fn parse(words: &[u8]) -> Option<Strict> {
        let mut words = words.split(|&byte| byte == b',');
        let mean = u32::try_from(text::decimal(words.next()?)?).ok().filter(|&mean| mean > 0)?;
        let seed = words.next().map_or(Some(0), |word| text::decimal(word.strip_prefix(b"seed=")?))?;
        words.next().is_none().then_some(Strict { mean, seed })
    }

    /// `config` with these settings in place of its own.
    pub(crate) fn put_on(self, config: Config) -> Config {
        Config { eager: self.mean, seed: self.seed, paranoid: true, poison: true, ..config }
    }
}

/// A heap with these settings begins.
pub(crate) fn begin(config: Config) {
    SEED.store(config.seed, Ordering::Relaxed);
    CHANCE.store(config.eager, Ordering::Relaxed);
    MEAN.store(config.eager, Ordering::Relaxed);
}

/// Whether allocations collect at random, or all of them.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    MEAN.load(Ordering::Relaxed) != 0
}

/// A random number of the calling thread's (xorshift64*, Vigna 2016).
pub(crate) fn random(thread: &Thread) -> u64 {
    let mut state = thread.chance.get();
    if state == 0 {
        // Odd, and so not 0.
        state = SEED.fetch_add(GOLDEN, Ordering::Relaxed).wrapping_mul(GOLDEN) | 1;
    }
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    thread.chance.set(state);
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
}

/// [`MEAN`].
pub(crate) fn mean() -> u32 {
    MEAN.load(Ordering::Relaxed)
}

/// A collection has marked `objects` objects: sets how far apart the next ones are.
pub(crate) fn collected(objects: u64) {
    let mean = mean();
    if mean > 1 {
        let spread = u32::try_from(objects / TRACED_EACH).unwrap_or(u32::MAX);
        CHANCE.store(mean.max(spread), Ordering::Relaxed);
    }
}

fn is_drawn(thread: &Thread) -> bool {
    random(thread).is_multiple_of(u64::from(CHANCE.load(Ordering::Relaxed).max(1)))
}

/// Whether the allocation that `thread`, the caller, is about to make collects: one beyond the inlined path,
/// of a large object or in `slot`.
#[cold]
pub(crate) fn is_time(thread: &Thread, slot: Option<usize>) -> bool {
    // The rest of a run was drawn for when the run was handed out.
    let is_left = |slot: usize| thread.runs[slot].next.get() != thread.runs[slot].end.get();
    !slot.is_some_and(is_left)
        && (slot.is_some_and(|slot| thread.cursors[slot].cut.take()) || is_drawn(thread))
}

/// How many objects `thread`, the caller, may be handed in `slot` before an allocation that collects: 1 at
/// least, `count` at most.
#[cold]
pub(crate) fn objects_until_time(thread: &Thread, slot: usize, count: u32) -> u32 {
    let drawn = (1..=count).find(|_| is_drawn(thread));
    thread.cursors[slot].cut.set(drawn.is_some());
    drawn.unwrap_or(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_is_a_mean_and_a_seed() {
        assert_eq!(Strict::parse(b"1"), Some(Strict { mean: 1, seed: 0 }));
        assert_eq!(Strict::parse(b"300,seed=17"), Some(Strict { mean: 300, seed: 17 }));
        for wrong in [
            &b""[..],
            b"0",
            b"yes",
            b"-1",
            b"1,",
            b"1,17",
            b"1,seed=",
            b"1,seed=x",
            b"1,seed=1,",
            b"4294967296",
        ] {
            assert_eq!(Strict::parse(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
    }
}
