//! This process's part of the ledger: the mapping, process number, log, and tables that no thread uses.
//!
//! The state lies on a page that the kernel clears in a forked child (`MADV_WIPEONFORK`). The first operation
//! of any child finds no generation there, and so gets a process number, a log and tables for the child. A
//! child that shares its parent's memory (`vfork`) counts as the parent. Modules and frames that were looked
//! up before a fork stay valid after it; the log names the process that looked them up.
//!
//! Invariants: a generation is a process number plus one; the lock is held briefly, without waiting.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use rustix::io::Errno;
use vellum_stacks::file;
use vellum_sys::{Lock, Span};
use vellum_wire::cost::{ChunkHead, ChunkKind, GRAIN, LEDGER_BYTES, LedgerView, NO_PARENT};
use vellum_wire::log::Entry;

/// Grains of a log after the first.
const LOG_GRAINS: usize = 4;

/// The state of a process, which a forked child must not inherit.
#[repr(C)]
pub(crate) struct State {
    /// The process's generation in the low half, and the epoch in the high half: the number of times that
    /// modules were unmapped. 0 before there is a generation.
    now: AtomicU64,
    pub(crate) lock: Lock,
    process: AtomicU32,
    log: AtomicPtr<ChunkHead>,
    /// Tables without a thread.
    pub(crate) idle: AtomicPtr<ChunkHead>,
}

/// The state before the ledger is mapped: its generation matches no thread.
static DETACHED: State = State {
    now: AtomicU64::new(0),
    lock: Lock::new(),
    process: AtomicU32::new(0),
    log: AtomicPtr::new(null_mut()),
    idle: AtomicPtr::new(null_mut()),
};
static STATE: AtomicPtr<State> = AtomicPtr::new((&raw const DETACHED).cast_mut());
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Held while the ledger is being mapped.
static MAPPING: Lock = Lock::new();
/// The increment for an epoch, in [`State::now`].
pub(crate) const EPOCH: u64 = 1 << 32;
/// The number of times modules were unmapped, including the time before a fork.
static EPOCHS: AtomicU32 = AtomicU32::new(0);
/// Cycles in a microsecond. An operation that never takes less is timed every time.
pub(crate) static CYCLES_PER_US: AtomicU32 = AtomicU32::new(u32::MAX);
pub(crate) static WHOLE_STACKS: AtomicBool = AtomicBool::new(false);
/// Recording is off in this process.
static OFF: AtomicBool = AtomicBool::new(false);
/// The number of operations before the environment could be read.
static EARLY: AtomicU64 = AtomicU64::new(0);
/// The process's number. In a forked child without a number yet: its parent's.
static NUMBER: AtomicU32 = AtomicU32::new(NO_PARENT);
#[inline(always)]
pub(crate) fn state() -> &'static State {
    // SAFETY: `STATE` always points to `DETACHED` or to a page that is never unmapped.
    unsafe { &*STATE.load(Relaxed) }
}

impl State {
    /// The word that allows the fast path: see [`crate::thread::Thread::now`].
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    /// The process's generation; 0 in a process that has not recorded yet.
    pub(crate) fn generation(&self) -> u32 {
        self.now() as u32
    }
}

/// The ledger. May be called only by a thread that has a table.
pub(crate) fn ledger() -> Option<LedgerView> {
    let base = BASE.load(Acquire);
    // SAFETY: `BASE` points to a whole mapped ledger, which is never unmapped.
    (!base.is_null()).then(|| unsafe { LedgerView::open(base) })?
}

/// Begins a new epoch, as an unmapped range may be mapped again.
pub(crate) fn begin_epoch() {
    state().now.fetch_add(EPOCH, Relaxed);
    EPOCHS.fetch_add(1, Relaxed);
}

/// Maps the ledger and assigns this process its part of it, unless that has been done. False if recording is
/// off.
pub(crate) fn is_ready() -> bool {
    !OFF.load(Relaxed) && map() && seat()
}

/// Maps the ledger, unless that has been done. False without a ledger.
fn map() -> bool {
    if !BASE.load(Acquire).is_null() {
        return true;
    }
    // `environ` is null until the C library has been initialized.
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: `environ` is a variable of the C library, which only reads it at this time.
    if unsafe { environ }.is_null() {
        EARLY.fetch_add(1, Relaxed);
        return false;
    }
    MAPPING.lock();
    let mapped = !BASE.load(Relaxed).is_null() || map_now();
    MAPPING.unlock();
    mapped
}

fn map_now() -> bool {
    let Some(path) = vellum_sys::environment::variable(c"VELLUM_LEDGER") else {
        OFF.store(true, Relaxed);
        return false;
    };
    match map_file(path) {
        Ok((base, page)) => {
            // SAFETY: the mapping has a ledger's length and is never unmapped.
            let Some(ledger) = (unsafe { LedgerView::open(base) }) else {
                OFF.store(true, Relaxed);
                say(b"vellum cost: VELLUM_LEDGER is no ledger of this version; this process is not recorded\n");
                return false;
            };
            let head = ledger.head();
            CYCLES_PER_US.store(head.cycles_per_us.load(Relaxed).max(1), Relaxed);
            WHOLE_STACKS.store(head.whole_stacks.load(Relaxed) != 0, Relaxed);
            head.early.fetch_add(EARLY.load(Relaxed), Relaxed);
            STATE.store(page, Release);
            BASE.store(base, Release);
            true
        }
        // The ledger belongs to another user or another view of the file system. This is no error to report.
        Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR | Errno::ROFS) => {
            OFF.store(true, Relaxed);
            false
        }
        Err(_) => {
            OFF.store(true, Relaxed);
            say(b"vellum cost: VELLUM_LEDGER cannot be mapped; this process is not recorded\n");
            false
        }
    }
}

