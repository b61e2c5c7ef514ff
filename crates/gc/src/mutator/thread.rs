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
//! the heap. A collection does not wait for it. It cannot leave that state while one runs, because leaving
//! takes the lock that the collector holds.
//!
//! Records are never unmapped: a thread that ends leaves its record to the next.

use crate::mutator::tls::{self, Run};
use crate::space::block::{Block, Index};
use crate::space::size_class::SLOTS_MAX;
use crate::trace::frames::{Frame, InHand};
use crate::trace::{callbacks, stack};
use core::cell::Cell;
use core::ptr::null;
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
    pub block: Cell<*const Block>,
    /// Objects before it are allocated or were passed over.
    pub index: Cell<u32>,
    /// Bytes of each object that the thread has freed of the slot …
    pub freed_size: Cell<u32>,
    /// … and the first of them (`explicit_free`); 0 for none.
    pub freed: Cell<usize>,
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
    /// Whether a thread has the record.
    pub taken: AtomicBool,
    pub tid: AtomicU32,
    /// The lowest address in use on its stack, where it is blocked or stopped.
    pub stack_low: AtomicUsize,
    /// The same at its entry into the collector, while that collects for it ([`Thread::standing_here`]); else
    /// 0.
    entered: Cell<usize>,
    /// One beyond its stack.
    pub stack_high: Cell<usize>,
    /// The stack it was started with, as start and end.
    pub first_stack: Cell<(usize, usize)>,
    /// The part of its alternate stack for signals that is in use, while it is stopped there; else empty.
    pub aside: Cell<(usize, usize)>,
    /// The place where the program stores one beyond its stack, if it says so; else null.
    pub stack_by: Cell<*const usize>,
    /// Its number as the C library has it.
    pub number: Cell<usize>,
    /// The program has suspended it.
    pub suspended: AtomicBool,
    /// Its static thread-local data, where that is not on its stack.
    pub data: Cell<(usize, usize)>,
    /// The large object it has allocated last, which it may still be filling in.
    pub large: Cell<*const Block>,
    /// Bytes of runs taken that the heap has not counted yet.
    pub uncounted: Cell<usize>,
    /// Collections this thread has made.
    pub collections: Cell<u32>,
    /// The thread's variable that leads to its frames (`frames`).
    pub frames: Cell<*const Cell<*const Frame>>,
    /// Words that the collector's own functions hold on its stack …
    pub held: Cell<*const InHand>,
    /// … and the object that the last of them returned.
    pub handed: Cell<usize>,
    /// It runs finalizers.
    pub finalizing: Cell<bool>,
    /// When the numbers of objects up to the next samples were drawn (`samples`).
    pub epoch: Cell<u32>,
    /// Its random numbers (`checks`).
    pub chance: Cell<u64>,
    pub next: AtomicPtr<Thread>,
}

static THREADS: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());

