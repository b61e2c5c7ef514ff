//! The heap: which blocks there are, which have room, and when it is time to collect.
//!
//! # Invariants (checked by [`Heap::validate`])
//! * `blocks` has every block and large object once; the address table leads to each.
//! * A slot's list of blocks with room has only blocks of the slot, none of which is a thread's.
//! * `bytes` is the sum of the extents of `blocks`, and never above the limit.

use crate::appel::Appel;
use crate::block::{Block, Region, Scan, count_of, pairs_of};
use crate::class::{ATOMIC_FIRST, BLOCK, CLASS_LAST, SLOTS_MAX, TYPED_FIRST, WORD, bytes_of};
use crate::config::{Config, Plan, ROOM_MIN, STACK_WORDS, TRACE_NS_A_KIB};
use crate::cycle::Cycle;
use crate::descriptors::Descriptors;
use crate::dirty::{self, Dirty};
use crate::disclaim::Disclaimers;
use crate::evacuate::Copies;
use crate::event;
use crate::finalize::Finalizer;
use crate::ground;
use crate::idle_thread;
use crate::kept::Kept;
use crate::layout::{Layout, LayoutRoom, Shape};
use crate::links::Link;
use crate::mark::StackMemory;
use crate::procedure::TraceFn;
use crate::roots::Roots;
use crate::sizing::{Found, Paid, Sizing, Watch, cache_bytes};
use crate::space::Space;
use crate::stats::Stats;
use crate::sticky::Sticky;
use crate::stop;
use crate::strict::{self, Strict};
use crate::table::Table;
use crate::thread::Thread;
use crate::young::{ALL, Young};
use core::cell::Cell;
use core::ptr::{null, null_mut};
use vellum_pages::{Buffer, OutOfMemory, PAGE, Plain, round_up};
use vellum_sys::lock::Guarded;
use vellum_sys::map;

/// The process's heap.
pub(crate) static HEAP: Guarded<Heap> = Guarded::new(Heap::new());

/// Objects of one size whose pointers lie alike.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub size: usize,
    pub scan: Scan,
    pub layout: *const Layout,
    /// Its objects stay until they are freed.
    pub kept: bool,
    /// Blocks with room.
    pub roomy: *const Block,
    /// Of [`ALL`] young objects, so many lived on the last time.
    pub survival: u32,
    /// Those that live on lie apart from each other.
    pub scattered: bool,
    pub young: Young,
}

// SAFETY: a record of numbers and of pointers that own nothing.
unsafe impl Plain for Slot {}

/// A slot that is not in use.
pub(crate) const NO_SLOT: Slot = Slot {
    size: 0,
    scan: Scan::Nothing,
    layout: null(),
    kept: false,
    roomy: null(),
    survival: ALL,
    scattered: false,
    young: Young { met: 0, left: 0, reached: 0, runs: 0 },
};

/// A unit of pages that became free while the world stood still, to be given back when it goes on.
pub(crate) type Address = usize;

