//! Threads: who they are, what they hold, and in what state a collection finds them.
//!
//! ```text
//!             enter / leave              signal
//!   INSIDE ◀──────────────▶ RUNNING ◀──────────────▶ STOPPED
//!      │  wait for the lock    │ blocking region        ▲
//!      └────────▶ BLOCKED ◀────┘                        │
//!      └── leave, when a stop was asked for ────────────┘
//! ```
//!
//! A thread is *inside* while it changes the heap's structures or its own runs: it cannot be stopped there, but stops itself when it
//! leaves. It is *blocked* while its stack is fixed: it waits for the heap's lock, or has said that it will not touch the
//! heap; a collection does not wait for it, and it cannot leave that state while one runs, because leaving takes
//! the lock that the collector holds.
//!
//! Records are never unmapped: a thread that ends leaves its record to the next.

use crate::block::{Block, Index};
use crate::budget::Waiting;
use crate::class::SLOTS_MAX;
use crate::dirty::Dirty;
use crate::frames::{Frame, InHand};
use crate::heap::{self, Heap};
use crate::idle_thread;
use crate::loader;
use crate::procedure;
use crate::stack;
use crate::tls::{self, Run};
use core::cell::Cell;
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};
use vellum_pages::{PAGE, Pages, Request};
use vellum_sys::guard;
use vellum_sys::lock::Held;

/// In the program's own code.
pub(crate) const RUNNING: u32 = 0;
/// The index of a cursor whose run outlived a collection: no further run is taken from the block.
const OUTLIVED: u32 = u32::MAX;

/// Changing the heap or its own runs.
pub(crate) const INSIDE: u32 = 1;
/// Its stack is fixed until it gets the heap's lock.
pub(crate) const BLOCKED: u32 = 2;
/// Waiting for the end of a collection.
pub(crate) const STOPPED: u32 = 3;

/// Where a thread's next run of a slot comes from.
#[repr(C)]
pub(crate) struct Cursor {
    pub block: Cell<*const Block>,
    /// Objects before it are allocated or were passed over.
    pub index: Cell<u32>,
    /// Bytes of each object that the thread has freed of the slot …
    pub freed_size: Cell<u32>,
    /// … and the first of them (`freed`); 0 for none.
    pub freed: Cell<usize>,
    /// The run was cut short (`strict`).
    pub cut: Cell<bool>,
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
    /// The same where it has come into the collector, while that collects for it ([`Thread::standing_here`]); else 0.
    entered: Cell<usize>,
    /// One beyond its stack.
    pub stack_high: Cell<usize>,
    /// The stack it was started with, as start and end.
    pub first_stack: Cell<(usize, usize)>,
    /// The part of its alternate stack for signals that is in use, while it is stopped there; else empty.
    pub aside: Cell<(usize, usize)>,
    /// Where that is said instead, if the program says so.
    pub stack_by: Cell<*const usize>,
    /// Its number as the C library has it.
    pub number: Cell<usize>,
    /// It is not to run.
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
    /// Words that functions of the collector's have in their hands …
    pub held: Cell<*const InHand>,
    /// … and the object that one has returned last.
    pub handed: Cell<usize>,
    /// It runs finalizers.
    pub finalizing: Cell<bool>,
    /// Its random numbers (`strict`).
    pub chance: Cell<u64>,
    pub next: AtomicPtr<Thread>,
}

static THREADS: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());
static KEY: AtomicU32 = AtomicU32::new(0);

