//! A sampling heap profiler: some blocks in use are recorded with the stacks that allocated them.
//!
//! The profiler is off unless `VELLUM_HEAP_PROFILE` names the file of a `vellum heap`, or `vellum heap`
//! requests samples of a running process ([`vellum_wire::door`]). Blocks allocated from then on are sampled.
//! The fast paths have no test for samples. A thread's list of free blocks ends before the next sample, so
//! that the sampled request takes the slow path ([`vellum_malloc::sampling`]).
//!
//! ```text
//! malloc ─▶ list empty ─▶ sample due? ─▶ walk ─▶ Live: address → stack, amount     (one lock)
//!                                         │        ▲
//!              small: the sample heap ◀───┘        │ remove
//!              large: a mark                       │
//! free ─▶ not this thread's slab ─▶ of the sample heap? marked? ─┘
//! ```
//!
//! `vellum cost` also records stacks (`vellum-recorder`); common code is in `vellum-stacks`. The recorders
//! count in different ways. This one keeps the set of live blocks, each with its whole stack, under one lock:
//! only for samples is that cheap enough. `vellum cost` counts every operation, so its usual path is one
//! look-up of the return address in a table, without a lock or a walk.
//!
//! | module | concept |
//! | --- | --- |
//! | `rates` | which blocks are sampled, and the number of blocks that a sample stands for |
//! | `live` | the sampled blocks in use |
//! | `lock` | the lock, with bounded waiting |
//! | `walk` | native stacks |
//! | `python` | the lines of Python on them |
//! | `collected` | samples of a collector's objects |
//! | `part` | this process's part of the file that `vellum heap` reads |
//! | `index` | the numbers of stacks and lines, by hash |
//! | `tables` | the large tables |
//! | `probes` | probes for other profilers |
//! | `resident` | the use of all resident memory, and the stacks that pin free parts of it |
//!
//! Small samples come from a heap that no thread has, and large samples have a mark
//! ([`vellum_malloc::sampling`]). Mappings of the program that Vellum serves have no mark: they are in a
//! table of their own, which is searched when pages are unmapped. Paged memory is not sampled, nor are blocks
//! allocated before the profile began.
//!
//! # Signal handlers, forks, threads
//! The lock is held for moments, mostly inside the gate (lock) of the thread's heap. Waiting for it is
//! bounded. An allocation that does not get the lock is not sampled; a free that does not get it is done
//! later (*deferred*). A signal handler that interrupts the lock's holder never waits for it. For forks see
//! `forks`.

#![cfg_attr(not(test), no_std)]

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

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use live::{Live, Sample};
use lock::{enter_sample, inside, state_for_sample, try_state};
use part::Part;
use rates::{Random, passing, stands_for};
use rustix::io::Errno;
use tables::Tables;
use vellum_malloc::sampling::{self, Hooks, Inside, SampleHeap};
use vellum_pages::PAGE;
use vellum_sys::lock::Guarded;
use vellum_sys::{Addr, Caps, Span, caps, round_up};
use vellum_wire::door::Ask;
use vellum_wire::held::{Amount, INTERVAL_MAX};

/// The state of the process: a static, as the functions that `malloc` calls have no argument for it.
struct Profile {
    state: Guarded<State>,
    /// The heap of sampled small blocks; null until the profile begins.
    heap: AtomicPtr<SampleHeap>,
    /// Bytes between samples, on average.
    interval: AtomicU64,
    random: Random,
    /// Bytes of large blocks until the next sample.
    large_left: AtomicI64,
    /// Blocks to be freed once the lock is free, linked by their first words.
    deferred: AtomicPtr<u8>,
    /// Samples that could not be entered, and are not counted as lost yet.
    missed: AtomicU64,
    forks: forks::Forks,
    /// A [`collected::Listener`], or null.
    collector: AtomicPtr<()>,
    python: python::Finder,
}

static PROFILE: Profile = Profile {
    state: Guarded::new(State {
        live: Live::new(),
        mapped: Live::new(),
        part: Part::new(),
        tables: null_mut(),
    }),
    heap: AtomicPtr::new(null_mut()),
    interval: AtomicU64::new(0),
    random: Random::new(0),
    large_left: AtomicI64::new(0),
    deferred: AtomicPtr::new(null_mut()),
    missed: AtomicU64::new(0),
    forks: forks::Forks { is_abandoned: AtomicBool::new(false), has_lock: AtomicBool::new(false) },
    collector: AtomicPtr::new(null_mut()),
    python: python::Finder::new(),
};

/// The part of the state that the lock guards.
struct State {
    live: Live,
    mapped: Live,
    part: Part,
    tables: *mut Tables,
}

