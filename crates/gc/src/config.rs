//! What a user may set when the heap is made.

use crate::sizing::Sizing;

/// How the heap is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Plan {
    /// Nothing moves; what is not marked is used again.
    #[default]
    MarkSweep,
    /// Objects in sparse blocks move, but for those that something ambiguous leads to.
    MostlyCopying,
    /// Generations: what outlives a collection is copied to the old region, and that is copied whole now and then. What something ambiguous
    /// leads to stays where it is.
    Appel,
}

impl Plan {
    /// Whether objects may move.
    pub(crate) const fn moves(self) -> bool {
        !matches!(self, Plan::MarkSweep)
    }
}

/// What becomes of the region that a major collection of [`Plan::Appel`] has vacated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AfterMajor {
    /// Only what lies sparse is copied; blocks of which half or more is alive stay where they are, in both kinds of collection. New objects are made in
    /// what is vacated.
    #[default]
    Stay,
    /// New objects are made there at once: it is in memory still.
    Reuse,
    /// It is left alone as long as other memory is there: the heap drifts through its address space.
    Drift,
    /// What is alive is copied back to the lowest addresses, by a second pass.
    CopyBack,
}

/// Settings of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How it is collected.
    pub plan: Plan,
    /// Whether pointers in objects count only if they lead to an object's first byte.
    pub only_starts: bool,
    /// Bytes of blocks and large objects that are never exceeded; `usize::MAX` for no limit.
    pub limit_bytes: usize,
    /// Bytes that blocks, large objects and everything the collector keeps beside them never exceed; `usize::MAX` for no maximum. See `footprint`.
    pub max_bytes: usize,
    /// Bytes the heap may grow to between collections, whatever is alive; 0 to go by what is alive. Where next to nothing is, it collects
    /// sooner: see `sizing`.
    pub fixed_bytes: usize,
    /// Where there is no such size: room for allocation as if the heap had been made of so many bytes, or more; 0: as much as is best. It is told
    /// while the heap is in use.
    pub least_bytes: usize,
    /// Room for allocation between collections, in percent of what is alive; small heaps get more (`config.rs`).
    pub percent: u32,
    /// In place of that: what a collection looks through, by this number, is the room (`plenty`); 0 for `percent`.
    pub divisor: u32,
    /// Whether dead objects are overwritten.
    pub poison: bool,
    /// Whether every invariant is checked after each phase of each collection, and a broken one ends the process: for tests. Slow.
    pub paranoid: bool,
    /// One allocation in so many, at random, collects, or makes a slice: for tests. 1: every one, which is very slow; 0: none does for that reason.
    pub eager: u32,
    /// What the random points depend on. A program with one thread that does the same collects at the same ones.
    pub seed: u64,
    /// Whether a thread of the collector's own makes slices while all others are in blocking regions.
    pub idle_thread: bool,
    /// Whether every block is emptied at every collection, be it worth it or not: for tests of what moves.
    pub restless: bool,
    /// Nanoseconds that a slice of a collection should last at most; 0: collections are made at one go.
    pub slice_ns: u64,
    /// Whether threads stop for collections at safepoints only, and not by a signal.
    pub safepoints: bool,
    /// Threads that mark in a collection at one go where much is alive (`parallel`), the collecting one among them; 0: as many as there are processors,
    /// up to four.
    pub markers: u32,
    /// Whether the program tells of each store of a pointer by `vel_gc_write`.
    pub tells_writes: bool,
    /// How the heap's regions are sized. `percent` and `fixed_bytes` are for [`Sizing::Knee`].
    pub sizing: Sizing,
    /// What becomes of the region that a major collection has vacated. Under [`Plan::Appel`].
    pub after_major: AfterMajor,
    /// Whether stacks and registers are not looked through: every pointer there is in a frame (`frames`) too, or none is needed any more. Threads
    /// stop at safepoints only then.
    pub precise_stacks: bool,
}

impl Config {
    /// The default settings.
    pub const DEFAULT: Config = Config {
        plan: Plan::MarkSweep,
        only_starts: false,
        limit_bytes: usize::MAX,
        max_bytes: usize::MAX,
        fixed_bytes: 0,
        least_bytes: 0,
        percent: 75,
        divisor: 0,
        poison: false,
        paranoid: false,
        eager: 0,
        seed: 0,
        idle_thread: false,
        restless: false,
        slice_ns: 0,
        safepoints: false,
        markers: 0,
        tells_writes: false,
        sizing: Sizing::Knee,
        after_major: AfterMajor::Stay,
        precise_stacks: false,
    };
    /// The largest percentage accepted.
    pub const PERCENT_MAX: u32 = 10_000;
    /// The smallest [`Config::max_bytes`] with which a heap starts: what a collector needs before the first object, and as much for objects.
    pub const MAX_LEAST: usize = 1 << 20;
}

impl Default for Config {
    fn default() -> Self {
        Config::DEFAULT
    }
}

/// Bytes that are allocated between two collections at least: fewer would pay for looking through static data, not for
/// what is collected.
pub(crate) const ROOM_MIN: usize = 256 << 10;
/// The room is at least the geometric mean of what is alive and this. The best size of a heap grows with the square root of what is alive
/// (Kirisame, Shenoy and Panchekha 2022): small heaps get room that they do not notice in memory and do in time.
pub(crate) const ROOM_MEAN: usize = 16 << 20;
/// The same under a fixed size or a limit, as a part of it: one thirty-second.
pub(crate) const ROOM_PART: usize = 32;
/// Nanoseconds that a collection takes for a KiB of the heap, until it is known.
pub(crate) const TRACE_NS_A_KIB: u64 = 300;
/// Words on the mark stack (address space; what was touched beyond [`STACK_KEPT`] is given back).
pub(crate) const STACK_WORDS: usize = 1 << 20;
/// Bytes of the mark stack that stay resident between collections.
pub(crate) const STACK_KEPT: usize = 256 << 10;