impl Thread {
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
        let mut registers = tls::NO_REGISTERS;
        let low = tls::spill(&mut registers).min(registers.as_ptr() as usize);
        let before = self.entered.replace(low);
        let result = work();
        self.entered.set(before);
        core::hint::black_box(&registers);
        result
    }

    /// Whether it collects, and holds the heap's lock: taking that now would deadlock. The thread is the
    /// caller.
    pub(crate) fn is_collecting(&self) -> bool {
        self.entered.get() != 0
    }

    /// Ends the process if it does: a callback, or a signal handler, wants something of the heap.
    #[inline]
    pub(crate) fn expect_not_collecting(&self) {
        if self.is_collecting() {
            callbacks::end_called_back();
        }
    }

    /// The lowest address in use on its stack, for the caller, whose own frame begins at `low`.
    pub(crate) fn in_use_from(&self, low: usize) -> usize {
        match self.entered.get() {
            0 => low,
            entered => entered,
        }
    }

    /// Whether it is in the program's own code. The thread is the caller.
    pub(crate) fn is_running(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RUNNING
    }

    /// Whether it is inside. The thread is the caller.
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
            crate::mutator::stop::stop_here(self);
        }
    }

    /// From here on the thread's stack above `low` is fixed.
    pub(crate) fn block(&self, low: usize) {
        self.stack_low.store(low, Ordering::Relaxed);
        self.state.store(BLOCKED, Ordering::Release);
    }

    /// One beyond the stack that it is on.
    pub(crate) fn stack_end(&self) -> usize {
        match self.stack_by.get() {
            place if place.is_null() => self.stack_high.get(),
            // SAFETY: the program vouched, when it set the place, that it may be read as long as the thread
            // lives.
            place => unsafe { place.read_volatile() },
        }
    }

    /// The lowest address in use on its own stack, where it stops on a signal; `low` is the lowest in use
    /// where it runs.
    ///
    /// A handler may run on an alternate stack. Then two stacks are scanned: the alternate one from there,
    /// and the thread's own one as far down as it can be read, as only the kernel knows where the handler
    /// interrupted it. If the program has put the thread on a stack of its own, the size of that is not
    /// known, and it is not scanned.
    pub(crate) fn stops_at(&self, low: usize) -> usize {
        let Some(alternate) = vellum_sys::stack::alternate() else { return low };
        self.aside.set((low, alternate.end().get()));
        let ((start, end), high) = (self.first_stack.get(), self.stack_end());
        let own = Span::between(Addr::new(start), Addr::new(high));
        if high == end { vellum_sys::stack::readable_from(own).get() } else { high }
    }

    /// Keeps the unused rest of the runs over a collection, whose marks have just been cleared. The thread is
    /// stopped.
    ///
    /// The signal may have stopped it between two instructions of the inlined path: one reads the address of
    /// the next object, the other writes that of the one after it. The object is the thread's own as soon as
    /// it has read. So runs are left as they are. Their blocks go to the first thread that asks, as all do,
    /// and this thread takes no further run from them.
    pub(crate) fn keep_runs(&self, slots: usize) {
        for (run, cursor) in self.runs.iter().zip(&self.cursors).take(slots) {
            // SAFETY: null, or a descriptor, which is never unmapped.
            let Some(block) = (unsafe { cursor.block.get().as_ref() }) else { continue };
            let (from, to) = (run.next.get(), run.end.get());
            if from < to {
                let first = block.index_at(from - block.base.get()).0;
                let count = ((to - from) / block.size.get()) as u32;
                // Unused objects are all zeros: there is nothing to trace. Only the first may be in use
                // already: it is a root (`next_objects`).
                (first + 1..first + count).for_each(|index| _ = block.mark(Index(index)));
                cursor.index.set(OUTLIVED);
                // Nothing may move into or out of a block that the thread allocates from.
                block.evacuating.set(false);
            } else {
                // It may be filling in the last object of the run still: the block stays known (`blocks`).
                cursor.index.set(OUTLIVED);
            }
        }
    }

    /// Counts the unused rest of the runs as allocated, as usual, or as free for a moment. The thread is
    /// stopped.
    pub(crate) fn count_runs(&self, slots: usize, as_allocated: bool) {
        for (run, cursor) in self.runs.iter().zip(&self.cursors).take(slots) {
            // SAFETY: null, or a descriptor, which is never unmapped.
            let Some(block) = (unsafe { cursor.block.get().as_ref() }) else { continue };
            let (from, to) = (run.next.get(), run.end.get());
            if from < to {
                let first = block.index_at(from - block.base.get()).0;
                let last = first + ((to - from) / block.size.get()) as u32;
                if as_allocated {
                    block.set_allocated(first, last);
                } else {
                    block.clear_allocated(first, last);
                }
            }
        }
    }

    /// The next object of each run that is not used up.
    pub(crate) fn next_objects(&self, slots: usize) -> impl Iterator<Item = usize> {
        let runs = self.runs.iter().take(slots).map(|run| (run.next.get(), run.end.get()));
        runs.filter(|(next, end)| next < end).map(|(next, _)| next)
    }

    /// The memory in which it may be filling in new objects: the blocks of its runs, and its last large
    /// object, whose descriptor may be another's by now.
    pub(crate) fn blocks(&self, slots: usize) -> impl Iterator<Item = &'static Block> {
        let blocks = self.cursors.iter().take(slots).map(|cursor| cursor.block.get());
        // SAFETY: null, or a descriptor, which is never unmapped.
        blocks.chain([self.large.get()]).filter_map(|block| unsafe { block.as_ref() })
    }

    /// Calls `visit` with the unused objects of runs in kept blocks that outlived a collection: nothing else
    /// would give them back.
    pub(crate) fn each_left(&self, slots: usize, mut visit: impl FnMut(usize)) {
        for (run, cursor) in self.runs.iter().zip(&self.cursors).take(slots) {
            // SAFETY: null, or a descriptor, which is never unmapped.
            let Some(block) = (unsafe { cursor.block.get().as_ref() }) else { continue };
            if block.is_kept() && cursor.index.get() == OUTLIVED {
                (run.next.get()..run.end.get()).step_by(block.size.get()).for_each(&mut visit);
            }
        }
    }

    /// Drops the runs, and frees their unused objects. Those of runs that outlived a collection are freed
    /// only if `stopped`, with the world stopped: another thread may change the bits of their blocks. Else
    /// the next collection frees them. The thread is the caller.
    pub(crate) fn retire_runs(&self, slots: usize, stopped: bool) {
        for (run, cursor) in self.runs.iter().zip(&self.cursors).take(slots) {
            // SAFETY: null, or a descriptor, which is never unmapped.
            if let Some(block) = unsafe { cursor.block.get().as_ref() } {
                let (from, to) = (run.next.get(), run.end.get());
                let count = ((to - from) / block.size.get()) as u32;
                if count > 0 && (stopped || cursor.index.get() != OUTLIVED) {
                    let first = block.index_at(from - block.base.get()).0;
                    block.clear_allocated(first, first + count);
                }
                cursor.count_back(count);
            }
            run.next.set(0);
            run.end.set(0);
            cursor.block.set(null());
            cursor.index.set(0);
            cursor.cut.set(false);
        }
        self.large.set(null());
    }

    /// A number that differs between threads, as long as they live.
    pub(crate) fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Whether this is the calling thread's record.
    pub(crate) fn is_current(&self) -> bool {
        tls::current().is_some_and(|current| core::ptr::eq(current, self))
    }
}