// SAFETY: the tables are mapped for good, and only the holder of the lock reaches them.
unsafe impl Send for State {}

const HOOKS: &Hooks = &Hooks {
    allocate_small,
    allocated_large,
    free_small,
    freed_large: remove_or_defer,
    drop_record: |address| _ = remove(address),
    resized_small,
    mapped,
    unmapped,
    remapped,
    fork_prepare: forks::prepare,
    fork_parent: forks::parent,
    fork_child: forks::child,
    serve_request,
};

/// Lets other processes request samples while this one runs. `find` returns a symbol of the program, or null,
/// at any time.
pub fn prepare(find: fn(&CStr) -> *const c_void) {
    PROFILE.python.set(find);
    sampling::install(HOOKS);
}

/// Samples blocks from now on, into the file at `path`.
///
/// # Errors
/// The system's error; nothing is sampled then. `BUSY` in the hardened mode.
pub fn begin(path: &'static CStr) -> rustix::io::Result<()> {
    let mut state = try_state().ok_or(Errno::AGAIN)?;
    if state.tables.is_null() {
        let heap = SampleHeap::create().ok_or(Errno::NOMEM)?;
        state.tables = Tables::map()?;
        PROFILE.heap.store(core::ptr::from_ref(heap).cast_mut(), Release);
        PROFILE.random.seed(sampling::random() as u64);
    }
    let interval = state.part.begin(path)?.min(INTERVAL_MAX);
    PROFILE.python.find_interpreter();
    set_interval(interval);
    drop(state);
    if !sampling::sample() {
        return Err(Errno::BUSY);
    }
    collected::notify(true);
    Ok(())
}

/// Takes no more samples, and closes the file. Sampled blocks in use are tracked until they are freed.
fn end() -> rustix::io::Result<()> {
    let mut state = try_state().ok_or(Errno::AGAIN)?;
    state.part.end();
    set_interval(INTERVAL_MAX);
    drop(state);
    collected::notify(false);
    Ok(())
}

/// Takes a sample every `interval` bytes from now on, on average.
fn set_interval(interval: u64) {
    PROFILE.interval.store(interval, Relaxed);
    PROFILE.large_left.store(gap(), Relaxed);
    sampling::redraw();
}

fn interval() -> u64 {
    PROFILE.interval.load(Relaxed)
}

/// Carries out another process's request, on the helper. The error's number, or 0.
fn serve_request(request: Ask) -> u32 {
    let outcome = match request {
        Ask::Begin => vellum_malloc::DOOR.path().ok_or(Errno::INVAL).and_then(begin),
        Ask::End => end(),
        Ask::Account => account(),
    };
    outcome.err().map_or(0, |errno| errno.raw_os_error() as u32)
}

/// Counts the uses of resident memory, into the process's part.
fn account() -> rustix::io::Result<()> {
    let mut state = try_state().ok_or(Errno::AGAIN)?;
    state.account().ok_or(Errno::SRCH)
}

/// Counts once more, before the process ends.
pub fn finish() {
    if sampling::is_sampled() && caps::has(Caps::HELPER) {
        let _ = account();
    }
}

fn gap() -> i64 {
    (PROFILE.random.exponential() * interval() as f64) as i64
}

/// A small block, sampled or not; `None` if memory is out, or the thread is inside its gate.
#[cold]
fn allocate_small(bytes: usize) -> Option<*mut u8> {
    let heap = Inside::of_attached()?;
    let draw = |block| passing(&PROFILE.random, interval(), block);
    let block = heap.allocate(bytes, draw, |class, neighbour| sample_small(class, bytes, neighbour));
    drop(heap);
    if !PROFILE.deferred.load(Relaxed).is_null() {
        free_deferred();
    }
    block
}

#[cold]
fn sample_small(class: usize, bytes: usize, neighbour: *const u8) -> Option<*mut u8> {
    let mut state = state_for_sample()?;
    // SAFETY: null or a heap, which is never unmapped; this thread holds the profile's lock.
    let block = unsafe { PROFILE.heap.load(Relaxed).as_ref()?.allocate(class) }?;
    // Without a record the block is like others.
    state.record(block, bytes, sampling::bytes_of(class), [class as u32, sampling::unit_number(neighbour)]);
    Some(block)
}

/// True if one of the points that are samples lies on the next `whole` bytes.
fn is_due(whole: usize) -> bool {
    let passed = |left: i64| left - whole as i64;
    let next = |left| Some(if passed(left) >= 0 { passed(left) } else { gap() });
    PROFILE.large_left.fetch_update(Relaxed, Relaxed, next).is_ok_and(|left| passed(left) < 0)
}

