//! The heap: its parts, under one lock.
//!
//! Each part has its folder and knows nothing of the others. A function that needs several parts takes these
//! by name, or lies in a file above this one and takes the heap.

use crate::config::Config;
use crate::death::deaths::Deaths;
use crate::death::table::Table;
use crate::debug::checks::Strict;
use crate::mutator::idle_signal;
use crate::mutator::thread::Thread;
use crate::plan::appel::state::Appel;
use crate::plan::copies::Copies;
use crate::plan::mark_sweep::cycle::Incremental;
use crate::sizing::choice::Sizing;
use crate::sizing::state::SizingState;
use crate::space::block::{Address, Block, Index};
use crate::space::block_source;
use crate::space::heap_space::HeapSpace;
use crate::space::size_class::BLOCK;
use crate::statistics::Stats;
use crate::trace::mark::StackMemory;
use crate::trace::roots::Roots;
use crate::write_tracking::tracking::Tracking;
use core::ptr::null_mut;
use vellum_pages::Plain;
use vellum_sys::lock::Guarded;

pub(crate) static HEAP: Guarded<Heap> = Guarded::new(Heap::new());

/// The parts of a heap. Reached under its lock.
pub(crate) struct Heap {
    pub started: bool,
    pub config: Config,
    pub space: HeapSpace,
    pub roots: Roots,
    pub stack: StackMemory,
    pub tracking: Tracking,
    pub deaths: Deaths,
    pub sizing: SizingState,
    pub copies: Copies,
    pub appel: Appel,
    pub incremental: Incremental,
    /// Whether any type's pointers are named by a callback.
    pub has_procedures: bool,
    /// How the user has asked for the heap to be sized, whatever its settings say.
    pub sizing_asked: Option<Sizing>,
    /// How strictly the user has asked for it to be checked, whatever they say.
    pub strict_asked: Option<Strict>,
    /// How often collection is disabled: calls nest.
    pub held: u32,
    pub stats: Stats,
    /// The counters as published last.
    pub told: Stats,
}

// SAFETY: the pointers are to memory of the whole process, reached under the lock.
unsafe impl Send for Heap {}

impl Heap {
    /// The block whose object starts at `object`, if one does.
    pub(crate) fn block_starting(&self, object: Address) -> Option<&'static Block> {
        let block = self.space.table.block_of(object)?;
        let index = block.index_at(object - block.base.get());
        (index.0 < block.count.get() && block.address(index) == object && block.is_allocated(index))
            .then_some(block)
    }

    /// The object that holds the byte at `address`.
    pub(crate) fn find(&self, address: usize) -> Option<(&'static Block, Index)> {
        let block = self.space.table.block_of(address)?;
        let index = block.index_at(address - block.base.get());
        (index.0 < block.count.get() && block.is_allocated(index)).then_some((block, index))
    }

    const fn new() -> Heap {
        Heap {
            started: false,
            config: Config::DEFAULT,
            space: HeapSpace::new(),
            roots: Roots::new(),
            stack: StackMemory { start: null_mut(), room: 0 },
            tracking: Tracking::new(),
            deaths: Deaths::new(),
            sizing: SizingState::new(),
            copies: Copies::new(),
            appel: Appel::new(),
            incremental: Incremental::new(),
            has_procedures: false,
            sizing_asked: None,
            strict_asked: None,
            held: 0,
            stats: Stats::new(),
            told: Stats::new(),
        }
    }

    /// Slots that threads may have runs of.
    pub(crate) fn slots_in_use(&self) -> usize {
        self.space.slots.len()
    }

    /// Counts the bytes that `thread` has taken from blocks since the last time. The thread is the caller, or
    /// stands still.
    pub(crate) fn count_taken(&mut self, thread: &Thread) {
        let taken = thread.uncounted.replace(0);
        if !self.counts_blocks() {
            self.hand_out(taken);
        }
    }

    /// Counts new entries of a table as handed out. So a program that makes finalizers and links faster than
    /// objects has them traced before the tables are larger than the heap.
    pub(crate) fn count_entries<V: Plain>(&mut self, before: usize, after: usize) {
        self.sizing.used += after.saturating_sub(before) * Table::<V>::BYTES_A_KEY;
    }

    /// Whether a block counts as handed out as soon as a thread has it: with generations, the budget is whole
    /// blocks.
    pub(crate) fn counts_blocks(&self) -> bool {
        self.config.plan.constraints().counts_blocks
    }

    pub(crate) fn hand_out(&mut self, bytes: usize) {
        self.sizing.used += bytes;
        if self.config.idle_thread && self.sizing.used >= self.sizing.room / idle_signal::WORTH_PART {
            idle_signal::note_work();
        }
        self.stats.allocated_bytes += bytes as u64;
    }

    /// The pages of a free block.
    pub(crate) fn take_unit(&mut self) -> Option<Address> {
        if let Some(&unit) = self.space.pool.last() {
            self.space.pool.truncate(self.space.pool.len() - 1);
            block_source::occupy(unit);
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