pub(crate) const RECORD_BYTES: usize = size_of::<Thread>().next_multiple_of(PAGE);

static RECORDS: AtomicUsize = AtomicUsize::new(0);

/// Bytes that all records take.
pub(crate) fn records_bytes() -> usize {
    RECORDS.load(Ordering::Relaxed) * RECORD_BYTES
}

pub(crate) fn create() -> Option<&'static Thread> {
    let request = Request { bytes: size_of::<Thread>(), align: PAGE, zero: true };
    let extent = Pages::global().alloc(request).ok()?;
    // SAFETY: zeroed pages of the right size that are never given back; a zeroed record is a valid one.
    let thread: &'static Thread = unsafe { extent.addr.cast().as_ref() };
    thread.taken.store(true, Ordering::Relaxed);
    RECORDS.fetch_add(1, Ordering::Relaxed);
    let mut head = THREADS.load(Ordering::Relaxed);
    loop {
        thread.next.store(head, Ordering::Relaxed);
        let this = core::ptr::from_ref(thread).cast_mut();
        match THREADS.compare_exchange_weak(head, this, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return Some(thread),
            Err(now) => head = now,
        }
    }
}

/// Every record there is, taken or not.
pub(crate) fn all() -> impl Iterator<Item = &'static Thread> {
    let mut next = THREADS.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: records are never unmapped.
        let thread = unsafe { next.as_ref() }?;
        next = thread.next.load(Ordering::Relaxed);
        Some(thread)
    })
}

/// Every thread that is known to the collector.
pub(crate) fn known() -> impl Iterator<Item = &'static Thread> {
    all().filter(|thread| thread.taken.load(Ordering::Acquire) && thread.tid.load(Ordering::Acquire) != 0)
}

/// Whether a known thread other than the caller is neither blocked nor in a blocking region.
pub(crate) fn others_run() -> bool {
    known().any(|thread| !thread.is_current() && thread.state.load(Ordering::Relaxed) != BLOCKED)
}

/// In a forked child there is one thread: drops the others.
pub(crate) fn forget_others() {
    for thread in all() {
        if !thread.is_current() {
            thread.tid.store(0, Ordering::Relaxed);
            thread.taken.store(false, Ordering::Relaxed);
            thread.state.store(BLOCKED, Ordering::Relaxed);
            thread.stop_asked.store(false, Ordering::Relaxed);
            // Their unused objects stay allocated until the next collection finds them unmarked; in blocks of
            // kept objects they stay.
            for (run, cursor) in thread.runs.iter().zip(&thread.cursors) {
                run.next.set(0);
                run.end.set(0);
                cursor.block.set(null());
                cursor.freed.set(0);
                cursor.cut.set(false);
            }
        } else {
            thread.tid.store(stack::tid(), Ordering::Relaxed);
        }
    }
}