/// Samples a new large block of `bytes` bytes, if a sample is due.
#[cold]
fn allocated_large(block: *mut u8, bytes: usize) {
    let whole = round_up(bytes.max(1), PAGE);
    if !is_due(whole) {
        return;
    }
    let Some(word) = sampling::length_word(block) else { return };
    enter_sample(|state| {
        if state.record(block, bytes, whole, [0, 0]) {
            sampling::mark(word);
        }
    });
}

/// Samples a new mapping of the program, if a sample is due.
#[cold]
fn mapped(range: Span) {
    if is_due(round_up(range.bytes, PAGE)) {
        enter_sample(|state| state.record_mapping(range));
    }
}

/// Takes the pages out of the mappings.
#[cold]
fn unmapped(pages: Span) {
    inside(|state| _ = state.cut(pages.start.get() as u64, pages.end().get() as u64));
}

/// Records that a mapping of `old` bytes has another place and length.
#[cold]
fn remapped(from: usize, to: usize, [old, bytes]: [usize; 2]) {
    let (mut is_known, whole) = (false, round_up(bytes, PAGE));
    inside(|state| {
        let end = (from + round_up(old, PAGE)) as u64;
        let Some(piece) = state.cut(from as u64, end) else { return };
        is_known = true;
        let (pages, to) = ((whole / PAGE) as u32, to as u64);
        let moved = if pages > piece.class {
            let grown = stands_for(interval(), bytes, whole);
            Some(Sample { bytes: grown.bytes, class: pages, ..piece })
        } else {
            piece.part(piece.address, piece.address + whole as u64)
        };
        if let Some(moved) = moved {
            state.insert_part(Sample { address: to, ..moved }, moved.bytes.saturating_sub(piece.bytes));
        }
    });
    // Points may lie on the bytes that were added.
    if !is_known && bytes > old && is_due(whole - old) {
        enter_sample(|state| state.record_mapping(Span::new(Addr::new(to), bytes)));
    }
}

struct Entered {
    stack: u32,
    generation: u32,
    /// The bytes and blocks that the sample stands for.
    amount: Amount,
}

impl State {
    /// Records a block of `whole` bytes, of which `bytes` were requested, with its class and neighbours
    /// ([`Sample`]). False if there is no room.
    fn record(&mut self, block: *mut u8, bytes: usize, whole: usize, of: [u32; 2]) -> bool {
        let sample = self.sample(block as usize, bytes, whole, of, false);
        sample.inspect(|sample| probes::alloc(sample.address, bytes as u64, sample.bytes)).is_some()
    }

    fn record_mapping(&mut self, range: Span) {
        let whole = round_up(range.bytes, PAGE);
        self.sample(range.start.get(), range.bytes, whole, [(whole / PAGE) as u32, 0], true);
    }

    fn sample(
        &mut self,
        at: usize,
        bytes: usize,
        whole: usize,
        of: [u32; 2],
        is_mapping: bool,
    ) -> Option<Sample> {
        let Entered { stack, generation, amount } = self.enter(bytes, whole)?;
        let (Amount { bytes, blocks, .. }, [class, neighbours]) = (amount, of);
        let sample = Sample { address: at as u64, bytes, blocks, stack, generation, class, neighbours };
        self.insert(sample, is_mapping).then(|| {
            self.count_sample(&sample, true);
            sample
        })
    }

    /// Puts a sample into its table, in place of a stale one. False if there is no room.
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

