//! Who holds the memory: blocks that are sampled, and remembered with their stacks until they are freed.
//!
//! Off unless `VELLUM_HEAP_PROFILE` names the file of a `vellum heap`, or one asks for it while the process
//! runs ([`vellum_wire::door`]): then blocks are sampled that are allocated from that moment on. Nothing is
//! tested for it on the fast paths: where samples are taken, a list of free blocks ends before the block that
//! is to be one (`crate::pace`), and a sampled block is one that the fast path of `free` does not know.
//!
//! ```text
//! malloc ─▶ list empty ─▶ a sample? ─▶ walk ─▶ Live: address → stack, amount     (one lock)
//!                                       │        ▲
//!              small: a heap apart  ◀───┘        │ forget
//!              large: a mark                     │
//! free ─▶ not this thread's slab ─▶ the heap apart's? marked? ─┘
//! ```
//!
//! | module | concept |
//! | --- | --- |
//! | `rates` | which blocks are samples, and what one stands for |
//! | `live` | the sampled blocks in use |
//! | `lock` | the lock, which is never waited for without end |
//! | `walk` | their stacks |
//! | `collected` | samples of a collector's objects |
//! | `python` | the lines of Python on them |
//! | `part` | where stacks and sums are kept, for the command to read |
//! | `index` | stacks by hash |
//! | `tables` | the room that this needs |
//! | `probes` | where other profilers may listen |
//! | `resident` | where all resident memory is, and which stacks pin free parts of it |
//!
//! A sampled small block comes from a heap that is no thread's. So each thread's `free` takes it for another
//! thread's and comes to the slow path, which sees whose it is. A sampled large block has a mark in the word
//! that remembers it (`crate::large`). The program's mappings that are served (`crate::mmap`) have no mark:
//! they are in a table of their own, which is searched when pages are unmapped. Not sampled are paged memory,
//! and what the C library's loader took before the profile began.
//!
//! # Signal handlers, forks, threads
//! The lock is taken for moments, mostly inside the thread's gate, and never waited for without end: an
//! allocation that does not get it is not sampled, a free that does not get it is done later (*deferred*). So
//! a handler that interrupts the holder comes through. For forks see `forks`.

pub mod collected;
mod forks;
mod index;
mod live;
mod lock;
mod part;
mod probes;
mod python;
mod rates;
mod resident;
mod tables;
mod walk;

use crate::alloc::check_live;
use crate::class::{bytes_of, class_of};
use crate::heap::Heap;
use crate::lengths::{SAMPLED, length_of};
use crate::mode::{self, Hooks};
use crate::slab::Slab;
use crate::space::{Space, push_remote};
use crate::{misuse, registry, threads};
use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicI64, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use live::{Live, Sample};
use lock::{enter_sample, inside, state_for_sample, try_state};
use misuse::Fault;
use part::Part;
use rates::{Random, passing, stands_for};
use rustix::io::Errno;
use tables::Tables;
use vellum_pages::{PAGE, UNIT};
use vellum_sys::lock::Guarded;
use vellum_sys::{Caps, caps, round_up};
use vellum_wire::door::Ask;
use vellum_wire::held::{Amount, INTERVAL_MAX};

struct State {
    live: Live,
    mapped: Live,
    part: Part,
    tables: *mut Tables,
}

// SAFETY: the pointer is to memory of the whole process, reached under the lock.
unsafe impl Send for State {}

static STATE: Guarded<State> =
    Guarded::new(State { live: Live::new(), mapped: Live::new(), part: Part::new(), tables: null_mut() });
/// The heap of sampled small blocks.
static APART: AtomicPtr<Heap> = AtomicPtr::new(null_mut());
/// Bytes between samples, on average.
static INTERVAL: AtomicU64 = AtomicU64::new(0);
static RANDOM: Random = Random::new(0);
/// Bytes of large blocks until the next sample.
static LARGE_LEFT: AtomicI64 = AtomicI64::new(0);
/// Blocks to be freed when the lock is to be had, linked by their first words.
static DEFERRED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// What the rest of the crate calls.
static HOOKS: Hooks = Hooks {
    small,
    consider,
    free_small,
    forget,
    lose,
    resized_small,
    mapped,
    unmapped,
    remapped,
    fork_prepare: forks::prepare,
    fork_parent: forks::parent,
    fork_child: forks::child,
    attend,
};

/// Makes it possible to ask for samples while the process runs. `find` finds symbols of the program's, or
/// says null, at any time.
pub fn prepare(find: fn(&CStr) -> *const c_void) {
    python::prepare(find);
    mode::prepare(&HOOKS);
}

