//! Threads: their records, what they hold, and the state in which a collection finds them.
//!
//! ```text
//!             enter / leave              signal
//!   INSIDE ◀──────────────▶ RUNNING ◀──────────────▶ STOPPED
//!      │  wait for the lock    │ blocking region        ▲
//!      └────────▶ BLOCKED ◀────┘                        │
//!      └── leave, when a stop was asked for ────────────┘
//! ```
//!
//! A thread is *inside* while it changes the heap's structures or its own runs. It cannot be stopped there,
//! but stops itself when it leaves.
//!
//! A thread is *blocked* while its stack is fixed: it waits for the heap's lock, or has promised not to touch
//! the heap. A collection does not wait for a blocked thread. The thread cannot leave that state while a
//! collection runs, because leaving takes the lock that the collector holds.
//!
//! Records are never unmapped: a thread that ends leaves its record to the next thread.

use crate::process::frames::Frame;
use crate::process::local::{self, EMPTY, Run};
use crate::process::{self, arch, loader};
use crate::space::block::{Block, Index};
use crate::space::size_class::{SLOTS_MAX, WORD};
use crate::world::World;
use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};
use vellum_pages::{PAGE, Pages, Request};
use vellum_sys::{Addr, Span};

/// In the program's own code.
pub(crate) const RUNNING: u32 = 0;
/// Changing the heap or its own runs.
pub(crate) const INSIDE: u32 = 1;
/// Its stack is fixed until it gets the heap's lock.
pub(crate) const BLOCKED: u32 = 2;
/// Waiting for the end of a collection.
pub(crate) const STOPPED: u32 = 3;

/// The index of a cursor whose run outlived a collection: no further run is taken from the block.
const OUTLIVED: u32 = u32::MAX;

/// The source of a thread's next run of a slot.
#[repr(C)]
pub(crate) struct Cursor {
    pub block: Cell<Option<&'static Block>>,
    /// Objects before it are allocated or were passed over.
    pub index: Cell<u32>,
    /// Bytes of each object that the thread has freed of the slot …
    pub freed_size: Cell<u32>,
    /// … and the first of them (`explicit_free`); 0 for none.
    pub freed: Cell<Addr>,
    /// The run was cut short (`checks`).
    pub cut: Cell<bool>,
    /// The run is one object, which is to be sampled.
    pub sampled: Cell<bool>,
    /// Objects beyond the run up to the next sample (`samples`).
    pub left: Cell<u32>,
}

impl Cursor {
    /// Counts back objects of the run that are not used: samples depend on requests alone.
    fn count_back(&self, unused: u32) {
        if self.left.get() != 0 {
            self.left.set(self.left.get().saturating_add(unused));
        }
    }
}

/// A thread's record. The runs come first: the header's pointer leads to them.
#[repr(C)]
pub(crate) struct Thread {
    pub runs: [Run; SLOTS_MAX],
    pub cursors: [Cursor; SLOTS_MAX],
    pub state: AtomicU32,
    /// A stop was asked for while it was inside.
    pub stop_asked: AtomicBool,
    /// True if a thread has the record.
    pub taken: AtomicBool,
    pub tid: AtomicU32,
    /// The lowest address in use on its stack, where it is blocked or stopped.
    pub stack_low: AtomicUsize,
    /// The same at its entry into the collector, while that collects for it ([`Thread::standing_here`]); else
    /// 0.
    entered: Cell<usize>,
    /// One beyond its stack.
    pub stack_high: Cell<Addr>,
    /// The stack it was started with, as start and end.
    pub first_stack: Cell<Span>,
    /// The part of its alternate stack for signals that is in use, while it is stopped there; else empty.
    pub aside: Cell<Span>,
    /// The place where the program stores one beyond its stack, if it says so; else null.
    pub stack_by: Cell<*const Addr>,
    /// Its number as the C library has it.
    pub number: Cell<usize>,
    /// The program has suspended it.
    pub suspended: AtomicBool,
    /// Its static thread-local data, where that is not on its stack.
    pub data: Cell<Span>,
    /// The large object it has allocated last, which it may still be filling in.
    pub large: Cell<Option<&'static Block>>,
    /// Bytes of runs taken that the heap has not counted yet.
    pub uncounted: Cell<usize>,
    /// Collections this thread has made.
    pub collections: Cell<u32>,
    /// The thread's variable that leads to its frames (`frames`).
    pub frames: Cell<*const Cell<*const Frame>>,
    /// Words that the collector's own functions hold on its stack …
    pub held: Cell<*const InHand>,
    /// … and the object that the last of them returned.
    pub handed: Cell<Addr>,
    /// It runs finalizers.
    pub finalizing: Cell<bool>,
    /// When the numbers of objects up to the next samples were drawn (`samples`).
    pub epoch: Cell<u32>,
    /// Its random numbers (`checks`).
    pub chance: Cell<u64>,
    next: AtomicPtr<Thread>,
    /// The world that it is part of.
    world: Cell<*const World>,
}

