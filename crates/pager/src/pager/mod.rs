//! The pager's state and queries. `life` starts and ends it, and `request` passes requests to its thread.
//! `uses` has the operations on memory objects, `mappings` those on the program's mappings, and `fork` gives
//! children their copy of paged memory.
//!
//! Invariants: the tables are set before `phase` becomes `SERVING`, and only read from then on; their
//! elements are atomics. `inner` is changed under its lock. The evicting thread never takes that lock, since
//! a thread that holds it may be waiting for a page.

mod fork;
mod life;
pub(crate) mod mappings;
pub(crate) mod request;
mod uses;

use crate::bits::{Announced, Bits};
use crate::evict::Gate;
use crate::objects::Objects;
use crate::stats::{Counts, Stats};
use crate::store::FileStore;
use crate::table::Table;
use crate::units::{PAGE, PageNo, SPAN_PAGES};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use fork::Forking;
use request::{Post, Request};
use rustix::io::Errno;
use vellum_sys::credentials::Change;
use vellum_sys::lock::Guarded;
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Addr, Span};
use vellum_wire::{Counter, Slot};

/// The configuration of a pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Page frames that all memory objects share.
    pub frames: u32,
    /// Pages of address space for them.
    pub span_pages: u32,
    /// The place of the span, in address space that the caller has reserved; `None` for any place.
    pub place: Option<Addr>,
    /// The number of the first pages, which are for [`Pager::create_unit`] alone.
    pub near_pages: u32,
}

impl Config {
    /// A pager of `frames` frames, with room for sixteen times as many pages of objects, at least 64 GiB.
    pub fn of_frames(frames: u32) -> Config {
        const SPAN_MIN: u32 = 1 << 24;
        const ROOM: u32 = 16;
        let span_pages = frames.saturating_mul(ROOM).clamp(SPAN_MIN, SPAN_PAGES);
        Config { frames, span_pages, place: None, near_pages: 0 }
    }
}

/// Memory that a pager has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// Bytes of frames that are free.
    pub free: u64,
    /// Bytes whose contents are in the store and not in memory.
    pub stored: u64,
}

/// Why there is no pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Fewer frames than [`FRAMES_MIN`](crate::FRAMES_MIN), or more than [`FRAMES_MAX`](crate::FRAMES_MAX).
    Frames(u32),
    /// The pager was started before.
    Again,
    /// Address space or memory for its tables could not be had.
    Memory(Errno),
    /// The store could not be opened, or its file system cannot do what a store must.
    Store(Errno),
    /// No thread could be started.
    Thread(Errno),
}

/// Why there is no memory object, or not a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no run of address space so long.
    Span,
    /// The store has no room for this many pages more, or cannot be mapped.
    Store(Errno),
    /// The address is not the start of an object.
    NoObject,
}

pub(crate) mod phase {
    pub(crate) const NONE: u32 = 0;
    pub(crate) const STARTING: u32 = 1;
    pub(crate) const SERVING: u32 = 2;
    pub(crate) const FAILED: u32 = 3;
    pub(crate) const ENDED: u32 = 4;
}

/// The records of each page and step of the span.
pub(crate) struct Tables {
    needed: Table<AtomicU64>,
    used: Table<AtomicU64>,
    contents: Table<AtomicU64>,
    cached: Table<AtomicU64>,
    pub(crate) steps: Table<AtomicU32>,
    pub(crate) places: Table<AtomicU32>,
}

impl Tables {
    const fn none() -> Tables {
        Tables {
            needed: Table::empty(),
            used: Table::empty(),
            contents: Table::empty(),
            cached: Table::empty(),
            steps: Table::empty(),
            places: Table::empty(),
        }
    }

    pub(crate) fn needed(&self) -> Bits<'_> {
        Bits::new(&self.needed)
    }

    /// Pages that may hold something other than zeros.
    pub(crate) fn used(&self) -> Bits<'_> {
        Bits::new(&self.used)
    }

    /// Pages that had contents when they were looked at last.
    pub(crate) fn contents(&self) -> Bits<'_> {
        Bits::new(&self.contents)
    }

    /// Pages that were in memory when they were looked at last.
    pub(crate) fn cached(&self) -> Bits<'_> {
        Bits::new(&self.cached)
    }
}