/// Samples blocks from now on, into the file at `path`.
///
/// # Errors
/// What the system said; nothing is sampled then. `BUSY` in the hardened mode.
pub fn begin(path: &'static CStr) -> rustix::io::Result<()> {
    let mut state = try_state().ok_or(Errno::AGAIN)?;
    if state.tables.is_null() {
        let apart = registry::create_apart().ok_or(Errno::NOMEM)?;
        state.tables = Tables::map()?;
        APART.store(core::ptr::from_ref(apart).cast_mut(), Release);
        RANDOM.seed(crate::seal::random() as u64);
    }
    let interval = state.part.begin(path)?.min(INTERVAL_MAX);
    python::look();
    pace(interval);
    drop(state);
    if !mode::profile() {
        return Err(Errno::BUSY);
    }
    collected::tell(true);
    Ok(())
}

/// Samples no more, and lets go of the file. Sampled blocks that are in use are known until they are freed.
fn end() -> rustix::io::Result<()> {
    let mut state = try_state().ok_or(Errno::AGAIN)?;
    state.part.end();
    pace(INTERVAL_MAX);
    drop(state);
    collected::tell(false);
    Ok(())
}

/// Takes a sample every `interval` bytes from now on, on average.
fn pace(interval: u64) {
    INTERVAL.store(interval, Relaxed);
    LARGE_LEFT.store(gap(), Relaxed);
    mode::next_epoch();
}

/// Does what another process asks. On the helper.
fn attend(asked: Ask) -> u32 {
    let outcome = match asked {
        Ask::Begin => mode::DOOR.path().ok_or(Errno::INVAL).and_then(begin),
        Ask::End => end(),
        Ask::Account => account(),
    };
    outcome.err().map_or(0, |errno| errno.raw_os_error() as u32)
}

/// Counts where resident memory is, into the process's part.
fn account() -> rustix::io::Result<()> {
    let mut state = try_state().ok_or(Errno::AGAIN)?;
    state.account().ok_or(Errno::SRCH)
}

/// Counts once more, before the process ends.
pub fn finish() {
    if mode::is_profiled() && caps::has(Caps::HELPER) {
        let _ = account();
    }
}

/// Bytes to the next sample.
fn gap() -> i64 {
    (RANDOM.exponential() * INTERVAL.load(Relaxed) as f64) as i64
}

/// A small block, sampled or not; `None` if memory is out, or the thread is inside its gate.
#[cold]
fn small(bytes: usize) -> Option<*mut u8> {
    let heap = threads::attached().filter(|heap| heap.gate.enter())?;
    let class = class_of(bytes.max(1));
    let draw = || passing(&RANDOM, INTERVAL.load(Relaxed), bytes_of(class));
    let sample = |neighbour| sample_small(class, bytes, neighbour);
    let block = heap.take_paced(class, mode::epoch(), draw, sample);
    heap.gate.leave();
    if !DEFERRED.load(Relaxed).is_null() {
        free_deferred();
    }
    block
}

#[cold]
fn sample_small(class: usize, bytes: usize, neighbour: *const u8) -> Option<*mut u8> {
    let mut state = state_for_sample()?;
    // SAFETY: null, or a heap, which is never unmapped.
    let apart = unsafe { APART.load(Relaxed).as_ref() }?;
    let block = apart.take_apart(class)?;
    // Without a record it is a block like others.
    let space = Space::get();
    let offset = (neighbour as usize).wrapping_sub(space.base);
    let neighbours = if offset < space.bytes { (offset / UNIT) as u32 + 1 } else { 0 };
    state.record(block, bytes, bytes_of(class), [class as u32, neighbours]);
    Some(block)
}

/// Whether one of the points that are samples lies on the next `whole` bytes.
fn is_due(whole: usize) -> bool {
    let passed = |left: i64| left - whole as i64;
    let decided = LARGE_LEFT
        .fetch_update(Relaxed, Relaxed, |left| Some(if passed(left) >= 0 { passed(left) } else { gap() }));
    decided.is_ok_and(|left| passed(left) < 0)
}

/// Samples a new large block of `bytes` bytes, if it is due.
#[cold]
fn consider(block: *mut u8, bytes: usize) {
    let whole = round_up(bytes.max(1), PAGE);
    if !is_due(whole) {
        return;
    }
    // Memory of the pager has no such word.
    let Some(length) = length_of(block) else { return };
    enter_sample(|state| {
        if state.record(block, bytes, whole, [0, 0]) {
            length.fetch_or(SAMPLED, Relaxed);
        }
    });
}