/// Words on the stack of one of the collector's functions.
pub(crate) struct InHand {
    pub below: *const InHand,
    /// The words.
    pub words: Span,
}

impl Thread {
    /// The world that it is part of.
    pub(crate) fn world(&self) -> &'static World {
        // SAFETY: set when the record was made, to a world that is static; a record is known to nobody
        // before.
        unsafe { &*self.world.get() }
    }

    /// Keeps the object at `address`, which one of the collector's functions is about to return, where it is
    /// until the next call.
    #[inline]
    pub(crate) fn hand_over(&self, address: Addr) {
        self.handed.set(address);
    }

    /// Begins to change the heap: the thread will not be stopped until [`Thread::leave`].
    #[inline]
    pub(crate) fn enter(&self) {
        self.state.store(INSIDE, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Runs `work`, which may collect, with the scan of the stack beginning here. The collector's own frames
    /// below hold leftovers of calls that have ended, which would keep objects by accident. The thread is the
    /// caller, and nothing else refers to objects from those frames alone.
    #[inline(never)]
    pub(crate) fn standing_here<R>(&self, work: impl FnOnce() -> R) -> R {
        local::spilled(|low| {
            let before = self.entered.replace(low);
            let result = work();
            self.entered.set(before);
            result
        })
    }

    /// Runs `work`, which collects, as [`Thread::standing_here`] does. No library comes or goes meanwhile.
    pub(crate) fn collecting<R>(&self, work: impl FnOnce() -> R) -> R {
        self.standing_here(|| loader::still(work))
    }

    /// Returns whether it, the caller, collects and holds the heap's lock: taking that now would deadlock.
    pub(crate) fn is_collecting(&self) -> bool {
        self.entered.get() != 0
    }

    /// Ends the process if it does: a callback, or a signal handler, wants something of the heap.
    #[inline]
    pub(crate) fn expect_not_collecting(&self) {
        if self.is_collecting() {
            end_called_back();
        }
    }

    /// The lowest address in use on its stack, for the caller, whose own frame begins at `low`.
    pub(crate) fn in_use_from(&self, low: usize) -> usize {
        match self.entered.get() {
            0 => low,
            entered => entered,
        }
    }

    /// Returns whether it is in the program's own code. The thread is the caller.
    pub(crate) fn is_running(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RUNNING
    }

    /// Returns whether it is inside. The thread is the caller.
    pub(crate) fn is_inside(&self) -> bool {
        self.state.load(Ordering::Relaxed) == INSIDE
    }

    /// Ends the state that [`Thread::enter`] began, and stops if that was asked for.
    #[inline]
    pub(crate) fn leave(&self) {
        compiler_fence(Ordering::SeqCst);
        self.state.store(RUNNING, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.stop_if_asked();
    }

    /// Stops the calling thread, whose record this is, if that was asked for.
    #[inline]
    pub(crate) fn stop_if_asked(&self) {
        if self.stop_asked.load(Ordering::Relaxed) {
            self.stop_here();
        }
    }

    /// From here on the thread's stack above `low` is fixed.
    pub(crate) fn block(&self, low: usize) {
        self.stack_low.store(low, Ordering::Relaxed);
        self.state.store(BLOCKED, Ordering::Release);
    }

    /// One beyond the stack that it is on.
    pub(crate) fn stack_end(&self) -> Addr {
        match self.stack_by.get() {
            place if place.is_null() => self.stack_high.get(),
            // SAFETY: the program that set the place allows reads of it as long as the thread lives.
            place => unsafe { place.read_volatile() },
        }
    }

    /// The lowest address in use on its own stack, if it stops on a signal; `low` is the lowest where it
    /// runs.
    ///
    /// A handler may run on an alternate stack. Then two stacks are scanned: the alternate one from there,
    /// and the thread's own one as far down as it can be read, as only the kernel knows where the handler
    /// interrupted it. If the program has put the thread on a stack of its own, the size of that is not
    /// known, and it is not scanned.
    pub(crate) fn stops_at(&self, low: usize) -> usize {
        let Some(alternate) = vellum_sys::stack::alternate() else { return low };
        self.aside.set(Span::between(Addr::new(low).round_down(WORD), alternate.end()));
        let (stack, high) = (self.first_stack.get(), self.stack_end());
        let own = Span::between(stack.start, high);
        if high == stack.end() { vellum_sys::stack::readable_from(own).get() } else { high.get() }
    }

    /// Keeps the unused rest of the runs over a collection that has just cleared marks. The thread is
    /// stopped.
    ///
    /// The signal may have stopped it between two instructions of the inlined path: one reads the address of
    /// the next object, the other writes that of the one after it. The object is the thread's own as soon as
    /// it has read. So runs are left as they are. Their blocks go to the first thread that asks, as all do,
    /// and this thread takes no further run from them.
    pub(crate) fn keep_runs(&self, slots: usize) {
        for (_, cursor, block, unused) in self.runs_with_block(slots) {
            // The thread may still be filling in the last object of a run that is used up: the block stays
            // among its own (`blocks`).
            cursor.index.set(OUTLIVED);
            if !unused.is_empty() {
                // Unused objects are all zeros: there is nothing to trace. Only the first may be in use
                // already: it is a root (`next_objects`).
                (unused.start + 1..unused.end).for_each(|index| _ = block.mark(Index(index)));
                // No object may move into or out of a block that the thread allocates from.
                block.evacuating.set(false);
            }
        }
    }

    /// The runs and cursors that have a block, with that and the indices of the run's unused objects.
    fn runs_with_block(
        &self,
        slots: usize,
    ) -> impl Iterator<Item = (&Run, &Cursor, &'static Block, Range<u32>)> {
        self.runs.iter().zip(&self.cursors).take(slots).filter_map(|(run, cursor)| {
            let block = cursor.block.get()?;
            let (from, bytes) = (run.next.get(), run.end.get() - run.next.get());
            let first = if bytes == 0 { 0 } else { block.index_at(from - block.base.get()).0 };
            Some((run, cursor, block, first..first + (bytes / block.size.get()) as u32))
        })
    }

    /// Counts the unused rest of the runs as allocated or as free. The thread is stopped.
    pub(crate) fn count_runs(&self, slots: usize, as_allocated: bool) {
        for (_, _, block, unused) in self.runs_with_block(slots).filter(|(.., unused)| !unused.is_empty()) {
            if as_allocated {
                block.set_allocated(unused.start, unused.end);
            } else {
                block.clear_allocated(unused.start, unused.end);
            }
        }
    }

    /// The next object of each run that is not used up.
    pub(crate) fn next_objects(&self, slots: usize) -> impl Iterator<Item = Addr> {
        let runs = self.runs.iter().take(slots).map(|run| (run.next.get(), run.end.get()));
        runs.filter(|(next, end)| next < end).map(|(next, _)| next)
    }

    /// The memory in which it may be filling in new objects: the blocks of its runs, and its last large
    /// object, whose descriptor may be another's by now.
    pub(crate) fn blocks(&self, slots: usize) -> impl Iterator<Item = &'static Block> {
        let blocks = self.cursors.iter().take(slots).map(|cursor| cursor.block.get());
        blocks.chain([self.large.get()]).flatten()
    }

    /// Calls `visit` with the unused objects of runs in kept blocks that outlived a collection: nothing else
    /// would give them back.
    pub(crate) fn each_left(&self, slots: usize, mut visit: impl FnMut(Addr)) {
        for (run, cursor, block, _) in self.runs_with_block(slots) {
            if block.is_kept() && cursor.index.get() == OUTLIVED {
                let objects = (0..run.end.get() - run.next.get()).step_by(block.size.get());
                objects.for_each(|offset| visit(run.next.get() + offset));
            }
        }
    }

    /// Drops the runs, and frees their unused objects. Those of runs that outlived a collection are freed
    /// only if `stopped`, with the world stopped: another thread may change the bits of their blocks. Else
    /// the next collection frees them. The thread is the caller.
    pub(crate) fn retire_runs(&self, slots: usize, stopped: bool) {
        for (run, cursor, block, unused) in self.runs_with_block(slots) {
            if !unused.is_empty() && (stopped || cursor.index.get() != OUTLIVED) {
                block.clear_allocated(unused.start, unused.end);
            }
            cursor.count_back(unused.len() as u32);
            run.next.take();
            run.end.take();
            cursor.block.set(None);
            cursor.index.set(0);
            cursor.cut.set(false);
        }
        self.large.set(None);
    }

    /// A number that differs between threads, as long as they live.
    pub(crate) fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Returns whether this is the calling thread's record.
    pub(crate) fn is_current(&self) -> bool {
        current().is_some_and(|current| core::ptr::eq(current, self))
    }
}

/// Ends the process: a callback, or a signal handler, uses the heap on the thread that collects.
#[cold]
pub(crate) fn end_called_back() -> ! {
    let words = "vellum: gc: a mark procedure, a hook or a signal handler used the heap during a collection; that would deadlock\n";
    // SAFETY: the bytes are static; if the call is refused, only the message is lost.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
    // SAFETY: `abort` ends the process and has no arguments.
    unsafe { libc::abort() }
}

/// [`Thread::hand_over`] of the calling thread's, of the object that a function has found, if any.
pub(crate) fn hand_over_found(found: Option<Addr>) -> Option<Addr> {
    if let (Some(thread), Some(address)) = (current(), found) {
        thread.hand_over(address);
    }
    found
}

pub(crate) const RECORD_BYTES: usize = size_of::<Thread>().next_multiple_of(PAGE);

/// The calling thread's record; `None` if it is not known yet.
#[inline(always)]
pub(crate) fn current() -> Option<&'static Thread> {
    let local = arch::local().cast::<Thread>();
    if core::ptr::addr_eq(local, &raw const EMPTY) {
        return None;
    }
    // SAFETY: only `set_current` writes the variable, with a record, and records are never unmapped.
    Some(unsafe { &*local })
}

