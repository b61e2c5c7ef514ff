//! The heap: all state under the collector's lock, except the plan (the way to collect the heap).
//!
//! Each part of the heap has its own folder, and refers to no other part. A function that needs several parts
//! has a parameter for each, or it lies in a folder above theirs and its parameter is the heap.

pub(crate) mod decide;
pub(crate) mod event;
pub(crate) mod footprint;
mod freed;
mod publish;
pub(crate) mod shared;
pub(crate) mod statistics;
mod vacancy;
mod validate;

use crate::config::Config;
use crate::config::sizing::Sizing;
use crate::config::strict::Strict;
use crate::death::Deaths;
use crate::death::table::Table;
use crate::heap::shared::Shared;
use crate::heap::statistics::Stats;
use crate::sizing::SizingState;
use crate::space::block::{Block, Index};
use crate::space::block_source;
use crate::space::heap_space::HeapSpace;
use crate::space::size_class::BLOCK;
use crate::trace::mark::StackMemory;
use crate::trace::mark_bytes::Bytes;
use crate::trace::roots::Roots;
use crate::world::idle_signal;
use crate::world::thread::Thread;
use crate::write_tracking::tracking::Tracking;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;
use vellum_pages::Plain;
use vellum_sys::Addr;

/// Bytes that the plan's lists take, as the plan has reported them.
pub(crate) struct PlanBytes {
    /// Lists of blocks for copies, and of fields.
    pub lists: usize,
    /// The destinations of copies, by slot.
    pub runs: usize,
    /// Everything else.
    pub own: usize,
}

/// The parts of a heap. Reached under its lock.
pub(crate) struct Heap {
    pub shared: &'static Shared,
    pub started: bool,
    pub config: Config,
    pub space: HeapSpace,
    pub roots: Roots,
    pub stack: StackMemory,
    pub mark_bytes: Bytes,
    /// Objects may move, by its plan.
    pub moves: bool,
    /// A block counts as handed out as soon as a thread has it, by its plan (`appel`).
    pub counts_blocks: bool,
    pub tracking: Tracking,
    pub deaths: Deaths,
    pub sizing: SizingState,
    pub plan_bytes: PlanBytes,
    /// Some type's pointers are named by a callback.
    pub has_procedures: bool,
    /// The user's choice of a sizing policy, which overrides the settings.
    pub sizing_asked: Option<Sizing>,
    /// The user's choice of checks, which overrides the settings.
    pub strict_asked: Option<Strict>,
    /// The number of calls that have disabled collection: they nest.
    pub held: u32,
    pub stats: Stats,
    /// The counters as published last.
    pub told: Stats,
}

impl Heap {
    /// The block whose object starts at `object`, if one does.
    pub(crate) fn block_starting(&self, object: Addr) -> Option<&'static Block> {
        let block = self.space.table.block_of(object)?;
        let index = block.index_at(object - block.base.get());
        (index.0 < block.count.get() && block.address(index) == object && block.is_allocated(index))
            .then_some(block)
    }

    /// The object that holds the byte at `address`.
    pub(crate) fn find(&self, address: Addr) -> Option<(&'static Block, Index)> {
        let block = self.space.table.block_of(address)?;
        let index = block.index_at(address - block.base.get());
        (index.0 < block.count.get() && block.is_allocated(index)).then_some((block, index))
    }

    pub(crate) const fn new(shared: &'static Shared) -> Heap {
        Heap {
            shared,
            started: false,
            config: Config::DEFAULT,
            space: HeapSpace::new(),
            roots: Roots::new(),
            stack: StackMemory { start: null_mut(), room: 0 },
            mark_bytes: Bytes::NONE,
            moves: false,
            counts_blocks: false,
            tracking: Tracking::new(),
            deaths: Deaths::new(),
            sizing: SizingState::new(),
            plan_bytes: PlanBytes { lists: 0, runs: 0, own: 0 },
            has_procedures: false,
            sizing_asked: None,
            strict_asked: None,
            held: 0,
            stats: Stats::new(),
            told: Stats::new(),
        }
    }

    /// New objects are to be unmarked from now on.
    pub(crate) fn turn_white(&self) {
        self.shared.white.store(true, Ordering::Relaxed);
    }

    /// Ends the account of writes.
    pub(crate) fn end_account(&mut self) {
        (self.tracking.account, self.tracking.is_leaving) = (None, false);
        self.shared.white.store(false, Ordering::Relaxed);
    }

    /// Slots that threads may have runs of.
    pub(crate) fn slots_in_use(&self) -> usize {
        self.space.slots.len()
    }

    /// Counts the bytes that `thread`, the caller or a stopped thread, has taken from blocks since the last
    /// time.
    pub(crate) fn count_taken(&mut self, thread: &Thread) {
        let taken = thread.uncounted.replace(0);
        if !self.counts_blocks {
            self.hand_out(taken);
        }
    }

    /// Counts new entries of a table as handed out. A program may make finalizers and links faster than
    /// objects: they are traced before the tables are larger than the heap.
    pub(crate) fn count_entries<V: Plain>(&mut self, before: usize, after: usize) {
        self.sizing.used += after.saturating_sub(before) * Table::<V>::BYTES_A_KEY;
    }

    pub(crate) fn hand_out(&mut self, bytes: usize) {
        self.sizing.used += bytes;
        if self.config.idle_thread && self.sizing.used >= self.sizing.room / idle_signal::WORTH_PART {
            self.shared.world.idle.note_work();
        }
        self.stats.allocated_bytes += bytes as u64;
    }

    /// The pages of a free block.
    pub(crate) fn take_unit(&mut self) -> Option<Addr> {
        if let Some(&unit) = self.space.pool.last() {
            self.space.pool.truncate(self.space.pool.len() - 1);
            self.space.source.occupy(unit);
            return Some(unit);
        }
        block_source::take(BLOCK, false)
    }

    pub(crate) fn grew(&mut self, bytes: usize) {
        self.space.bytes += bytes;
        self.stats.heap_peak_bytes = self.stats.heap_peak_bytes.max(self.space.bytes as u64);
        self.publish_growth();
    }
}