/// What a thread that needs a block gets.
pub(crate) enum Supply {
    Block(&'static Block),
    /// It is time to collect.
    Collect,
    /// There is no memory.
    Full,
}

/// See the head of this file. Reached under its lock.
pub(crate) struct Heap {
    pub started: bool,
    pub config: Config,
    pub space: Space,
    /// What objects there are, [`SLOTS_MAX`] kinds at most. The first ones are those of untyped objects, by class.
    pub slots: Buffer<Slot>,
    pub layouts: *const Layout,
    pub layout_room: LayoutRoom,
    /// Descriptors' addresses.
    pub blocks: Buffer<Address>,
    /// Free blocks' addresses.
    pub pool: Buffer<Address>,
    /// Blocks of the pool that were not needed at the last collection.
    pub surplus: usize,
    /// The last collection gave most of the heap back.
    pub shrinks: bool,
    /// Extents of dead large objects.
    pub doomed: Buffer<Address>,
    /// Objects freed by their users, until the next collection.
    pub freed: Buffer<Address>,
    pub descriptors: Descriptors,
    pub roots: Roots,
    pub stack: StackMemory,
    pub copies: Copies,
    pub appel: Appel,
    pub finalizers: Table<Finalizer>,
    pub disclaimers: Disclaimers,
    pub links: Table<Link>,
    pub kept: Kept,
    /// Values by their keys.
    pub ephemerons: Table<Address>,
    /// Whether any type's pointers are named by a procedure.
    pub has_procedures: bool,
    /// Finalizers that are due.
    pub due: usize,
    /// Where in their table the next is looked for.
    pub due_from: usize,
    pub finalize_on_demand: bool,
    /// Bytes of blocks and large objects.
    pub bytes: usize,
    /// Bytes handed out since the last collection.
    pub used: usize,
    /// Bytes to hand out before the next one.
    pub room: usize,
    /// Bytes below the limit that are kept back: see `sizing`.
    pub reserve: usize,
    /// What the last collection found.
    pub found: Found,
    /// How large it is by the rule of `Config::divisor`.
    pub paid: Paid,
    /// What memory there is.
    pub watch: Watch,
    /// How the heap is sized whatever its settings say: the user's word.
    pub sizing_asked: Option<Sizing>,
    /// How strictly it is looked after whatever they say: the same.
    pub strict_asked: Option<Strict>,
    /// Words of roots at the last collection that was made at one go.
    pub root_words: usize,
    /// Bytes of blocks and large objects that are not exceeded: the limit, or what they were when it was set.
    pub keeps_to: usize,
    /// The same for all that the heap takes.
    pub keeps_all_to: usize,
    /// Bytes of the second-level cache; 0 if they are not known.
    pub cache_bytes: usize,
    /// How often collection is held off.
    pub held: u32,
    /// The collection in slices that is on.
    pub cycle: Option<Cycle>,
    /// Slices are made in idle time.
    pub is_idle: bool,
    /// The account of what is written, between cycles.
    pub dirty: Option<Dirty>,
    /// It is let go of piece by piece.
    pub is_leaving: bool,
    /// What old marks are good for.
    pub sticky: Sticky,
    /// One could not be begun since the last collection.
    pub slicing_failed: bool,
    /// Nanoseconds that the last whole collection took for a KiB of the heap.
    pub ns_a_kib: u64,
    /// Nanoseconds of CPU time that the last end of a cycle took.
    pub end_ns: u64,
    pub stats: Stats,
    /// What the board has been told.
    pub told: Stats,
}

// SAFETY: the pointers are to memory of the whole process, reached under the lock.
unsafe impl Send for Heap {}

impl Heap {
    const fn new() -> Heap {
        Heap {
            started: false,
            config: Config::DEFAULT,
            space: Space::none(),
            slots: Buffer::new(),
            layouts: null(),
            layout_room: LayoutRoom::new(),
            blocks: Buffer::new(),
            pool: Buffer::new(),
            surplus: 0,
            shrinks: false,
            doomed: Buffer::new(),
            freed: Buffer::new(),
            descriptors: Descriptors::new(),
            roots: Roots::new(),
            stack: StackMemory { start: null_mut(), room: 0 },
            copies: Copies::new(),
            appel: Appel::new(),
            finalizers: Table::new(),
            disclaimers: Disclaimers::new(),
            links: Table::new(),
            kept: Kept::new(),
            ephemerons: Table::new(),
            has_procedures: false,
            due: 0,
            due_from: 0,
            finalize_on_demand: false,
            bytes: 0,
            used: 0,
            room: ROOM_MIN,
            reserve: 0,
            found: Found::NOTHING,
            paid: Paid::NOTHING,
            watch: Watch::new(),
            sizing_asked: None,
            strict_asked: None,
            root_words: 0,
            keeps_to: usize::MAX,
            keeps_all_to: usize::MAX,
            cache_bytes: 0,
            held: 0,
            cycle: None,
            is_idle: false,
            dirty: None,
            is_leaving: false,
            sticky: Sticky::new(),
            slicing_failed: false,
            ns_a_kib: TRACE_NS_A_KIB,
            end_ns: 0,
            stats: Stats::new(),
            told: Stats::new(),
        }
    }

    /// Starts the heap with `config`, if it has not started. False if memory is out.
    pub(crate) fn start(&mut self, config: Config) -> bool {
        if self.started {
            return true;
        }
        if self.begin_slots().is_err() {
            return false;
        }
        let Some(space) = Space::new() else { return false };
        let Ok(stack) = map::reserve_writable(STACK_WORDS * WORD) else {
            space.give_back();
            return false;
        };
        if config.tells_writes && !dirty::make_cards(&space) {
            // SAFETY: the range was reserved a moment ago, and nobody knows of it.
            let _ = unsafe { map::release(stack, STACK_WORDS * WORD) };
            space.give_back();
            return false;
        }
        // From here on nothing fails.
        if config.safepoints || config.precise_stacks {
            stop::at_safepoints();
        }
        if config.idle_thread {
            idle_thread::want();
        }
        let config = self.strict_asked.map_or(config, |strict| strict.put_on(config));
        strict::begin(config);
        self.stack = StackMemory { start: stack as *mut usize, room: STACK_WORDS };
        self.space = space;
        self.config = Config { sizing: self.sizing_asked.unwrap_or(config.sizing), ..config };
        if config.plan.moves() {
            self.descriptors.with_pins();
        }
        self.started = true;
        self.cache_bytes = cache_bytes();
        self.set_max(config.max_bytes);
        match config.plan {
            Plan::Appel => self.set_regions(Found::NOTHING, true),
            _ => self.set_room(Found::NOTHING),
        }
        true
    }