impl Thread {
    /// Begins to change the heap: the thread will not be stopped until [`Thread::leave`].
    #[inline]
    pub(crate) fn enter(&self) {
        self.state.store(INSIDE, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Does `work`, which may collect, with the stack known from here on up: what lies in the collector's own frames below is left over from calls that
    /// have ended, and would keep objects by accident. The thread is the caller, and has nothing in those frames that only they know.
    #[inline(never)]
    pub(crate) fn standing_here<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut registers = [0; 6];
        let low = tls::spill(&mut registers).min(registers.as_ptr() as usize);
        let before = self.entered.replace(low);
        let result = work();
        self.entered.set(before);
        core::hint::black_box(&registers);
        result
    }

    /// Whether it collects, and holds the heap's lock: what asks for that now waits for itself. The thread is the caller.
    pub(crate) fn is_collecting(&self) -> bool {
        self.entered.get() != 0
    }

    /// Ends the process if it does: a procedure that the collector calls, or a signal's handler, wants something of the heap.
    #[inline]
    pub(crate) fn expect_not_collecting(&self) {
        if self.is_collecting() {
            procedure::end_called_back();
        }
    }

    /// Where its stack is in use from, for the caller, whose own frame begins at `low`.
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

    /// Ends what [`Thread::enter`] began, and stops if that was asked for.
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
            crate::stop::stop_here(self);
        }
    }

    /// Takes the heap's lock; the thread is inside, and counts as blocked while it waits.
    pub(crate) fn lock(&self) -> Held<'static, Heap> {
        if let Some(held) = heap::HEAP.try_lock() {
            return held;
        }
        let mut registers = [0; 6];
        self.block(tls::spill(&mut registers).min(registers.as_ptr() as usize));
        let held = wait_for_heap();
        core::hint::black_box(&registers);
        self.state.store(INSIDE, Ordering::Relaxed);
        held
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
            // SAFETY: who set it vouches that it may be read as long as the thread lives.
            place => unsafe { place.read_volatile() },
        }
    }

    /// Where it stops, `low` being the lowest address in use, on a signal: the lowest address in use of its own stack.
    ///
    /// A handler may run on an alternate stack. Then that is looked through from there, and the thread's own stack as far down as it can be read:
    /// where the handler interrupted it, only the kernel has written down. If the program has put the thread on a stack of its own, that
    /// one's size is not known, and it is not looked through.
    pub(crate) fn stops_at(&self, low: usize) -> usize {
        let Some(alternate) = vellum_sys::stack::alternate() else { return low };
        self.aside.set((low, alternate.end));
        let ((start, end), high) = (self.first_stack.get(), self.stack_end());
        if high == end { vellum_sys::stack::readable_from(start, high) } else { high }
    }

    /// Keeps what is left of the runs over a collection, whose marks have just been cleared. The thread is stopped.
    ///
    /// The signal may have stopped it between the two instructions of the inlined path that read where the next object is and
    /// write where the one after it will be: the object is its own as soon as it has read. So runs are left as they are. Their
    /// blocks go to whoever asks first, as all do, and the thread takes no further run from them.
    pub(crate) fn keep_runs(&self, slots: usize) {
        for (run, cursor) in self.runs.iter().zip(&self.cursors).take(slots) {
            // SAFETY: null, or a descriptor, which is never unmapped.
            let Some(block) = (unsafe { cursor.block.get().as_ref() }) else { continue };
            let (from, to) = (run.next.get(), run.end.get());
            if from < to {
                let first = block.index_at(from - block.base.get()).0;
                let count = ((to - from) / block.size.get()) as u32;
                // What is not used yet is all zeros: there is nothing to trace. Only the first may be in use already: it is a root
                // (`next_objects`).
                (first + 1..first + count).for_each(|index| _ = block.mark(Index(index)));
                cursor.index.set(OUTLIVED);
                // Nothing may move into or out of what the thread allocates from.
                block.evacuating.set(false);
            } else {
                // It may be filling in the last object of the run still: the block stays known (`blocks`).
                cursor.index.set(OUTLIVED);
            }
        }
    }

    /// Has what is left of the runs count as allocated, as it does, or as free for a moment. The thread is stopped.
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

    /// Where it may be filling in new objects: the blocks of its runs, and its last large object, whose descriptor may be another's by now.
    pub(crate) fn blocks(&self, slots: usize) -> impl Iterator<Item = &'static Block> {
        let blocks = self.cursors.iter().take(slots).map(|cursor| cursor.block.get());
        // SAFETY: null, or a descriptor, which is never unmapped.
        blocks.chain([self.large.get()]).filter_map(|block| unsafe { block.as_ref() })
    }

    /// Calls `visit` with what was not used of runs in kept blocks that outlived a collection: nothing else would give it back.
    pub(crate) fn each_left(&self, slots: usize, mut visit: impl FnMut(usize)) {
        for (run, cursor) in self.runs.iter().zip(&self.cursors).take(slots) {
            // SAFETY: null, or a descriptor, which is never unmapped.
            let Some(block) = (unsafe { cursor.block.get().as_ref() }) else { continue };
            if block.is_kept() && cursor.index.get() == OUTLIVED {
                (run.next.get()..run.end.get()).step_by(block.size.get()).for_each(&mut visit);
            }
        }
    }

    /// Forgets the runs, giving back what was not used of them; of those that outlived a collection only if `stopped`, as the world is: another thread may change the
    /// bits of their blocks, and the next collection finds what is unused. The thread is the caller.
    pub(crate) fn retire_runs(&self, slots: usize, stopped: bool) {
        for (run, cursor) in self.runs.iter().zip(&self.cursors).take(slots) {
            // SAFETY: null, or a descriptor, which is never unmapped.
            if let Some(block) = unsafe { cursor.block.get().as_ref() } {
                let (from, to) = (run.next.get(), run.end.get());
                if from < to && (stopped || cursor.index.get() != OUTLIVED) {
                    let first = block.index_at(from - block.base.get()).0;
                    let count = ((to - from) / block.size.get()) as u32;
                    block.clear_allocated(first, first + count);
                }
            }
            run.next.set(0);
            run.end.set(0);
            cursor.block.set(null());
            cursor.index.set(0);
            cursor.cut.set(false);
        }
        self.large.set(null());
    }

    /// What tells it from the other threads, as long as it lives.
    pub(crate) fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Whether this is the calling thread's record.
    pub(crate) fn is_current(&self) -> bool {
        tls::current().is_some_and(|current| core::ptr::eq(current, self))
    }
}