/// Makes `thread` the calling thread's record, or none.
pub(crate) fn set_current(thread: Option<&'static Thread>) {
    let local = thread.map_or((&raw const EMPTY).cast(), core::ptr::from_ref::<Thread>);
    // SAFETY: it leads to the empty runs, or to a record, which begins with its runs.
    unsafe { arch::set_local(local.cast()) };
}

impl World {
    /// Bytes that all records take.
    pub(crate) fn records_bytes(&self) -> usize {
        self.records.load(Ordering::Relaxed) * RECORD_BYTES
    }

    pub(crate) fn create(&'static self) -> Option<&'static Thread> {
        let request = Request { bytes: size_of::<Thread>(), align: PAGE, zero: true };
        let extent = Pages::global().alloc(request).ok()?;
        // SAFETY: zeroed pages of the right size that are never given back; a zeroed record is a valid one.
        let thread: &'static Thread = unsafe { extent.addr.cast().as_ref() };
        thread.taken.store(true, Ordering::Relaxed);
        thread.world.set(self);
        self.records.fetch_add(1, Ordering::Relaxed);
        let mut head = self.threads.load(Ordering::Relaxed);
        loop {
            thread.next.store(head, Ordering::Relaxed);
            let this = core::ptr::from_ref(thread).cast_mut();
            match self.threads.compare_exchange_weak(head, this, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(thread),
                Err(now) => head = now,
            }
        }
    }

    /// Every record there is, taken or not.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Thread> {
        let mut next = self.threads.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: records are never unmapped.
            let thread = unsafe { next.as_ref() }?;
            next = thread.next.load(Ordering::Relaxed);
            Some(thread)
        })
    }

    /// Every thread that is known to the collector.
    pub(crate) fn known(&self) -> impl Iterator<Item = &'static Thread> {
        self.all()
            .filter(|thread| thread.taken.load(Ordering::Acquire) && thread.tid.load(Ordering::Acquire) != 0)
    }

    /// Returns whether a known thread other than the caller is neither blocked nor in a blocking region.
    pub(crate) fn others_run(&self) -> bool {
        self.known().any(|thread| !thread.is_current() && thread.state.load(Ordering::Relaxed) != BLOCKED)
    }

    /// In a forked child there is one thread: drops the others.
    pub(crate) fn forget_others(&self) {
        for thread in self.all() {
            if !thread.is_current() {
                thread.tid.store(0, Ordering::Relaxed);
                thread.taken.store(false, Ordering::Relaxed);
                thread.state.store(BLOCKED, Ordering::Relaxed);
                thread.stop_asked.store(false, Ordering::Relaxed);
                // Their unused objects stay allocated until the next collection finds them unmarked; in
                // blocks of kept objects they stay.
                for (run, cursor) in thread.runs.iter().zip(&thread.cursors) {
                    run.next.take();
                    run.end.take();
                    cursor.block.set(None);
                    cursor.freed.take();
                    cursor.cut.set(false);
                }
            } else {
                thread.tid.store(process::tid(), Ordering::Relaxed);
            }
        }
    }
}