    /// The slots of untyped objects.
    fn begin_slots(&mut self) -> Result<(), OutOfMemory> {
        self.slots.truncate(0);
        self.slots.reserve(TYPED_FIRST)?;
        for index in 0..TYPED_FIRST {
            let (class, scan) = if index < ATOMIC_FIRST {
                (index, Scan::Words)
            } else {
                (index - ATOMIC_FIRST, Scan::Nothing)
            };
            let is_used = (1..=CLASS_LAST).contains(&class);
            self.slots.push(if is_used {
                Slot { size: bytes_of(class), scan, ..NO_SLOT }
            } else {
                NO_SLOT
            })?;
        }
        Ok(())
    }

    /// Slots that threads may have runs of.
    pub(crate) fn slots_in_use(&self) -> usize {
        self.slots.len()
    }

    fn may_collect(&self, collected: bool) -> bool {
        self.held == 0 && !collected && event::is_welcome(self)
    }

    /// A block for `slot`; `collected` says that a collection was made for it already.
    pub(crate) fn supply(&mut self, slot: usize, collected: bool) -> Supply {
        self.check_room();
        if self.used >= self.room_now() && self.may_collect(collected) {
            return Supply::Collect;
        }
        // SAFETY: null, or a descriptor.
        if let Some(block) = unsafe { self.slots[slot].roomy.as_ref() }
            && self.may_fill_holes()
        {
            self.slots[slot].roomy = block.next.get();
            self.block_goes_out(block);
            block.next.set(null());
            if self.counts_blocks() {
                self.hand_out((block.count.get() - block.allocated_count()) as usize * block.size.get());
            }
            return Supply::Block(block);
        }
        if !self.may_have_block() && self.may_collect(collected) {
            return Supply::Collect;
        }
        if self.bytes + BLOCK > self.limit() {
            return Supply::Full;
        }
        match self.new_block(slot) {
            Some(block) => Supply::Block(block),
            None if self.may_collect(collected) => Supply::Collect,
            None => Supply::Full,
        }
    }

    /// Sees to it that a large room is looked at again before it is used up.
    #[inline]
    fn check_room(&mut self) {
        if self.used >= self.watch.check_at() {
            self.look_again();
        }
    }

    /// Whether threads may allocate in blocks that have something alive. Where there are generations those are old: only if there is no room for a
    /// new one, or far too much of it, as what is made there is old at once.
    fn may_fill_holes(&self) -> bool {
        self.config.plan != Plan::Appel
            || self.appel.is_pinned
            || self.bytes + BLOCK + self.reserve > self.limit()
    }

    /// Counts what `thread` has taken of blocks since the last time. The thread is the caller, or stands still.
    pub(crate) fn count_taken(&mut self, thread: &Thread) {
        let taken = thread.uncounted.replace(0);
        if !self.counts_blocks() {
            self.hand_out(taken);
        }
    }

    /// Counts an entry of a table as handed out: a program that makes finalizers and links faster than objects is to have them looked through before the tables
    /// are larger than the heap.
    pub(crate) fn count_entries<V: Plain>(&mut self, before: usize, after: usize) {
        self.used += after.saturating_sub(before) * Table::<V>::BYTES_A_KEY;
    }

    /// Whether a block counts as handed out as soon as a thread has it: with generations, what there is room for is whole blocks.
    fn counts_blocks(&self) -> bool {
        self.config.plan == Plan::Appel
    }

    fn hand_out(&mut self, bytes: usize) {
        self.used += bytes;
        self.note_work();
        self.stats.allocated_bytes += bytes as u64;
    }

    fn new_block(&mut self, slot: usize) -> Option<&'static Block> {
        let Slot { size, scan, layout, kept, .. } = self.slots[slot];
        let count = count_of(size);
        self.blocks.reserve(1).ok()?;
        let block = self.descriptors.take(pairs_of(count))?;
        let unit = self.take_unit();
        let entered = unit.filter(|&unit| self.space.enter(block, unit, BLOCK));
        let Some(unit) = entered else {
            self.descriptors.put(block);
            if let Some(unit) = unit {
                ground::give_back(unit);
            }
            return None;
        };
        block.begin(unit, size, count, slot as u16, scan, layout);
        if kept {
            block.region.set(Region::Kept);
        }
        self.blocks.push(core::ptr::from_ref(block) as Address).ok()?;
        self.block_came(block);
        self.grew(BLOCK);
        if self.counts_blocks() {
            self.hand_out(BLOCK);
        }
        Some(block)
    }

    /// A free block's pages.
    pub(crate) fn take_unit(&mut self) -> Option<Address> {
        if let Some(&unit) = self.pool.last() {
            self.pool.truncate(self.pool.len() - 1);
            ground::occupy(unit);
            return Some(unit);
        }
        ground::take(BLOCK, false)
    }