/// The calling thread's record, which it gets now if it has none; `None` if memory is out.
#[inline]
pub(crate) fn attached() -> Option<&'static Thread> {
    match tls::current() {
        Some(thread) => Some(thread),
        None => attach(),
    }
}

#[cold]
fn attach() -> Option<&'static Thread> {
    // Made before the thread counts as known, and without the heap's lock: these call the C library, which may allocate.
    loader::look_for_mutex();
    let stack = stack::of_this_thread()?;
    let data = stack::thread_data(&stack);
    crate::stop::prepare();
    if Dirty::may_protect() {
        guard::let_through();
    }
    let unused = all().find(|thread| !thread.taken.swap(true, Ordering::Acquire));
    let thread = unused.or_else(|| wait_for_heap().may_take(RECORD_BYTES).then(create)?)?;
    // A record that a fork has freed says what its thread was about.
    thread.stop_asked.store(false, Ordering::Relaxed);
    thread.finalizing.set(false);
    thread.large.set(null());
    thread.stack_high.set(stack.end);
    thread.first_stack.set((stack.start, stack.end));
    thread.stack_by.set(null());
    // SAFETY: plain call.
    thread.number.set(unsafe { libc::pthread_self() } as usize);
    thread.suspended.store(false, Ordering::Relaxed);
    thread.data.set(data);
    thread.frames.set(tls::frames());
    thread.held.set(null());
    thread.handed.set(0);
    // A collection that runs now does not know this thread, so it must not hold pointers yet: it enters with the lock.
    thread.state.store(BLOCKED, Ordering::Relaxed);
    thread.stack_low.store(stack.end, Ordering::Relaxed);
    thread.tid.store(stack::tid(), Ordering::Release);
    let held = wait_for_heap();
    // Before the lock is free: a signal that found no record would be lost, and the collection wait for ever if the thread waits for one that has
    // stopped.
    tls::set_current(Some(thread));
    thread.state.store(RUNNING, Ordering::Relaxed);
    drop(held);
    watch_exit(thread);
    Some(thread)
}

/// Bytes a record takes.
const RECORD_BYTES: usize = size_of::<Thread>().next_multiple_of(PAGE);

/// Records there are.
static RECORDS: AtomicUsize = AtomicUsize::new(0);

