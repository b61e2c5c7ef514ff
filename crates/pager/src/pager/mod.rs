//! The pager: what it is, and what others may ask of it. `life` starts and ends it; `follow` has its threads
//! be who the program is; `uses` is what a program does with memory objects, `mappings` with those that are
//! its own mappings, `relocate` how objects change their place.
//!
//! Invariants: `faults`, `store` and the tables are set before `phase` says that the pager serves, and only
//! read since; `inner` is changed under its lock.

pub(crate) mod follow;
mod life;
pub(crate) mod mappings;
mod relocate;
mod uses;

use crate::entry::Kept;
use crate::inner::{Inner, Request};
use crate::marks::Marks;
use crate::policy::Choice;
use crate::stats::{Event, Stats};
use crate::store::Backing;
use crate::table::Table;
use crate::units::{AHEAD, PAGE, SPAN_PAGES};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use rustix::io::Errno;
use vellum_sys::fault::{Faults, Reach};
use vellum_sys::lock::Guarded;
use vellum_sys::text::Share;
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Lock, clock, map};
use vellum_wire::{Counter, Slot};

/// How a pager is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Page frames that all memory objects share.
    pub frames: u32,
    /// Pages of address space for them.
    pub span_pages: u32,
    /// Where that is, in address space that is reserved and the caller's to give; `None` for any place.
    pub place: Option<usize>,
    /// How many of the first pages are for [`Pager::create_unit`] alone.
    pub near_pages: u32,
    /// What to replace.
    pub policy: Choice,
    /// How many of the frames may be taken for pages that are compressed.
    pub compressed: Share,
}

impl Config {
    /// A pager of `frames` frames with room for objects of sixteen times as many pages, and of 64 GiB at
    /// least. Nothing is compressed.
    pub fn of_frames(frames: u32) -> Config {
        const SPAN_MIN: u32 = 1 << 24;
        const ROOM: u32 = 16;
        let span_pages = frames.saturating_mul(ROOM).clamp(SPAN_MIN, SPAN_PAGES);
        Config {
            frames,
            span_pages,
            place: None,
            near_pages: 0,
            policy: Choice::Clock,
            compressed: Share::Off,
        }
    }
}

/// Why there is no pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Fewer frames than [`FRAMES_MIN`](crate::FRAMES_MIN), or more than [`FRAMES_MAX`](crate::FRAMES_MAX).
    Frames(u32),
    /// It has been started before.
    Again,
    /// Address space or memory for its tables could not be had.
    Memory(Errno),
    /// The kernel, or a filter on system calls, allows no `userfaultfd`.
    Faults(Errno),
    /// The store could not be opened.
    Store(Errno),
    /// No thread could be started.
    Thread(Errno),
}

/// Why there is no memory object, or not a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no run of address space so long.
    Span,
    /// The store has no room for this many pages more.
    Store(Errno),
    /// The address is not the start of an object.
    NoObject,
}

/// The answering, the writing and the reading threads.
const THREADS: usize = 2 + AHEAD;

/// The stages of a pager's life, in `phase`.
pub(crate) mod phase {
    pub(crate) const NONE: u32 = 0;
    pub(crate) const STARTING: u32 = 1;
    pub(crate) const SERVING: u32 = 2;
    pub(crate) const FAILED: u32 = 3;
    pub(crate) const ENDED: u32 = 4;
}

/// A pager over a store `B`. A process has one (see [`process`](crate::process)); tests make more.
pub struct Pager<B: 'static> {
    pub(crate) inner: Guarded<Inner>,
    pub(crate) phase: AtomicU32,
    /// The errno that starting failed with, and at which step.
    pub(crate) failure: AtomicI32,
    pub(crate) failed_at: AtomicU32,
    base: AtomicUsize,
    pages: AtomicU32,
    words: AtomicPtr<AtomicU64>,
    /// Set before `phase` says so, by the same thread.
    pub(crate) faults: UnsafeCell<Option<Faults>>,
    pub(crate) store: UnsafeCell<Option<B>>,
    bitmap: UnsafeCell<Table<u64>>,
    /// Held while asking the fault-handling thread for something.
    pub(crate) callers: Lock,
    /// Pages of the stacks of threads that hold the lock.
    pub(crate) kept: Kept,
    /// Changes when pages have been written, and when there are some to write.
    pub(crate) written: AtomicU32,
    pub(crate) work: AtomicU32,
    /// Changes when there is something to read ahead.
    pub(crate) reads: AtomicU32,
    /// How many changes of who the program is there were, and how many of them each thread has followed.
    pub(crate) changes: AtomicU32,
    pub(crate) followed: [AtomicU32; THREADS],
    stacks: [AtomicUsize; THREADS],
    pub(crate) threads: [AtomicU32; THREADS],
    pub(crate) stats: Stats,
    slot: AtomicPtr<Slot>,
    /// Whether the calling process is a forked child, in which nobody pages.
    pub(crate) is_child: AtomicU32,
    /// Whether the program has ever changed attributes of pages here.
    are_changed: AtomicBool,
}