fn map_file(path: &CStr) -> rustix::io::Result<(*mut u8, *mut State)> {
    let (file, bytes) = file::open(path)?;
    if bytes != LEDGER_BYTES {
        return Err(Errno::INVAL);
    }
    Ok((file::map(&file, 0, LEDGER_BYTES)?, file::page_cleared_by_forks()?))
}

/// Takes a number and a log for this process, if it has none. False without room.
fn seat() -> bool {
    let state = state();
    if state.now.load(Acquire) != 0 {
        return true;
    }
    let Some(ledger) = ledger() else { return false };
    state.lock.lock();
    let mut seated = state.now() != 0;
    if !seated {
        let number = ledger.head().processes.fetch_add(1, Relaxed);
        state.process.store(number, Relaxed);
        let parent = NUMBER.load(Relaxed);
        if let Some(log) = claim(1, ChunkKind::Log) {
            begin_log(log, parent);
            state.log.store(log, Relaxed);
            NUMBER.store(number, Relaxed);
            let epoch = u64::from(EPOCHS.load(Relaxed)) * EPOCH;
            state.now.store(u64::from(number + 1) | epoch, Release);
            seated = true;
        } else {
            ledger.head().lost.fetch_add(1, Relaxed);
        }
    }
    state.lock.unlock();
    seated
}

/// Claims a chunk of `grains` grains and makes it one of `kind`, of this process. `None` if the ledger, or
/// the file system below it, is full.
pub(crate) fn claim(grains: usize, kind: ChunkKind) -> Option<*mut ChunkHead> {
    let ledger = ledger()?;
    let index = ledger.head().grains.fetch_add(grains as u64, Relaxed) as usize;
    let memory = ledger.grain(index)?;
    ledger.grain(index + grains - 1)?;
    file::populate(Span::at(memory, grains * GRAIN)).ok()?;
    // SAFETY: this claim's memory of the ledger, and zeros are a valid head.
    let head = unsafe { &*memory.cast::<ChunkHead>() };
    head.grains.store(grains as u32, Relaxed);
    head.process.store(state().process.load(Relaxed), Relaxed);
    head.kind.store(kind as u32, Release);
    Some(memory.cast())
}

fn begin_log(log: *mut ChunkHead, parent: u32) {
    // SAFETY: the chunk was claimed just before, and is never unmapped.
    let head = unsafe { &*log };
    head.count.store(parent, Relaxed);
    head.pid.store(file::own_pid(), Relaxed);
    file::write_name(&head.comm);
}

/// Appends an entry to the process's log. Returns its offset in the file; `None` without room.
pub(crate) fn log(entry: &Entry<'_>) -> Option<u64> {
    let ledger = ledger()?;
    let state = state();
    state.lock.lock();
    let at = log_space(state, entry.words() * 8).map(|memory| {
        // SAFETY: `log_space` returned zeros of the log, of the entry's length; the lock is held.
        unsafe { entry.write(memory.cast()) };
        ledger.offset_of(memory) as u64
    });
    state.lock.unlock();
    at
}

/// Space for `bytes` bytes in the log. The caller holds the lock.
fn log_space(state: &State, bytes: usize) -> Option<*mut u8> {
    let mut log = state.log.load(Relaxed);
    // SAFETY: `seat` has set the log, a chunk of the ledger, which is never unmapped.
    let mut head = unsafe { &*log };
    let room = |head: &ChunkHead| head.grains.load(Relaxed) as usize * GRAIN - size_of::<ChunkHead>();
    if head.used.load(Relaxed) as usize + bytes > room(head) {
        let next = claim(LOG_GRAINS, ChunkKind::Log)?;
        begin_log(next, head.count.load(Relaxed));
        state.log.store(next, Relaxed);
        log = next;
        // SAFETY: the chunk was just claimed, and is never unmapped.
        head = unsafe { &*log };
    }
    let used = head.used.load(Relaxed);
    head.used.store(used + bytes as u32, Relaxed);
    // SAFETY: the check above keeps the space within the chunk.
    Some(unsafe { log.cast::<u8>().add(size_of::<ChunkHead>() + used as usize) })
}

/// Writes a line to standard error.
pub(crate) fn say(line: &[u8]) {
    // SAFETY: `line` has `line.len()` bytes.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// Runs `what` and restores `errno` afterwards.
pub(crate) fn keeping_errno<T>(what: impl FnOnce() -> T) -> T {
    // SAFETY: the thread's own errno.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        let result = what();
        *place = before;
        result
    }
}