/// Bytes that all records take.
pub(crate) fn records_bytes() -> usize {
    RECORDS.load(Ordering::Relaxed) * RECORD_BYTES
}

fn create() -> Option<&'static Thread> {
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

/// Has [`detach`] called when the thread ends; if that cannot be arranged, its record stays taken.
fn watch_exit(thread: &'static Thread) {
    let mut key = KEY.load(Ordering::Acquire);
    if key == 0 {
        let mut made = 0;
        // SAFETY: plain call with a destructor that ignores its argument's target.
        if unsafe { libc::pthread_key_create(&raw mut made, Some(detach)) } != 0 {
            return;
        }
        match KEY.compare_exchange(0, made + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => key = made + 1,
            Err(theirs) => {
                // SAFETY: the key was made above and nobody knows it.
                unsafe { libc::pthread_key_delete(made) };
                key = theirs;
            }
        }
    }
    // SAFETY: the key exists.
    unsafe { libc::pthread_setspecific(key - 1, core::ptr::from_ref(thread).cast()) };
}

/// The thread ends: its runs go back, its record is free for another. If it allocates once more, from a later
/// destructor, it is attached anew.
extern "C" fn detach(_thread: *mut libc::c_void) {
    let Some(thread) = tls::current() else { return };
    thread.enter();
    let mut heap = thread.lock();
    heap.count_taken(thread);
    heap.remember_freed(thread);
    thread.retire_runs(heap.slots_in_use(), false);
    heap.roots.thread_ends(thread.key());
    tls::set_current(None);
    thread.tid.store(0, Ordering::Release);
    thread.stop_asked.store(false, Ordering::Relaxed);
    thread.state.store(BLOCKED, Ordering::Relaxed);
    thread.taken.store(false, Ordering::Release);
    drop(heap);
    idle_thread::poke();
}

/// Takes the heap's lock; a slice that runs in idle time gives way.
fn wait_for_heap() -> Held<'static, Heap> {
    heap::HEAP.try_lock().unwrap_or_else(|| {
        let _waiting = Waiting::new();
        heap::HEAP.lock()
    })
}

/// Calls `body` with the thread blocked: collections do not wait for it.
pub(crate) fn blocking<R>(thread: &'static Thread, body: impl FnOnce() -> R) -> R {
    idle_thread::ensure();
    parked(thread, || {
        idle_thread::poke();
        body()
    })
}

/// The same without a word to the collector's own thread.
pub(crate) fn parked<R>(thread: &'static Thread, body: impl FnOnce() -> R) -> R {
    let mut registers = [0; 6];
    let low = tls::spill(&mut registers).min(registers.as_ptr() as usize);
    thread.block(low);
    let result = body();
    core::hint::black_box(&registers);
    let held = wait_for_heap();
    thread.state.store(RUNNING, Ordering::Relaxed);
    drop(held);
    thread.stop_if_asked();
    result
}

/// Runs `body` within a blocking region as if outside of it.
pub(crate) fn active<R>(thread: &'static Thread, body: impl FnOnce() -> R) -> R {
    if thread.state.load(Ordering::Relaxed) != BLOCKED {
        return body();
    }
    let held = wait_for_heap();
    thread.state.store(RUNNING, Ordering::Relaxed);
    drop(held);
    thread.stop_if_asked();
    let result = body();
    // What the rest of the region has on the stack is looked through too: it lies above.
    let mut registers = [0; 6];
    let low = tls::spill(&mut registers).min(registers.as_ptr() as usize);
    thread.block(low);
    idle_thread::poke();
    core::hint::black_box(&registers);
    result
}

/// In a forked child there is one thread: forgets the others.
pub(crate) fn forget_others() {
    for thread in all() {
        if !thread.is_current() {
            thread.tid.store(0, Ordering::Relaxed);
            thread.taken.store(false, Ordering::Relaxed);
            thread.state.store(BLOCKED, Ordering::Relaxed);
            thread.stop_asked.store(false, Ordering::Relaxed);
            // Objects it did not use stay allocated until the next collection finds them unmarked; in blocks of kept objects they stay.
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