// SAFETY: the cells are written while one thread knows of the pager (`start`, and the fault-handling thread
// before it says that it serves), and only read afterwards.
unsafe impl<B: Send + Sync> Sync for Pager<B> {}

/// The steps of starting, in `failed_at`.
pub(crate) const AT_FAULTS: u32 = 0;
pub(crate) const AT_STORE: u32 = 1;
pub(crate) const AT_THREAD: u32 = 2;

impl<B: Backing + Send> Pager<B> {
    /// A pager that has not been started.
    pub const fn new() -> Pager<B> {
        Pager {
            inner: Guarded::new(Inner::none()),
            phase: AtomicU32::new(phase::NONE),
            failure: AtomicI32::new(0),
            failed_at: AtomicU32::new(0),
            base: AtomicUsize::new(0),
            pages: AtomicU32::new(0),
            words: AtomicPtr::new(core::ptr::null_mut()),
            faults: UnsafeCell::new(None),
            store: UnsafeCell::new(None),
            bitmap: UnsafeCell::new(Table::empty()),
            callers: Lock::new(),
            kept: Kept::new(),
            written: AtomicU32::new(0),
            work: AtomicU32::new(0),
            reads: AtomicU32::new(0),
            changes: AtomicU32::new(0),
            followed: [const { AtomicU32::new(0) }; THREADS],
            stacks: [const { AtomicUsize::new(0) }; THREADS],
            threads: [const { AtomicU32::new(0) }; THREADS],
            stats: Stats::new(),
            slot: AtomicPtr::new(core::ptr::null_mut()),
            is_child: AtomicU32::new(0),
            are_changed: AtomicBool::new(false),
        }
    }

    /// Whether objects are to be had.
    #[inline]
    pub fn is_serving(&self) -> bool {
        self.phase.load(Ordering::Acquire) == phase::SERVING
    }

    /// Whether the pager answers for `address`.
    #[inline]
    pub fn owns(&self, address: *const u8) -> bool {
        let offset = (address as usize).wrapping_sub(self.base.load(Ordering::Relaxed));
        offset < self.pages.load(Ordering::Relaxed) as usize * PAGE
    }

    /// The addresses that objects can have: the first, a multiple of 2 MiB, and how many bytes. (0, 0) before
    /// the pager is started.
    pub fn span(&self) -> (usize, usize) {
        (self.base.load(Ordering::Relaxed), self.span_bytes())
    }

    /// Whose faults are answered: if only those of user mode, system calls must not be handed memory that may
    /// be paged out.
    pub fn reach(&self) -> Option<Reach> {
        // SAFETY: set before the pager serves, and only read since.
        self.is_serving().then(|| unsafe { (*self.faults.get()).as_ref() }).flatten().map(Faults::reach)
    }

    /// Whether units are to be had.
    pub fn has_units(&self) -> bool {
        self.enter().near > 0
    }

    pub(crate) fn faults(&self) -> &Faults {
        // SAFETY: set by the fault-handling thread before it tells anybody that the pager serves; only read
        // since.
        match unsafe { (*self.faults.get()).as_ref() } {
            Some(faults) => faults,
            None => crate::trouble::stop("is used before it was started", Errno::INVAL),
        }
    }

    pub(crate) fn store(&self) -> &B {
        // SAFETY: set before any thread was started; only read since.
        match unsafe { (*self.store.get()).as_ref() } {
            Some(store) => store,
            None => crate::trouble::stop("is used before it was started", Errno::INVAL),
        }
    }