/// Samples a new mapping of the program, if it is due.
#[cold]
fn mapped(start: usize, bytes: usize) {
    if is_due(round_up(bytes, PAGE)) {
        enter_sample(|state| state.record_mapping(start, bytes));
    }
}

/// Takes the pages from `start` to `end` out of the mappings.
#[cold]
fn unmapped(start: usize, end: usize) {
    inside(|state| _ = state.cut(start as u64, end as u64));
}

/// Notes that a mapping of `old` bytes has another place and length.
#[cold]
fn remapped(from: usize, to: usize, [old, bytes]: [usize; 2]) {
    let (mut is_known, whole) = (false, round_up(bytes, PAGE));
    inside(|state| {
        let end = (from + round_up(old, PAGE)) as u64;
        let Some(piece) = state.cut(from as u64, end) else { return };
        is_known = true;
        let (pages, to) = ((whole / PAGE) as u32, to as u64);
        let moved = if pages > piece.class {
            let grown = stands_for(INTERVAL.load(Relaxed), bytes, whole);
            Some(Sample { bytes: grown.bytes, class: pages, ..piece })
        } else {
            piece.part(piece.address, piece.address + whole as u64)
        };
        if let Some(moved) = moved {
            state.keep(Sample { address: to, ..moved }, moved.bytes.saturating_sub(piece.bytes));
        }
    });
    // Points may lie on the bytes that were added.
    if !is_known && bytes > old && is_due(whole - old) {
        enter_sample(|state| state.record_mapping(to, bytes));
    }
}

/// A sample that was entered.
struct Entered {
    /// The entry of its stack.
    stack: u32,
    generation: u32,
    /// What it stands for.
    amount: Amount,
}

impl State {
    /// Remembers a block of `whole` bytes, of which `bytes` were asked for, of this class and with such
    /// neighbours ([`Sample`]). False if it could not be.
    fn record(&mut self, block: *mut u8, bytes: usize, whole: usize, of: [u32; 2]) -> bool {
        let Some(sample) = self.sample(block as usize, bytes, whole, of) else { return false };
        let is_there = self.insert(sample, false);
        if is_there {
            probes::alloc(sample.address, bytes as u64, sample.bytes);
            self.count_sample(&sample, true);
        }
        is_there
    }

    fn record_mapping(&mut self, start: usize, bytes: usize) {
        let whole = round_up(bytes, PAGE);
        let Some(sample) = self.sample(start, bytes, whole, [(whole / PAGE) as u32, 0]) else { return };
        if self.insert(sample, true) {
            self.count_sample(&sample, true);
        }
    }

    fn sample(&mut self, at: usize, bytes: usize, whole: usize, of: [u32; 2]) -> Option<Sample> {
        let Entered { stack, generation, amount } = self.enter(bytes, whole)?;
        let (Amount { bytes, blocks, .. }, [class, neighbours]) = (amount, of);
        Some(Sample { address: at as u64, bytes, blocks, stack, generation, class, neighbours })
    }

    /// Puts a sample into its table, in the place of one that is stale. False if there is no room.
    fn insert(&mut self, sample: Sample, is_mapping: bool) -> bool {
        let table = if is_mapping { &mut self.mapped } else { &mut self.live };
        if !table.reserve() {
            self.part.head().lost.fetch_add(1, Relaxed);
            return false;
        }
        if let Some(stale) = table.insert(sample) {
            self.count_sample(&stale, false);
        }
        true
    }

    /// Takes the pages from `start` to `end` out of the mappings. Returns the first piece, which is not
    /// counted any more; it stands for the block if no other part is left of it.
    fn cut(&mut self, start: u64, end: u64) -> Option<Sample> {
        let mut first = None;
        while let Some(old) = self.mapped.take_overlapping(start, end) {
            self.count_sample(&old, false);
            let mut blocks = old.blocks;
            for part in [old.part(old.address, start), old.part(end, old.end())].into_iter().flatten() {
                self.keep(Sample { blocks: core::mem::take(&mut blocks), ..part }, 0);
            }
            let piece = old.part(old.address.max(start), old.end().min(end));
            first = first.or(piece.map(|piece| Sample { blocks, ..piece }));
            // No two samples have a page in common.
            if old.address <= start && end <= old.end() {
                break;
            }
        }
        first
    }