    fn grew(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.stats.heap_peak_bytes = self.stats.heap_peak_bytes.max(self.bytes as u64);
        self.publish_growth();
    }

    /// A large object; `Supply::Block` has it as its only one.
    pub(crate) fn large(
        &mut self,
        bytes: usize,
        scan: Scan,
        layout: *const Layout,
        collected: bool,
    ) -> Supply {
        let extent_bytes = round_up(bytes, PAGE);
        self.check_room();
        let limit = self.limit();
        let over = self.bytes.checked_add(extent_bytes).is_none_or(|bytes| bytes > limit);
        if (over || self.used.saturating_add(extent_bytes) > self.room_now() && self.used > 0)
            && self.may_collect(collected)
        {
            return Supply::Collect;
        }
        // The pool's blocks are resident: with them, too, the limit holds, and the heap comes to no more than it was given room for.
        let most = match self.config.plan {
            Plan::MarkSweep => limit.min(self.found.bytes.saturating_add(self.room)),
            _ => limit,
        };
        while !over
            && let Some(&unit) = self.pool.last()
            && self.bytes + self.pool.len() * BLOCK + extent_bytes > most
        {
            self.pool.truncate(self.pool.len() - 1);
            ground::give_back(unit);
        }
        let block = if over { None } else { self.new_large(bytes, extent_bytes, scan, layout) };
        match block {
            Some(block) => Supply::Block(block),
            None if self.may_collect(collected) => Supply::Collect,
            None => Supply::Full,
        }
    }

    fn new_large(
        &mut self,
        bytes: usize,
        extent_bytes: usize,
        scan: Scan,
        layout: *const Layout,
    ) -> Option<&'static Block> {
        self.blocks.reserve(1).ok()?;
        let block = self.descriptors.take(pairs_of(1))?;
        let zero = scan != Scan::Nothing;
        let Some(base) = ground::take(extent_bytes, zero) else {
            self.descriptors.put(block);
            return None;
        };
        if !self.space.enter(block, base, extent_bytes) {
            self.descriptors.put(block);
            ground::give_back(base);
            return None;
        }
        block.begin(base, round_up(bytes, size_of::<usize>()), 1, 0, scan, layout);
        block.extent.set(extent_bytes);
        block.take_run(0, extent_bytes);
        self.blocks.push(core::ptr::from_ref(block) as Address).ok()?;
        self.block_came(block);
        self.grew(extent_bytes);
        self.hand_out(extent_bytes);
        Some(block)
    }

    /// The layout of `shape`, made if there is none; `None` if memory is out. `procedure` is the one that the shape has the address of.
    pub(crate) fn layout(
        &mut self,
        shape: Shape,
        procedure: Option<(TraceFn, usize)>,
    ) -> Option<&'static Layout> {
        let mut next = self.layouts;
        // SAFETY: null, or a layout, which lives for ever.
        while let Some(layout) = unsafe { next.as_ref() } {
            if layout.shape() == shape {
                return Some(layout);
            }
            next = layout.next.get();
        }
        let is_there = self.layout_room.any() || (self.may_take(PAGE) && self.layout_room.fill());
        if !is_there {
            return None;
        }
        let layout = self.layout_room.take()?;
        layout.words.set(shape.words);
        layout.has_pointers.set(shape.has_pointers());
        layout.pointers.set(shape.pointers);
        layout.procedure.set(procedure);
        if procedure.is_some() && !self.has_procedures {
            self.has_procedures = true;
            self.drop_cycle();
            self.end_account();
        }
        layout.next.set(self.layouts);
        self.layouts = layout;
        let class = crate::class::class_of(shape.bytes());
        layout.bytes.set(shape.bytes() as u32);
        layout.slot.set(u32::from(self.slot_of(layout, class)));
        Some(layout)
    }

    /// The slot of objects of `class` made of elements of `layout`, made if there is none. Where slots have run out it is the
    /// untyped one.
    pub(crate) fn slot_of(&mut self, layout: &'static Layout, class: usize) -> u16 {
        let known: &Cell<u16> = &layout.array_slots[class];
        if known.get() != 0 {
            return known.get();
        }
        // Pointer-free objects of a type read zero at first, and so cannot share the atomic slots.
        let slot = self.new_slot(class, layout.scan(), layout);
        known.set(slot.unwrap_or(class as u16));
        known.get()
    }

    pub(crate) fn new_slot(&mut self, class: usize, scan: Scan, layout: *const Layout) -> Option<u16> {
        let slot = self.slots.len();
        if slot == SLOTS_MAX || slot == self.slots.capacity() && !self.may_take(PAGE) {
            return None;
        }
        self.slots.push(Slot { size: bytes_of(class), scan, layout, ..NO_SLOT }).ok()?;
        Some(slot as u16)
    }
}
