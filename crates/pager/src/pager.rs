//! The pager: starting and ending it, and what a program does with memory objects.

use crate::inner::{Inner, Request, SLACK, STEP};
use crate::marks::Marks;
use crate::policy::{Choice, Policy};
use crate::record::State;
use crate::stats::{Event, Stats};
use crate::store::Backing;
use crate::table::Table;
use crate::units::{FRAMES_MAX, FRAMES_MIN, PAGE, PageNo, SPAN_PAGES};
use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use rustix::io::Errno;
use vellum_sys::fault::{Faults, Reach};
use vellum_sys::lock::Guarded;
use vellum_sys::thread::{self, Undisturbed};
use vellum_sys::{Lock, map};
use vellum_wire::{Counter, Slot};

/// How a pager is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Page frames that all memory objects share.
    pub frames: u32,
    /// Pages of address space for them.
    pub span_pages: u32,
    /// What to replace.
    pub policy: Choice,
}

impl Config {
    /// A pager of `frames` frames with room for objects of sixteen times as many pages, and of 64 GiB at least.
    pub fn of_frames(frames: u32) -> Config {
        const SPAN_MIN: u32 = 1 << 24;
        const ROOM: u32 = 16;
        let span_pages = frames.saturating_mul(ROOM).clamp(SPAN_MIN, SPAN_PAGES);
        Config { frames, span_pages, policy: Choice::Clock }
    }
}

/// Why there is no pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Fewer frames than [`FRAMES_MIN`], or more than [`FRAMES_MAX`].
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
    /// The store has no room for so many pages more.
    Store(Errno),
    /// The address is not the start of an object.
    NoObject,
}

/// The answering, the writing and the reading thread.
const THREADS: usize = 3;

/// The stages of a pager's life, in `phase`.
pub(crate) mod phase {
    pub(crate) const NONE: u32 = 0;
    pub(crate) const STARTING: u32 = 1;
    pub(crate) const SERVING: u32 = 2;
    pub(crate) const FAILED: u32 = 3;
    pub(crate) const ENDED: u32 = 4;
}

/// A pager over a store `B`. A process has one (see `crates/malloc`, `paged`); tests make more.
pub struct Pager<B: 'static> {
    pub(crate) inner: Guarded<Inner>,
    pub(crate) phase: AtomicU32,
    /// The errno that starting failed with, and at which step.
    pub(crate) failure: AtomicI32,
    pub(crate) failed_at: AtomicU32,
    base: AtomicUsize,
    pages: AtomicU32,
    words: AtomicPtr<AtomicU64>,
    /// Set before `phase` says so, by whoever says so.
    pub(crate) faults: UnsafeCell<Option<Faults>>,
    pub(crate) store: UnsafeCell<Option<B>>,
    bitmap: UnsafeCell<Table<u64>>,
    /// Held by whoever asks the fault-handling thread for something.
    pub(crate) callers: Lock,
    /// Changes when pages have been written, and when there are some to write.
    pub(crate) written: AtomicU32,
    pub(crate) work: AtomicU32,
    /// Changes when there is something to read ahead.
    pub(crate) reads: AtomicU32,
    stacks: [AtomicUsize; THREADS],
    pub(crate) threads: [AtomicU32; THREADS],
    pub(crate) stats: Stats,
    slot: AtomicPtr<Slot>,
    /// Whether the calling process is a forked child, in which nobody pages.
    pub(crate) is_child: AtomicU32,
}