    pub(crate) fn marks(&self) -> Marks<'_> {
        let len = self.pages.load(Ordering::Relaxed).div_ceil(u64::BITS) as usize;
        let words = self.words.load(Ordering::Acquire);
        if words.is_null() {
            return Marks::new(&[]);
        }
        // SAFETY: the table has this many words and stays as long as the pager; they are only reached as
        // atomics.
        Marks::new(unsafe { core::slice::from_raw_parts(words, len) })
    }

    pub(crate) fn span_bytes(&self) -> usize {
        self.pages.load(Ordering::Relaxed) as usize * PAGE
    }

    /// The page that is touched to ask for something; it is nobody's.
    pub(crate) fn doorbell(&self) -> usize {
        self.base.load(Ordering::Relaxed) + self.pages.load(Ordering::Relaxed) as usize * PAGE
    }

    /// Whether children get a copy of the range: only while a fork is prepared for. Otherwise one made behind
    /// our back finds nothing there at all, rather than zeros.
    pub(crate) fn keep_from_children(&self, keep: bool) {
        let advice = if keep { libc::MADV_DONTFORK } else { libc::MADV_DOFORK };
        let base = self.base.load(Ordering::Relaxed);
        let bytes = (self.pages.load(Ordering::Relaxed) as usize + 1) * PAGE;
        // SAFETY: this advice changes no contents, and the range is the pager's.
        let _ =
            unsafe { vellum_sys::raw::syscall(libc::SYS_madvise, [base, bytes, advice as usize, 0, 0, 0]) };
    }

    /// Asks the fault-handling thread for something, by touching a page that only it can provide, and waits
    /// for the answer.
    ///
    /// A page that could not be emptied after the last request is no fault, so that this one is not heard; it
    /// is emptied and touched again then.
    ///
    /// # Errors
    /// As the request; `BUSY` if it was not heard.
    fn call(&self, request: Request) -> Result<u32, Errno> {
        self.callers.lock();
        let answer = self.call_alone(request);
        self.callers.unlock();
        answer
    }

    /// The same for who holds the callers' lock.
    fn call_alone(&self, request: Request) -> Result<u32, Errno> {
        /// How often the page is touched.
        const TOUCHES: u32 = 3;
        {
            let mut inner = self.enter();
            (inner.request, inner.answer) = (request, Err(Errno::BUSY));
        }
        let bell = self.doorbell();
        for _ in 0..TOUCHES {
            // SAFETY: the page is the pager's; the touch returns when it has been provided.
            unsafe { (bell as *const u8).read_volatile() };
            // SAFETY: nothing in the page is needed; it will be missing for the next who asks.
            if unsafe { map::flush(bell, PAGE) }.is_err() {
                // A program that locks all its memory has locked this page, too.
                const MADV_DONTNEED_LOCKED: usize = 24;
                // SAFETY: as above.
                let _ = unsafe {
                    vellum_sys::raw::syscall(libc::SYS_madvise, [bell, PAGE, MADV_DONTNEED_LOCKED, 0, 0, 0])
                };
            }
            if self.enter().request == Request::None {
                break;
            }
        }
        let mut inner = self.enter();
        inner.request = Request::None;
        inner.answer
    }

    /// How often `event` happened to a page.
    pub fn count(&self, event: Event) -> u64 {
        self.stats.get(event)
    }

    /// Lets others see the counts, in `slot` from now on.
    pub fn count_in(&self, slot: &'static Slot) {
        if self.is_child() {
            return;
        }
        self.slot.store(core::ptr::from_ref(slot).cast_mut(), Ordering::Release);
        let frames = self.enter().all_frames();
        self.show_frames(frames);
        self.publish();
    }

    /// Lets others see how many frames there are.
    pub(crate) fn show_frames(&self, frames: u32) {
        self.show(Counter::PeakPagedFrames, u64::from(frames));
    }

    /// Lets others see how long threads have waited for pages, with how many frames most reads would have
    /// been avoided, and how much of the process's memory is not paged.
    pub(crate) fn show_waits(&self, inner: &Inner) {
        self.show(Counter::PagedWaitNs, inner.waits.waited(clock::now_ns()));
        self.show(Counter::PeakPackedFrames, u64::from(inner.tier.most()));
        self.show(Counter::PagedPackedBytes, inner.tier.bytes_in());
        self.show(Counter::PeakPagedEnough, inner.waits.enough(inner.committed_max));
        if inner.near > 0 {
            self.show(Counter::PeakUnpagedPages, inner.beside.most());
        }
    }

    /// Counts for nobody but itself: a child's parent keeps its own counts.
    pub(crate) fn show_nobody(&self) {
        self.slot.store(core::ptr::null_mut(), Ordering::Release);
    }

    fn show(&self, counter: Counter, value: u64) {
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

    /// Checks every invariant; names the first that is broken. Slow.
    ///
    /// # Errors
    /// The invariant.
    pub fn validate(&self) -> Result<(), &'static str> {
        let _undisturbed = Undisturbed::new();
        self.enter().validate()
    }
}

impl<B: Backing + Send> Default for Pager<B> {
    fn default() -> Self {
        Pager::new()
    }
}

/// A wait that is looked after: nobody is woken for nothing more often than once a second.
pub(crate) const A_WHILE_NS: u64 = 1_000_000_000;

impl<B> core::fmt::Debug for Pager<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pager").field("phase", &self.phase).field("base", &self.base).finish_non_exhaustive()
    }
}