pub(crate) struct Inner {
    /// Blocks and mappings, behind the first `near` pages; units, in these.
    objects: Objects,
    units: Objects,
    near: u32,
    /// Pages of all objects, and the most there were.
    committed: u32,
    committed_max: u32,
    forking: Forking,
}

impl Inner {
    const fn none() -> Inner {
        Inner {
            objects: Objects::none(),
            units: Objects::none(),
            near: 0,
            committed: 0,
            committed_max: 0,
            forking: Forking::not(),
        }
    }

    /// The objects among which one at `page` is.
    fn objects_at(&mut self, page: PageNo) -> &mut Objects {
        if page.0 < self.near { &mut self.units } else { &mut self.objects }
    }
}

/// A pager. A process has one (see [`process`](crate::process)); tests make more.
pub struct Pager {
    inner: Guarded<Inner>,
    pub(crate) phase: AtomicU32,
    /// The errno that starting failed with, and whether the store was at fault.
    pub(crate) failure: AtomicI32,
    pub(crate) is_store_at_fault: AtomicBool,
    /// The start of the span, and its pages.
    start: AtomicUsize,
    pages: AtomicU32,
    /// A copy of `near` in `inner`, read without the lock.
    near: AtomicU32,
    tables: UnsafeCell<Tables>,
    store: UnsafeCell<Option<FileStore>>,
    pub(crate) post: Post,
    pub(crate) announced: Announced,
    pub(crate) gate: Gate,
    /// The evicting thread and the gate's: their ids and stacks.
    pub(crate) threads: [AtomicU32; 2],
    pub(crate) stacks: [AtomicUsize; 2],
    pub(crate) stats: Stats,
    slot: AtomicPtr<Slot>,
    /// Frames that may be used now, and pages of the store in memory at the last count.
    pub(crate) frames: AtomicU32,
    pub(crate) level: AtomicU32,
    /// The end of the pages that objects have had.
    high: AtomicU32,
    /// Set while nothing moves and the evicting thread works seldom.
    pub(crate) is_idle: AtomicBool,
    /// Set in a forked child, in which nobody pages.
    is_child: AtomicBool,
    /// Set after the first change of attributes of pages here.
    are_changed: AtomicBool,
}

// SAFETY: the cells are written while one thread knows of the pager (`start`), and only read afterwards.
unsafe impl Sync for Pager {}

impl Pager {
    /// A pager that has not been started.
    pub const fn new() -> Pager {
        Pager {
            inner: Guarded::new(Inner::none()),
            phase: AtomicU32::new(phase::NONE),
            failure: AtomicI32::new(0),
            is_store_at_fault: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            pages: AtomicU32::new(0),
            near: AtomicU32::new(0),
            tables: UnsafeCell::new(Tables::none()),
            store: UnsafeCell::new(None),
            post: Post::new(),
            announced: Announced::nothing(),
            gate: Gate::open(),
            threads: [const { AtomicU32::new(0) }; 2],
            stacks: [const { AtomicUsize::new(0) }; 2],
            stats: Stats::new(),
            slot: AtomicPtr::new(core::ptr::null_mut()),
            frames: AtomicU32::new(0),
            level: AtomicU32::new(0),
            high: AtomicU32::new(0),
            is_idle: AtomicBool::new(false),
            is_child: AtomicBool::new(false),
            are_changed: AtomicBool::new(false),
        }
    }

    /// True if objects can be made.
    #[inline]
    pub fn is_serving(&self) -> bool {
        self.phase.load(Ordering::Acquire) == phase::SERVING
    }

    /// True if `address` lies in the span.
    #[inline]
    pub fn owns(&self, address: *const u8) -> bool {
        self.span().contains(Addr::new(address.addr()))
    }

    /// The addresses that objects can have, from a multiple of 2 MiB on. Empty before the pager is started.
    #[inline]
    pub fn span(&self) -> Span {
        let pages = self.pages.load(Ordering::Relaxed) as usize;
        Span::new(self.address(0), pages * PAGE)
    }

    /// True if units can be made.
    pub fn has_units(&self) -> bool {
        self.near.load(Ordering::Relaxed) > 0
    }

