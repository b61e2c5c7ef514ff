//! The settings of a heap. They are fixed when the heap is made, except those whose comment says
//! otherwise.

pub(crate) mod sizing;
pub(crate) mod strict;

use crate::config::sizing::Sizing;

/// The plan by which the heap is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PlanName {
    /// Objects do not move; unmarked ones are freed in place.
    #[default]
    MarkSweep,
    /// Objects in sparse blocks move, except those that an ambiguous pointer leads to.
    MostlyCopying,
    /// Generations: survivors of a collection are copied to the old region, which is itself copied whole now
    /// and then. Objects that an ambiguous pointer leads to stay where they are.
    Appel,
}

impl PlanName {
    /// The plans, by their numbers in `vellum_gc.h`.
    pub const ALL: [PlanName; 3] = [PlanName::MarkSweep, PlanName::MostlyCopying, PlanName::Appel];
}

/// The use of the region that a major collection of [`PlanName::Appel`] has vacated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AfterMajor {
    /// Only sparse blocks are emptied; blocks of which seven eighths or more are alive stay where they are,
    /// in both kinds of collection. New objects are made in vacated blocks.
    #[default]
    Stay,
    /// New objects are made there at once, as its pages are still resident.
    Reuse,
    /// The region stays unused as long as there is other memory: the heap drifts through its address space.
    Drift,
    /// Live objects are copied back to the lowest addresses, by a second pass.
    CopyBack,
}

/// Settings of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The plan.
    pub plan: PlanName,
    /// True if pointers in objects count only if they lead to an object's first byte.
    pub only_starts: bool,
    /// Bytes of blocks and large objects that are never exceeded; `usize::MAX` for no limit.
    pub limit_bytes: usize,
    /// Bytes that blocks, large objects and everything the collector keeps beside them never exceed;
    /// `usize::MAX` for no maximum. See `footprint`.
    pub max_bytes: usize,
    /// Bytes the heap may grow to between collections, whatever is alive; 0: computed from the live bytes. A
    /// heap with few live bytes collects sooner: see `sizing`.
    pub fixed_bytes: usize,
    /// Used where `fixed_bytes` is 0: the smallest size of the heap, in bytes, by which its allocation budget
    /// is computed; 0: computed from the live bytes. Variable.
    pub least_bytes: usize,
    /// Allocation budget between collections, in percent of the live bytes; small heaps get more.
    pub percent: u32,
    /// Replaces `percent`: the allocation budget follows from the bytes that a collection scans, divided by
    /// this (`growth`); 0: `percent` holds.
    pub divisor: u32,
    /// True if dead objects are overwritten.
    pub poison: bool,
    /// True if every invariant is checked after each phase of each collection, and a broken one ends the
    /// process: for tests. Slow.
    pub paranoid: bool,
    /// For tests: on average one allocation in this many, at random, collects or makes a slice. 1: every
    /// allocation, which is very slow; 0: off.
    pub eager: u32,
    /// Seed of the random points. One thread that makes the same allocations collects at the same points.
    pub seed: u64,
    /// True if a thread of the collector's own makes slices while all others are in blocking regions.
    pub idle_thread: bool,
    /// True if every block is emptied at every collection, even dense ones: for tests of plans that move.
    pub restless: bool,
    /// Nanoseconds that a slice of a collection should last at most; 0: collections are made at one go.
    pub slice_ns: u64,
    /// True if threads stop for collections at safepoints only, and not by a signal.
    pub safepoints: bool,
    /// True if the marks of old objects may stay, so that most collections at one go trace new objects only.
    /// Needs write tracking, and is used where it pays. Under [`PlanName::MarkSweep`].
    pub sticky_marks: bool,
    /// Threads that mark in a collection at one go of a large heap (`parallel`), with the collecting one; 0:
    /// one for each processor, four at most.
    pub markers: u32,
    /// True if the program reports each store of a pointer by `vel_gc_write`.
    pub tells_writes: bool,
    /// The policy that sizes the heap's regions. `percent` and `fixed_bytes` are for [`Sizing::Knee`].
    pub sizing: Sizing,
    /// The use of the region that a major collection has vacated. Under [`PlanName::Appel`].
    pub after_major: AfterMajor,
    /// True if stacks and registers are left out of the scan: every pointer there that is still needed is
    /// also in a frame (`frames`). Threads then stop at safepoints only.
    pub precise_stacks: bool,
}

impl Config {
    /// The default settings.
    pub const DEFAULT: Config = Config {
        plan: PlanName::MarkSweep,
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
        sticky_marks: false,
        markers: 0,
        tells_writes: false,
        sizing: Sizing::Knee,
        after_major: AfterMajor::Stay,
        precise_stacks: false,
    };
    /// The largest percentage accepted.
    pub const PERCENT_MAX: u32 = 10_000;
    /// The smallest [`Config::max_bytes`] with which a heap starts: what a collector needs before the first
    /// object, and as much for objects.
    pub const MAX_LEAST: usize = 1 << 20;
}

impl Default for Config {
    fn default() -> Self {
        Config::DEFAULT
    }
}

/// The least allocation budget, in bytes. With less, collections would mostly pay for scanning static data.
pub(crate) const ROOM_MIN: usize = 256 << 10;
/// The allocation budget is at least the geometric mean of this and the live bytes. The best size of a heap
/// grows with the square root of the live bytes (Kirisame, Shenoy and Panchekha 2022). This rule gives small
/// heaps a budget that costs little memory and saves much time.
pub(crate) const ROOM_MEAN: usize = 16 << 20;
/// The least allocation budget under a fixed size or a limit, as a part of it: one thirty-second.
pub(crate) const ROOM_PART: usize = 32;
/// Nanoseconds that a collection takes for a KiB of the heap, before the first measurement.
pub(crate) const TRACE_NS_A_KIB: u64 = 300;
/// Words on the mark stack. Address space: touched pages beyond [`STACK_KEPT`] are given back.
pub(crate) const STACK_WORDS: usize = 1 << 20;
/// Bytes of the mark stack that stay resident between collections.
pub(crate) const STACK_KEPT: usize = 256 << 10;