    /// Remembers a part of a mapping that was cut, and counts it again; `grown` bytes of it are new.
    fn keep(&mut self, sample: Sample, grown: u64) {
        let Some(generation) = self.part.generation() else { return };
        if self.insert(sample, true) && sample.generation == generation {
            self.part.stack(sample.stack).held.regain(&self.part.head().held, sample.amount(), grown);
        }
    }

    /// Enters the calling thread's stack for a block of `whole` bytes, of which `bytes` were asked for.
    /// `None` if there is no room, or the process has no part.
    fn enter(&mut self, bytes: usize, whole: usize) -> Option<Entered> {
        let (is_seated, is_new) = self.part.seat();
        if is_new {
            // SAFETY: null, or mapped by `begin`; under the lock nobody else reaches them.
            unsafe { Tables::clear(self.tables) };
        }
        // SAFETY: as above; they stay.
        let tables = (unsafe { self.tables.as_mut() }).filter(|_| is_seated)?;
        let walked = tables.walker.walk(&mut self.part);
        let Some(stack) = tables.find_or_add(&mut self.part, &walked) else {
            self.part.head().lost.fetch_add(1, Relaxed);
            return None;
        };
        let generation = self.part.generation().unwrap_or(0);
        Some(Entered { stack, generation, amount: stands_for(INTERVAL.load(Relaxed), bytes, whole) })
    }

    /// Counts where resident memory is, and what stacks pin of it. `None` if the process has no part.
    fn account(&mut self) -> Option<()> {
        let (generation, base) = (self.part.generation()?, self.part.base());
        // SAFETY: as in `record`.
        let tables = unsafe { self.tables.as_mut() }?;
        let at = (core::ptr::from_ref(tables) as usize, size_of::<Tables>());
        tables.desk.count(&self.part.head().resident, [at, self.live.range(), self.mapped.range()], base);
        for at in tables.entries() {
            self.part.stack(at).pins.store(0, Relaxed);
        }
        tables.desk.weigh(self.live.samples().filter(|sample| sample.generation == generation));
        for sample in self.live.samples().filter(|sample| sample.generation == generation) {
            let share = tables.desk.share(sample);
            self.part.stack(sample.stack).pins.fetch_add(share, Relaxed);
        }
        Some(())
    }

    /// Counts a block that was sampled by this process, not by one that it was forked from.
    fn count(&self, stack: u32, generation: u32, amount: Amount, is_allocated: bool) {
        if self.part.generation() == Some(generation) {
            let all = &self.part.head().held;
            self.part.stack(stack).held.change(all, amount, is_allocated);
        }
    }

    fn count_sample(&self, sample: &Sample, is_allocated: bool) {
        self.count(sample.stack, sample.generation, sample.amount(), is_allocated);
    }

    fn forget(&mut self, address: *mut u8) {
        if let Some(sample) = self.live.remove(address as u64) {
            probes::free(sample.address);
            self.count_sample(&sample, false);
        }
    }
}

fn is_apart(slab: &Slab) -> bool {
    let owner = slab.owner.load(Relaxed);
    !owner.is_null() && core::ptr::eq(owner, APART.load(Relaxed))
}

/// Frees a sampled small block; false, with nothing done, if it is none.
///
/// # Safety
/// As for `crate::free`.
#[cold]
unsafe fn free_small(address: *mut u8) -> bool {
    let Some(slab) = Space::get().slab_of(address).filter(|slab| is_apart(slab)) else {
        return false;
    };
    // SAFETY: the block is the caller's to give up, of that slab.
    unsafe {
        check_live("free", slab, address);
        if forget(address) && !push_remote(slab, address, address, 1) {
            misuse::refuse_small("free", address, Fault::AlreadyFree);
        }
    }
    true
}

/// Forgets a sampled block that is freed. False if it must be freed later, which is seen to.
#[cold]
fn forget(address: *mut u8) -> bool {
    if lose(address) {
        return true;
    }
    let mut head = DEFERRED.load(Relaxed);
    loop {
        // SAFETY: the block was given up by the program, and has at least a word.
        unsafe { address.cast::<*mut u8>().write(head) };
        match DEFERRED.compare_exchange_weak(head, address, Release, Relaxed) {
            Ok(_) => return false,
            Err(now) => head = now,
        }
    }
}

/// Forgets a sampled block that is no longer one. False if the lock is not to be had.
fn lose(address: *mut u8) -> bool {
    if forks::is_abandoned() {
        return true;
    }
    // Inside the gate, so that the helper and forks find no holder stopped halfway.
    let entered = threads::current().filter(|heap| heap.gate.enter());
    let state = try_state();
    let is_done = state.is_some();
    if let Some(mut state) = state {
        state.forget(address);
    }
    if let Some(heap) = entered {
        heap.gate.leave();
    }
    is_done
}