    /// Has the pager's threads repeat the calling thread's call. Its arguments' memory must not be paged.
    pub fn follow(&self, change: Change) {
        if self.is_serving() && !self.is_child() {
            // A signal handler on top of this would wait for it.
            let _undisturbed = Undisturbed::new();
            // Answered: there is nothing to refuse.
            let _ = self.ask(Request::Follow(change));
        }
    }

    #[inline]
    pub(crate) fn address(&self, page: u32) -> Addr {
        Addr::new(self.start.load(Ordering::Relaxed)) + page as usize * PAGE
    }

    pub(crate) fn range(&self, from: u32, to: u32) -> Span {
        Span::new(self.address(from), (to - from) as usize * PAGE)
    }

    fn page_around(&self, address: *const u8) -> Option<PageNo> {
        let offset = Addr::new(address.addr()).since(self.address(0));
        self.owns(address).then_some(PageNo((offset / PAGE) as u32))
    }

    pub(crate) fn stack(&self, which: usize) -> Addr {
        Addr::new(self.stacks[which].load(Ordering::Relaxed))
    }

    pub(crate) fn tables(&self) -> &Tables {
        // SAFETY: set before any other thread knows of the pager, and only read since.
        unsafe { &*self.tables.get() }
    }

    pub(crate) fn store(&self) -> &FileStore {
        // SAFETY: set before any thread was started, and only read since.
        match unsafe { (*self.store.get()).as_ref() } {
            Some(store) => store,
            None => crate::trouble::stop("is used before it was started", Errno::INVAL),
        }
    }

    fn is_child(&self) -> bool {
        self.is_child.load(Ordering::Relaxed)
    }

    pub(crate) fn high(&self) -> u32 {
        self.high.load(Ordering::Acquire)
    }

    /// Pages that were moved since the pager was started.
    pub fn counts(&self) -> Counts {
        self.stats.counts()
    }

    /// Frames that may be used now: fewer than requested, by the process's limits and other memory.
    pub fn frames(&self) -> u32 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Pages in memory when the evicting thread looked last.
    pub fn resident_pages(&self) -> u32 {
        self.level.load(Ordering::Relaxed)
    }

    /// The free frames, and the memory in the store only. `None` in a forked child, where nothing is paged.
    pub fn available(&self) -> Option<Available> {
        if self.is_child() {
            return None;
        }
        let tables = self.tables();
        let (needed, contents, cached) = (tables.needed(), tables.contents(), tables.cached());
        let away = |index| (needed.word(index) & contents.word(index) & !cached.word(index)).count_ones();
        let stored: u32 = (0..self.high().div_ceil(u64::BITS)).map(away).sum();
        let free = self.frames().saturating_sub(self.resident_pages());
        let bytes = |pages: u32| u64::from(pages) * PAGE as u64;
        Some(Available { free: bytes(free), stored: bytes(stored) })
    }

    /// Lets others see the counts, in `slot` from now on.
    pub fn count_in(&self, slot: &'static Slot) {
        if self.is_child() {
            return;
        }
        self.slot.store(core::ptr::from_ref(slot).cast_mut(), Ordering::Release);
        self.show(Counter::PeakPagedFrames, u64::from(self.frames()));
        self.stats.publish(slot);
    }

    pub(crate) fn show(&self, counter: Counter, value: u64) {
        // SAFETY: null, or a slot that lives for ever.
        if let Some(slot) = unsafe { self.slot.load(Ordering::Acquire).as_ref() } {
            slot.set(counter, value);
        }
    }

    pub(crate) fn publish(&self) {
        // SAFETY: null, or a slot that lives for ever.
        if let Some(slot) = unsafe { self.slot.load(Ordering::Acquire).as_ref() } {
            self.stats.publish(slot);
        }
    }
}

impl Default for Pager {
    fn default() -> Self {
        Pager::new()
    }
}

/// A wait that is looked after: nobody is woken for nothing more often than once a second.
pub(crate) const A_WHILE_NS: u64 = 1_000_000_000;

impl core::fmt::Debug for Pager {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pager")
            .field("phase", &self.phase)
            .field("start", &self.start)
            .finish_non_exhaustive()
    }
}