// SAFETY: the cells are written while one thread knows of the pager (`start`, and the fault-handling thread before it says that it serves),
// and only read afterwards.
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
            written: AtomicU32::new(0),
            work: AtomicU32::new(0),
            reads: AtomicU32::new(0),
            stacks: [const { AtomicUsize::new(0) }; THREADS],
            threads: [const { AtomicU32::new(0) }; THREADS],
            stats: Stats::new(),
            slot: AtomicPtr::new(core::ptr::null_mut()),
            is_child: AtomicU32::new(0),
        }
    }

    /// Starts the pager's threads, over `store`. Called once, by one thread.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left behind then, and nothing is paged.
    pub fn start(&'static self, config: Config, store: B) -> Result<(), StartError> {
        if !(FRAMES_MIN..=FRAMES_MAX).contains(&config.frames) {
            return Err(StartError::Frames(config.frames));
        }
        if self
            .phase
            .compare_exchange(phase::NONE, phase::STARTING, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            return Err(StartError::Again);
        }
        let started = self.settle(config, store).map_err(StartError::Memory).and_then(|()| self.launch());
        if started.is_err() {
            self.phase.store(phase::FAILED, Ordering::Release);
            self.unmap();
        }
        started
    }

    fn settle(&'static self, config: Config, store: B) -> Result<(), Errno> {
        let bytes = (config.span_pages as usize + 1) * PAGE;
        let base = map::reserve_readable(bytes)?;
        self.base.store(base, Ordering::Relaxed);
        self.pages.store(config.span_pages, Ordering::Relaxed);
        // SAFETY: reserved a moment ago.
        unsafe { map::make_writable(base, bytes)? };
        map::advise_huge(base, bytes, false);
        for stack in &self.stacks {
            let start = map::reserve_readable(thread::HELPER_BYTES)?;
            stack.store(start, Ordering::Relaxed);
            // SAFETY: reserved a moment ago.
            unsafe { map::make_writable(start, thread::HELPER_BYTES)? };
        }
        let bitmap = Table::<u64>::new(config.span_pages.div_ceil(u64::BITS) as usize)?;
        self.words.store(bitmap.as_ptr().cast_mut().cast(), Ordering::Relaxed);
        *self.inner.lock() = Inner::new(config.frames, base, config.span_pages, config.policy)?;
        // SAFETY: nobody else knows of the pager yet.
        unsafe {
            *self.bitmap.get() = bitmap;
            *self.store.get() = Some(store);
        }
        self.keep_from_children(true);
        Ok(())
    }

    fn launch(&'static self) -> Result<(), StartError> {
        let stack = self.stacks[0].load(Ordering::Relaxed) as *mut u8;
        let argument = core::ptr::from_ref(self) as usize;
        // SAFETY: the stack is zeroed, of the right size, and stays until the thread has ended; `answer` uses no thread-local storage.
        unsafe { thread::start(crate::answer::answer::<B>, argument, stack, &self.threads[0]) }
            .map_err(StartError::Thread)?;
        loop {
            match self.phase.load(Ordering::Acquire) {
                phase::SERVING => return Ok(()),
                phase::FAILED => {
                    self.join();
                    let errno = Errno::from_raw_os_error(self.failure.load(Ordering::Relaxed));
                    return Err(match self.failed_at.load(Ordering::Relaxed) {
                        AT_FAULTS => StartError::Faults(errno),
                        AT_STORE => StartError::Store(errno),
                        _ => StartError::Thread(errno),
                    });
                }
                other => thread::wait(&self.phase, other, A_WHILE_NS),
            }
        }
    }

    /// Starts the writer and the reader, from the thread whose descriptors they are to have.
    pub(crate) fn launch_helpers(&'static self) -> Result<(), Errno> {
        let argument = core::ptr::from_ref(self) as usize;
        let entries: [extern "C" fn(usize) -> !; 2] = [crate::writer::write::<B>, crate::reader::read::<B>];
        for (index, entry) in (1..).zip(entries) {
            let stack = self.stacks[index].load(Ordering::Relaxed) as *mut u8;
            // SAFETY: as in `launch`.
            if let Err(errno) = unsafe { thread::start(entry, argument, stack, &self.threads[index]) } {
                self.inner.lock().stopping = true;
                thread::wake(&self.work);
                return Err(errno);
            }
        }
        Ok(())
    }

    fn join(&self) {
        for tid in &self.threads {
            loop {
                match tid.load(Ordering::Acquire) {
                    0 => break,
                    alive => thread::wait(tid, alive, A_WHILE_NS),
                }
            }
        }
    }

    fn unmap(&self) {
        let base = self.base.swap(0, Ordering::AcqRel);
        let bytes = (self.pages.swap(0, Ordering::Relaxed) as usize + 1) * PAGE;
        for (start, len) in [(base, bytes)]
            .into_iter()
            .chain(self.stacks.iter().map(|stack| (stack.swap(0, Ordering::Relaxed), thread::HELPER_BYTES)))
        {
            if start != 0 {
                // SAFETY: the pager's own, whose threads have ended or were never started.
                let _ = unsafe { map::release(start, len) };
            }
        }
        *self.inner.lock() = Inner::none();
    }

    /// Ends the pager. Its address range is gone afterwards.
    ///
    /// # Safety
    /// Nobody uses an object any more.
    pub unsafe fn stop(&'static self) {
        if self.phase.load(Ordering::Acquire) == phase::SERVING {
            let _ = self.call(Request::Stop);
            self.join();
            self.phase.store(phase::ENDED, Ordering::Release);
            self.unmap();
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

    /// Whose faults are answered: if only those of user mode, system calls must not be handed memory that may be paged out.
    pub fn reach(&self) -> Option<Reach> {
        // SAFETY: set before the pager serves, and only read since.
        self.is_serving().then(|| unsafe { (*self.faults.get()).as_ref() }).flatten().map(Faults::reach)
    }

    pub(crate) fn faults(&self) -> &Faults {
        // SAFETY: set by the fault-handling thread before it tells anybody that the pager serves; only read since.
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
        // SAFETY: the table has so many words and stays as long as the pager; they are only reached as atomics.
        Marks::new(unsafe { core::slice::from_raw_parts(words, len) })
    }

    pub(crate) fn span_bytes(&self) -> usize {
        self.pages.load(Ordering::Relaxed) as usize * PAGE
    }

    /// The page that is touched to ask for something; it is nobody's.
    pub(crate) fn doorbell(&self) -> usize {
        self.base.load(Ordering::Relaxed) + self.pages.load(Ordering::Relaxed) as usize * PAGE
    }

    /// Whether children get a copy of the range: only while a fork is prepared for. Otherwise one made behind our back finds nothing
    /// there at all, rather than zeros.
    pub(crate) fn keep_from_children(&self, keep: bool) {
        let advice = if keep { libc::MADV_DONTFORK } else { libc::MADV_DOFORK };
        let base = self.base.load(Ordering::Relaxed);
        let bytes = (self.pages.load(Ordering::Relaxed) as usize + 1) * PAGE;
        // SAFETY: this advice changes no contents, and the range is the pager's.
        let _ =
            unsafe { vellum_sys::raw::syscall(libc::SYS_madvise, [base, bytes, advice as usize, 0, 0, 0]) };
    }

    /// Asks the fault-handling thread for something, by touching a page that only it can provide, and waits for the answer.
    fn call(&self, request: Request) -> Result<(), Errno> {
        self.callers.lock();
        self.inner.lock().request = request;
        let bell = self.doorbell();
        // SAFETY: the page is the pager's; the touch returns when it has been provided.
        unsafe { (bell as *const u8).read_volatile() };
        // SAFETY: nothing in the page is needed; it will be missing for the next who asks.
        let _ = unsafe { map::flush(bell, PAGE) };
        let answer = self.inner.lock().answer;
        self.callers.unlock();
        answer
    }

    /// Makes a memory object of at least `bytes` bytes, whole pages, that starts at a multiple of `align`, a power of two. Its contents are zero if
    /// `zero`, otherwise undefined.
    ///
    /// # Errors
    /// [`Refused`] if there is no address space, or no room in the store: every page is paid for before it is handed out.
    pub fn create(&'static self, bytes: usize, align: usize, zero: bool) -> Result<NonNull<u8>, Refused> {
        let pages = pages_of(bytes)
            .filter(|&pages| pages <= self.pages.load(Ordering::Relaxed))
            .ok_or(Refused::Span)?;
        let align = u32::try_from(align / PAGE).map_err(|_| Refused::Span)?.max(1);
        let _undisturbed = Undisturbed::new();
        self.make_room_for(pages)?;
        let mut inner = self.inner.lock();
        let base = inner.base;
        let Some(page) = inner.objects.create(pages, align, base / PAGE) else {
            inner.committed -= pages;
            return Err(Refused::Span);
        };
        self.begin(inner, page, pages, zero);
        NonNull::new((base + page.index() * PAGE) as *mut u8).ok_or(Refused::Span)
    }

    /// Books `pages` pages more, with room in the store for all.
    fn make_room_for(&self, pages: u32) -> Result<(), Refused> {
        loop {
            let mut inner = self.inner.lock();
            let wanted = inner.committed.saturating_add(pages).saturating_add(SLACK);
            if wanted <= inner.reserved || self.is_child() {
                inner.committed += pages;
                inner.committed_max = inner.committed_max.max(inner.committed);
                self.show(Counter::PeakPagedPages, u64::from(inner.committed_max));
                return Ok(());
            }
            drop(inner);
            // As much as fits, if not a whole step does.
            if self.call(Request::Reserve(wanted.next_multiple_of(STEP))).is_err() {
                self.call(Request::Reserve(wanted)).map_err(Refused::Store)?;
            }
        }
    }

    /// Takes pages of an object into use.
    fn begin<'a>(
        &'a self,
        mut inner: vellum_sys::lock::Held<'a, Inner>,
        page: PageNo,
        pages: u32,
        zero: bool,
    ) {
        self.marks().clear(page.0, page.0 + pages);
        inner.high = inner.high.max(page.0 + pages);
        // A child's memory is flushed when it is given back, so that it always reads as zero.
        if !zero || self.is_child() {
            return;
        }
        let base = inner.base;
        let mut to_clear = 0..0;
        let mut at = page.0;
        // Mapped pages are cleared by hand, outside the lock: one that is taken away meanwhile comes back for it.
        while at < page.0 + pages {
            if inner.renew(PageNo(at)) {
                at += 1;
                continue;
            }
            to_clear = at..at;
            while to_clear.end < page.0 + pages && inner.record(PageNo(to_clear.end)).state() == State::Mapped
            {
                to_clear.end += 1;
            }
            at = to_clear.end;
            drop(inner);
            // SAFETY: the pages are of an object that nobody has been told of.
            unsafe {
                ((base + to_clear.start as usize * PAGE) as *mut u8).write_bytes(0, to_clear.len() * PAGE);
            };
            inner = self.inner.lock();
        }
        let _ = to_clear;
    }

    /// The length in bytes of the object that starts at `address`, if one does.
    pub fn len(&self, address: *const u8) -> Option<usize> {
        let page = self.page_at(address)?;
        let _undisturbed = Undisturbed::new();
        self.inner.lock().objects.len(page).map(|pages| pages as usize * PAGE)
    }

    fn page_at(&self, address: *const u8) -> Option<PageNo> {
        let offset = (address as usize).wrapping_sub(self.base.load(Ordering::Relaxed));
        (self.owns(address) && offset.is_multiple_of(PAGE)).then_some(PageNo((offset / PAGE) as u32))
    }

    /// Ends the object at `address`; returns its length in bytes.
    ///
    /// # Errors
    /// [`Refused::NoObject`] if none starts there.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub unsafe fn destroy(&self, address: NonNull<u8>) -> Result<usize, Refused> {
        let page = self.page_at(address.as_ptr()).ok_or(Refused::NoObject)?;
        let _undisturbed = Undisturbed::new();
        let mut inner = self.inner.lock();
        let pages = inner.objects.len(page).ok_or(Refused::NoObject)?;
        self.end(&mut inner, page.0, page.0 + pages);
        inner.objects.destroy(page, pages);
        Ok(pages as usize * PAGE)
    }

    /// Pages `start..end` are no object's any more.
    fn end(&self, inner: &mut Inner, start: u32, end: u32) {
        self.marks().set(start, end);
        if self.is_child() {
            let (address, bytes) = (inner.address(PageNo(start)), (end - start) as usize * PAGE);
            // SAFETY: nobody uses the pages any more.
            let _ = unsafe { map::flush(address, bytes) };
        } else {
            (start..end).for_each(|page| inner.forget(PageNo(page)));
        }
        inner.committed -= end - start;
    }

    /// Makes the object at `address` `bytes` bytes long without moving it. What is added has undefined contents.
    ///
    /// # Errors
    /// [`Refused`] if none starts there, or it cannot grow so far; it is as it was then.
    ///
    /// # Safety
    /// Nobody uses what is cut off.
    pub unsafe fn resize(&'static self, address: NonNull<u8>, bytes: usize) -> Result<(), Refused> {
        let page = self.page_at(address.as_ptr()).ok_or(Refused::NoObject)?;
        let new = pages_of(bytes).ok_or(Refused::Span)?;
        let _undisturbed = Undisturbed::new();
        let old = self.inner.lock().objects.len(page).ok_or(Refused::NoObject)?;
        if new > old {
            self.make_room_for(new - old)?;
            let mut inner = self.inner.lock();
            if !inner.objects.resize(page, old, new) {
                inner.committed -= new - old;
                return Err(Refused::Span);
            }
            self.begin(inner, page.plus(old), new - old, false);
        } else {
            let mut inner = self.inner.lock();
            self.end(&mut inner, page.0 + new, page.0 + old);
            inner.objects.resize(page, old, new);
        }
        Ok(())
    }

    /// The whole pages within a range of the pager's.
    fn pages_within(&self, start: *const u8, bytes: usize) -> Option<(u32, u32)> {
        let base = self.base.load(Ordering::Relaxed);
        let from = (start as usize).checked_sub(base)?.div_ceil(PAGE);
        let to = (start as usize).checked_add(bytes)?.checked_sub(base)? / PAGE;
        let to = to.min(self.pages.load(Ordering::Relaxed) as usize);
        (from < to).then_some((from as u32, to as u32))
    }

    /// Marks the whole pages of a range as discardable, and nothing more: no lock, no system call. Their frames go when frames are needed and
    /// their turn comes (the source's "pager only").
    ///
    /// # Safety
    /// What they hold is not needed.
    pub unsafe fn mark(&self, start: *const u8, bytes: usize) {
        if let Some((from, to)) = self.pages_within(start, bytes) {
            self.marks().set(from, to);
        }
    }

    /// Says of every page that the range touches that its contents are needed again, before anything is written there. They are undefined.
    pub fn need(&self, start: *const u8, bytes: usize) {
        let first = vellum_sys::round_down(start as usize, PAGE);
        let end = vellum_sys::round_up(start as usize + bytes, PAGE);
        if let Some((from, to)) = self.pages_within(first as *const u8, end - first) {
            self.marks().clear(from, to);
        }
    }

    /// As [`Pager::mark`]; and their frames go before any others when frames are needed (the source's pager-initiated flushing).
    ///
    /// # Safety
    /// As for [`Pager::mark`].
    pub unsafe fn discard(&self, start: *const u8, bytes: usize) {
        let Some((from, to)) = self.pages_within(start, bytes).filter(|_| !self.is_child()) else { return };
        let _undisturbed = Undisturbed::new();
        let mut inner = self.inner.lock();
        self.marks().set(from, to);
        (from..to).for_each(|page| inner.forget(PageNo(page)));
    }

    /// As [`Pager::mark`]; and their frames are free at once (the source's `FlushDiscardable`, user-initiated flushing).
    ///
    /// # Safety
    /// As for [`Pager::mark`]; nobody writes there meanwhile.
    pub unsafe fn flush(&self, start: *const u8, bytes: usize) {
        let Some((from, to)) = self.pages_within(start, bytes).filter(|_| !self.is_child()) else { return };
        let _undisturbed = Undisturbed::new();
        let mut inner = self.inner.lock();
        self.marks().set(from, to);
        for page in (from..to).map(PageNo) {
            match inner.record(page).state() {
                State::Mapped => {
                    let address = inner.address(page);
                    // SAFETY: by this function's condition.
                    if unsafe { map::flush(address, PAGE) }.is_err() {
                        continue;
                    }
                    inner.policy_gone(page);
                    inner.free_slot(page);
                    inner.record(page).set(State::Vague);
                    // The frame has gone to the kernel; the pool may have one of it for any place that is empty.
                    inner.return_frame();
                    self.stats.count(Event::Flushed, 1);
                }
                State::Held => {
                    inner.policy_gone(page);
                    inner.release(page, State::Vague);
                    self.stats.count(Event::Flushed, 1);
                }
                _ => inner.forget(page),
            }
        }
    }

    /// Calls `each` with every page that has a frame and the CPU time, in nanoseconds of the process, up to which it was referenced as far as is
    /// known: the reference bits, finer than bits, that a working-set estimator asks for. Mapped pages may have been referenced until now and are
    /// told as if they had. `None` under a policy that keeps no times. Slow: looks at all pages of all objects, with the lock held.
    pub fn references(&self, mut each: impl FnMut(PageNo, u64)) -> Option<()> {
        let _undisturbed = Undisturbed::new();
        let mut inner = self.inner.lock();
        if !inner.policy.goes_by_time() {
            return None;
        }
        let now = self.now(&inner.policy);
        for page in (0..inner.high).map(PageNo) {
            match inner.record(page).state() {
                State::Mapped => each(page, now),
                State::Held => each(page, inner.links[page.index()].stamp()),
                _ => {}
            }
        }
        Some(())
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
        let frames = self.inner.lock().frames;
        self.show(Counter::PeakPagedFrames, u64::from(frames));
        self.publish();
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
        self.inner.lock().validate()
    }
}

impl<B: Backing + Send> Default for Pager<B> {
    fn default() -> Self {
        Pager::new()
    }
}

/// A wait that is looked after: nobody is woken for nothing more often than once a second.
pub(crate) const A_WHILE_NS: u64 = 1_000_000_000;

fn pages_of(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.max(1).div_ceil(PAGE)).ok()
}

impl<B> core::fmt::Debug for Pager<B> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pager").field("phase", &self.phase).field("base", &self.base).finish_non_exhaustive()
    }
}
