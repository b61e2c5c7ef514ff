//! Modes for finding errors: every invariant checked in every phase, and collections where nobody expects them.
//!
//! They are settings of a heap and not of a build: a program that behaves strangely is run again with them, as it is.
//!
//! ```text
//! paranoid   check ─ retire, pin, trace ─ check ─ survey ─ check          a broken invariant ends the process
//! eager 1    allocate: collect ─ hand out one object                       or a slice, where collections are made in slices; mostly minor
//! eager n    allocate: collect, once in n ─ hand out a run cut short       ones, where there are any; from 64 KiB on
//! poison     survey: overwrite what died                                   (`survey`)
//! ```
//!
//! Together: what is freed too early is noticed at the next allocation, by whom it belongs to.
//!
//! # Random points
//! Each allocation collects with one chance in n, whatever was before. A run is handed out whole, and no thread may look at anything on the inlined
//! path; so the run is cut where the next allocation would collect, the cut is noted, and the slow path that follows collects. Where a run goes
//! unused after a cut was drawn, drawing anew is as good: nobody has seen where it would have been.

use crate::alloc::{collect_now, ensure_started, note};
use crate::appel::minor;
use crate::budget::Budget;
use crate::config::Config;
use crate::cycle::{self, Progress};
use crate::event;
use crate::heap::Heap;
use crate::thread::Thread;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vellum_sys::text;

/// Objects looked through in a slice where every allocation makes one.
const SLICE_OBJECTS: u32 = 64;

/// Elsewhere a slice looks through up to two to the power of this, their number's logarithm being random.
const SLICE_OBJECTS_LOG: u64 = 12;

/// Bytes allocated before which nothing is collected at random: libgc does not before it has used up the 64 KiB it begins with.
const EARLY: usize = 64 << 10;

/// Where there are minor collections, so many are made between two major ones.
const MINORS_EAGER: u32 = 7;

/// One allocation in so many collects; 0: none does for that reason.
static MEAN: AtomicU32 = AtomicU32::new(0);

/// What the next thread's random numbers begin with.
static SEED: AtomicU64 = AtomicU64::new(0);

/// What a seed's successors differ by: 2⁶⁴ divided by the golden ratio (Steele, Lea and Flood 2014, SplitMix).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// How strictly a user wants a heap to be looked after: every invariant is checked, the dead are overwritten, and one allocation in `mean` collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strict {
    /// [`Config::eager`], 1 at least.
    pub mean: u32,
    /// [`Config::seed`].
    pub seed: u64,
}

impl Strict {
    /// What `MEAN` or `MEAN,seed=SEED` says; `None` if it is neither.
    pub fn parse(words: &[u8]) -> Option<Strict> {
        let digits = |word: &[u8]| word.iter().all(u8::is_ascii_digit).then(|| text::number(word)).flatten();
        let mut words = words.split(|&byte| byte == b',');
        let mean = u32::try_from(digits(words.next()?)?).ok().filter(|&mean| mean > 0)?;
        let seed = words.next().map_or(Some(0), |word| digits(word.strip_prefix(b"seed=")?))?;
        words.next().is_none().then_some(Strict { mean, seed })
    }

    /// `config` with this in place of what it says.
    pub(crate) fn put_on(self, config: Config) -> Config {
        Config { eager: self.mean, seed: self.seed, paranoid: true, poison: true, ..config }
    }
}

/// A heap with these settings begins.
pub(crate) fn begin(config: Config) {
    SEED.store(config.seed, Ordering::Relaxed);
    MEAN.store(config.eager, Ordering::Relaxed);
}

/// Whether allocations collect at random, or all of them.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    MEAN.load(Ordering::Relaxed) != 0
}

/// A random number of the calling thread's (xorshift64*, Vigna 2016).
fn random(thread: &Thread) -> u64 {
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

fn is_drawn(thread: &Thread) -> bool {
    random(thread).is_multiple_of(u64::from(MEAN.load(Ordering::Relaxed).max(1)))
}

/// Whether the allocation collects that `thread`, the caller, is about to make beyond the inlined path, of a large object or in `slot`.
#[cold]
pub(crate) fn is_time(thread: &Thread, slot: Option<usize>) -> bool {
    // What is left of a run was drawn for when it was handed out.
    let is_left = |slot: usize| thread.runs[slot].next.get() != thread.runs[slot].end.get();
    !slot.is_some_and(is_left)
        && (slot.is_some_and(|slot| thread.cursors[slot].cut.take()) || is_drawn(thread))
}

/// Objects that `thread`, the caller, may be handed in `slot` of `count`, 1 at least, before an allocation that collects.
#[cold]
pub(crate) fn objects_until_time(thread: &Thread, slot: usize, count: u32) -> u32 {
    let drawn = (1..=count).find(|_| is_drawn(thread));
    thread.cursors[slot].cut.set(drawn.is_some());
    drawn.unwrap_or(count)
}

/// Collects for `thread`, which is inside and about to allocate. `heap` is under its lock.
#[cold]
pub(crate) fn collect_eagerly(heap: &mut Heap, thread: &'static Thread) {
    if !ensure_started(heap) || heap.held != 0 || is_early(heap) || !event::is_welcome(heap) {
        return;
    }
    let objects = match MEAN.load(Ordering::Relaxed) {
        1 => SLICE_OBJECTS,
        _ => 1 << (random(thread) % (SLICE_OBJECTS_LOG + 1)),
    };
    let budget = Budget::of_objects(objects);
    if heap.is_leaving {
        cycle::let_go(heap, budget);
    } else if heap.config.slice_ns > 0 && heap.may_slice() {
        let progress = thread.standing_here(|| cycle::step(heap, thread, budget, false));
        note(thread, progress);
    } else if heap.may_be_minor()
        && heap.appel.minors < MINORS_EAGER
        && thread.standing_here(|| minor::collect(heap, thread))
    {
        note(thread, Progress::Done);
    } else {
        collect_now(heap, thread);
    }
}

/// Whether a program that relies on not being collected so soon may not be ready: its procedure for roots may allocate what it is to name. Who has every
/// allocation collect wants it from the first one on.
fn is_early(heap: &Heap) -> bool {
    MEAN.load(Ordering::Relaxed) != 1 && heap.stats.collections == 0 && heap.used < EARLY
}

impl Heap {
    /// Ends the process if a check that is made in paranoid heaps fails, saying when. The world stands still.
    #[inline]
    pub(crate) fn check_after(&self, phase: &str, check: impl FnOnce(&Heap) -> Result<(), &'static str>) {
        if self.config.paranoid
            && let Err(broken) = check(self)
        {
            end(phase, broken);
        }
    }
}

/// Says which invariant is broken, and ends the process: the heap cannot be relied on.
#[cold]
fn end(phase: &str, broken: &str) -> ! {
    for part in ["vellum: gc: after ", phase, " this is not so: ", broken, "\n"] {
        // SAFETY: a range of bytes that lives; a refusal loses a word only.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    panic!("an invariant of the collected heap");
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