    /// Takes the pages from `start` to `end` out of the mappings. Returns the first piece, which is no longer
    /// counted; it stands for the block if no other part of the block is left.
    fn cut(&mut self, start: u64, end: u64) -> Option<Sample> {
        let mut first = None;
        while let Some(old) = self.mapped.take_overlapping(start, end) {
            self.count_sample(&old, false);
            let mut blocks = old.blocks;
            for part in [old.part(old.address, start), old.part(end, old.end())].into_iter().flatten() {
                self.insert_part(Sample { blocks: core::mem::take(&mut blocks), ..part }, 0);
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

    /// Records a part of a mapping that was cut, and counts it again; `grown` bytes of it are new.
    fn insert_part(&mut self, sample: Sample, grown: u64) {
        let Some(generation) = self.part.generation() else { return };
        if self.insert(sample, true) && sample.generation == generation {
            self.part.stack(sample.stack).held.regain(&self.part.head().held, sample.amount(), grown);
        }
    }

    /// Enters the calling thread's stack for a block of `whole` bytes, of which `bytes` were requested.
    /// `None` if there is no room, or the process has no part.
    fn enter(&mut self, bytes: usize, whole: usize) -> Option<Entered> {
        let (has_part, is_new) = self.part.attach();
        if is_new {
            // SAFETY: null, or mapped by `begin` for good; only the lock's holder, this thread, reaches them.
            unsafe { Tables::clear(self.tables) };
        }
        // SAFETY: null, or mapped by `begin` for good; only the lock's holder, this thread, reaches them.
        let tables = (unsafe { self.tables.as_mut() }).filter(|_| has_part)?;
        let Some(stack) = tables.find_or_add(&mut self.part, &PROFILE.python) else {
            self.part.head().lost.fetch_add(1, Relaxed);
            return None;
        };
        let generation = self.part.generation().unwrap_or(0);
        Some(Entered { stack, generation, amount: stands_for(interval(), bytes, whole) })
    }

    /// Counts the uses of resident memory, and each stack's pinned share. `None` if the process has no part.
    fn account(&mut self) -> Option<()> {
        let (generation, base) = (self.part.generation()?, self.part.base());
        // SAFETY: null, or mapped by `begin` for good; only the lock's holder, this thread, reaches them.
        let tables = unsafe { self.tables.as_mut() }?;
        let at = Span::at(core::ptr::from_ref(tables), size_of::<Tables>());
        tables.desk.count(&self.part.head().resident, [at, self.live.range(), self.mapped.range()], base);
        for at in tables.stacks(&self.part) {
            self.part.stack(at).pins.store(0, Relaxed);
        }
        tables.desk.weigh(self.live.samples().filter(|sample| sample.generation == generation));
        for sample in self.live.samples().filter(|sample| sample.generation == generation) {
            let share = tables.desk.share(sample);
            self.part.stack(sample.stack).pins.fetch_add(share, Relaxed);
        }
        Some(())
    }

    /// Counts a block that this process sampled itself, not the process that it was forked from.
    fn count(&self, stack: u32, generation: u32, amount: Amount, is_allocated: bool) {
        if self.part.generation() == Some(generation) {
            let all = &self.part.head().held;
            self.part.stack(stack).held.change(all, amount, is_allocated);
        }
    }

    fn count_sample(&self, sample: &Sample, is_allocated: bool) {
        self.count(sample.stack, sample.generation, sample.amount(), is_allocated);
    }

    fn remove(&mut self, address: *mut u8) {
        if let Some(sample) = self.live.remove(address as u64) {
            probes::free(sample.address);
            self.count_sample(&sample, false);
        }
    }
}

/// Frees a sampled small block; false, with nothing done, if the block is not sampled. Safety: the conditions
/// of [`vellum_malloc::free`].
#[cold]
unsafe fn free_small(address: *mut u8) -> bool {
    // SAFETY: null or a heap, which is never unmapped; the caller gives the block up.
    unsafe {
        let heap = PROFILE.heap.load(Relaxed).as_ref();
        heap.is_some_and(|heap| heap.free(address, || remove_or_defer(address)))
    }
}

/// Removes a sampled block that is freed. False if the lock is not free: the block is freed later.
#[cold]
fn remove_or_defer(address: *mut u8) -> bool {
    if remove(address) {
        return true;
    }
    let link = |head| {
        // SAFETY: the block was given up by the program, and has at least a word.
        unsafe { address.cast::<*mut u8>().write(head) };
        Some(address)
    };
    let _ = PROFILE.deferred.fetch_update(Release, Relaxed, link);
    false
}

/// Removes the record of a sampled block. False if the lock is not free.
fn remove(address: *mut u8) -> bool {
    if PROFILE.forks.is_abandoned() {
        return true;
    }
    // Inside the gate, so that the helper and forks find no holder stopped halfway.
    let _inside = Inside::of_current();
    let state = try_state();
    let is_done = state.is_some();
    if let Some(mut state) = state {
        state.remove(address);
    }
    is_done
}

#[cold]
fn free_deferred() {
    let mut next = PROFILE.deferred.swap(null_mut(), Acquire);
    while !next.is_null() {
        let block = next;
        // SAFETY: `remove_or_defer` wrote the link; the program gave the block up.
        unsafe {
            next = block.cast::<*mut u8>().read();
            vellum_malloc::free(block);
        }
    }
}

/// Records that a small block of the heap at `owner`, which takes `whole` bytes, has `bytes` bytes now.
fn resized_small(owner: usize, address: *mut u8, [whole, bytes]: [usize; 2]) {
    if owner == PROFILE.heap.load(Relaxed).addr() {
        resized_sample(whole, address, bytes);
    }
}

#[cold]
fn resized_sample(whole: usize, address: *mut u8, bytes: usize) {
    inside(|state| {
        if let Some(sample) = state.live.get(address as u64) {
            let old = *sample;
            sample.bytes = stands_for(interval(), bytes, whole).bytes;
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