/// Frees what could not be freed when the program did.
#[cold]
fn free_deferred() {
    let mut next = DEFERRED.swap(null_mut(), Acquire);
    while !next.is_null() {
        let block = next;
        // SAFETY: `forget` wrote the link, and the block is nobody's.
        unsafe {
            next = block.cast::<*mut u8>().read();
            crate::free(block);
        }
    }
}

/// Notes that a small block of the heap at `owner`, which takes `whole` bytes, has `bytes` bytes now.
fn resized_small(owner: usize, address: *mut u8, [whole, bytes]: [usize; 2]) {
    if owner == APART.load(Relaxed).addr() {
        resized_apart(whole, address, bytes);
    }
}

#[cold]
fn resized_apart(whole: usize, address: *mut u8, bytes: usize) {
    inside(|state| {
        if let Some(sample) = state.live.get(address as u64) {
            let old = *sample;
            sample.bytes = stands_for(INTERVAL.load(Relaxed), bytes, whole).bytes;
            let new = *sample;
            state.resize(&old, &new);
        }
    });
}

impl State {
    /// Counts a block as `new` that was counted as `old`.
    fn resize(&self, old: &Sample, new: &Sample) {
        if self.part.generation() == Some(old.generation) {
            let (all, held) = (&self.part.head().held, &self.part.stack(old.stack).held);
            held.change(all, old.amount(), false);
            held.regain(all, new.amount(), new.bytes.saturating_sub(old.bytes));
        }
    }
}

impl Heap {
    /// A block of `class`, where blocks are sampled: `draw` says how many requests pass before the next
    /// sample, `sample` makes one, given a block that it would have been beside. Numbers drawn in another
    /// epoch do not hold. `None` if memory is out. Inside the gate.
    fn take_paced(
        &'static self,
        class: usize,
        epoch: u32,
        draw: impl Fn() -> u32,
        sample: impl Fn(*const u8) -> Option<*mut u8>,
    ) -> Option<*mut u8> {
        let (list, left) = (&self.free[class], &self.pace.left[class]);
        let draw = || left.set(draw().saturating_add(1));
        self.pace.begin(epoch);
        loop {
            // SAFETY: a block on the list is free memory of at least two words.
            if let Some(free) = unsafe { list.get().as_ref() } {
                list.set(free.next());
                free.unseal();
                return Some(core::ptr::from_ref(free).cast_mut().cast());
            }
            match left.get() {
                0 => draw(),
                1 => {
                    draw();
                    let rest = self.pace.give_up(class);
                    let neighbour = if rest.is_null() { self.next_from(class) } else { rest.cast() };
                    if !rest.is_null() {
                        let blocks = u32::from(self.pace.withheld_blocks[class].get());
                        list.set(self.pace.cut(class, rest, blocks));
                    }
                    if let Some(block) = sample(neighbour) {
                        return Some(block);
                    }
                }
                _ => {
                    let fetched = self.refill(class);
                    if fetched.is_null() {
                        return None;
                    }
                    list.set(self.pace.part(class, fetched));
                }
            }
        }
    }

    /// Where the next blocks of `class` come from, likely; null if that is not known.
    fn next_from(&self, class: usize) -> *const u8 {
        let bin = &self.bins[class];
        // SAFETY: null, or a slab on a bin's list or being carved: live descriptions in the side table.
        let slab = unsafe { bin.awake.get().as_ref().or_else(|| bin.carving.get().as_ref()) };
        slab.map_or(core::ptr::null(), |slab| self.unit_of(slab))
    }

    /// A block of `class` of a heap that is nobody's thread's, for who has it to himself; it shares no slabs
    /// with others.
    fn take_apart(&'static self, class: usize) -> Option<*mut u8> {
        let (bin, list) = (&self.bins[class], &self.free[class]);
        if list.get().is_null() {
            if !self.woken.is_empty() {
                self.drain();
            }
            // SAFETY: slabs on a bin's list are live descriptions in the side table.
            let awake = unsafe { bin.awake.get().as_ref() };
            list.set(match awake {
                Some(slab) => self.take(bin, slab),
                None => self.carve(bin, class),
            });
        }
        // SAFETY: a block on the list is free memory of at least two words.
        let free = unsafe { list.get().as_ref() }?;
        list.set(free.next());
        free.unseal();
        Some(core::ptr::from_ref(free).cast_mut().cast())
    }
}
