//! This process's part of the ledger: the mapping, its number, its log, and tables without a thread.
//!
//! The state of a process lies on a page that the kernel clears in a forked child (`MADV_WIPEONFORK`). The
//! first operation of any child finds no generation there, and so gets a number, a log and tables for the
//! child. A child that shares its parent's memory (`vfork`) counts as the parent. Modules and frames that
//! were looked up before a fork stay valid after it; the log names the process that looked them up.
//!
//! Invariants: a generation is a process's number plus one; the lock is held briefly, by code that never
//! waits.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use vellum_sys::Lock;
use vellum_wire::cost::{
    ChunkHead, ChunkKind, ENTRY_ALIGN, EntryHead, EntryKind, GRAIN, LEDGER_BYTES, LedgerView, NO_PARENT,
};

/// Grains of a log after the first.
const LOG_GRAINS: usize = 4;
/// `MADV_POPULATE_WRITE`: Linux 5.14.
const POPULATE_WRITE: i32 = 23;
const WIPE_ON_FORK: i32 = 18;

/// What a forked child must not inherit.
#[repr(C)]
pub(crate) struct State {
    /// The process's generation, and in the high half the epoch: how often modules were unmapped. 0 before
    /// there is a generation.
    now: AtomicU64,
    pub(crate) lock: Lock,
    process: AtomicU32,
    log: AtomicPtr<ChunkHead>,
    /// Tables that no thread has.
    pub(crate) idle: AtomicPtr<ChunkHead>,
    /// Held by who adds a module.
    pub(crate) adding: Lock,
}

const _: () = assert!(size_of::<State>() <= vellum_sys::PAGE);

/// The state before there is one: its generation fits no thread.
static DETACHED: State = State {
    now: AtomicU64::new(0),
    lock: Lock::new(),
    process: AtomicU32::new(0),
    log: AtomicPtr::new(null_mut()),
    idle: AtomicPtr::new(null_mut()),
    adding: Lock::new(),
};
static STATE: AtomicPtr<State> = AtomicPtr::new((&raw const DETACHED).cast_mut());
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Held while the ledger is being mapped.
static MAPPING: Lock = Lock::new();
/// One epoch, in [`State::now`].
pub(crate) const EPOCH: u64 = 1 << 32;
/// How often modules were unmapped, also before a fork.
static EPOCHS: AtomicU32 = AtomicU32::new(0);
/// Cycles in a microsecond; operations that never take less are all timed.
pub(crate) static CYCLES_PER_US: AtomicU32 = AtomicU32::new(u32::MAX);
pub(crate) static WHOLE_STACKS: AtomicBool = AtomicBool::new(false);
/// Nothing is to be recorded here.
static OFF: AtomicBool = AtomicBool::new(false);
/// Operations before the environment could be read.
static EARLY: AtomicU64 = AtomicU64::new(0);
/// The process's number, or, in a forked child until it has one, its parent's.
static NUMBER: AtomicU32 = AtomicU32::new(NO_PARENT);
#[inline(always)]
pub(crate) fn state() -> &'static State {
    // SAFETY: always a State that stays.
    unsafe { &*STATE.load(Relaxed) }
}

impl State {
    /// The word that opens the usual way: see [`crate::thread::Thread::now`].
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    /// The process's generation; 0 in a process that has not recorded yet.
    pub(crate) fn generation(&self) -> u32 {
        self.now() as u32
    }
}

/// The ledger. Only to be asked for by a thread that has a table.
pub(crate) fn ledger() -> Option<LedgerView> {
    let base = BASE.load(Acquire);
    // SAFETY: a whole ledger, never unmapped.
    (!base.is_null()).then(|| unsafe { LedgerView::open(base) })?
}

/// Begins a new epoch: an unmapped range may be mapped again.
pub(crate) fn begin_epoch() {
    state().now.fetch_add(EPOCH, Relaxed);
    EPOCHS.fetch_add(1, Relaxed);
}

/// Maps the ledger and gives this process its part of it, if that has not been done. False if nothing is to
/// be, or can be, recorded.
pub(crate) fn is_ready() -> bool {
    !OFF.load(Relaxed) && map() && seat()
}

/// Maps the ledger, if that has not been done. False if there is none.
fn map() -> bool {
    if !BASE.load(Acquire).is_null() {
        return true;
    }
    // Before the C library has been set up there is no environment to ask.
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: reads the C library's variable.
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
            // SAFETY: the file is a ledger's length and stays mapped.
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
        // Another user's, or in another view of the file system: nobody's mistake, and nothing to be said
        // among the program's errors.
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
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    if rustix::fs::fstat(&file)?.st_size as usize != LEDGER_BYTES {
        return Err(rustix::io::Errno::INVAL);
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: new mappings wherever the kernel likes.
    let (base, page) = unsafe {
        let base = rustix::mm::mmap(null_mut(), LEDGER_BYTES, access, MapFlags::SHARED, &file, 0)?;
        let page = rustix::mm::mmap_anonymous(null_mut(), vellum_sys::PAGE, access, MapFlags::PRIVATE)?;
        (base, page)
    };
    // Kernels older than 4.14 leave the page to a child as it is, which then counts as its parent.
    // SAFETY: the page just mapped.
    let _ = unsafe { advise(page.cast(), vellum_sys::PAGE, WIPE_ON_FORK) };
    Ok((base.cast(), page.cast()))
}

/// Takes a number and a log for this process, if it has none. False if there is no room.
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

/// Claims a chunk of `grains` grains and makes it one of `kind`, of this process. `None` when the ledger, or
/// the memory it lies in, is full.
pub(crate) fn claim(grains: usize, kind: ChunkKind) -> Option<*mut ChunkHead> {
    let ledger = ledger()?;
    let index = ledger.head().grains.fetch_add(grains as u64, Relaxed) as usize;
    let memory = ledger.grain(index)?;
    ledger.grain(index + grains - 1)?;
    // Touching a page for which the file system has no room would kill the program: this fails instead.
    // SAFETY: memory of the ledger that is this claim's.
    match unsafe { advise(memory, grains * GRAIN, POPULATE_WRITE) } {
        Ok(()) | Err(rustix::io::Errno::INVAL) => {}
        Err(_) => return None,
    }
    // SAFETY: as above; zeros are a valid head.
    let head = unsafe { &*memory.cast::<ChunkHead>() };
    head.grains.store(grains as u32, Relaxed);
    head.process.store(state().process.load(Relaxed), Relaxed);
    head.kind.store(kind as u32, Release);
    Some(memory.cast())
}

/// # Safety
/// The memory is the ledger's or the state's.
unsafe fn advise(memory: *mut u8, bytes: usize, advice: i32) -> rustix::io::Result<()> {
    // SAFETY: by this function's condition.
    unsafe {
        vellum_sys::raw::syscall(libc::SYS_madvise, [memory as usize, bytes, advice as usize, 0, 0, 0])
            .map(|_| ())
    }
}

fn begin_log(log: *mut ChunkHead, parent: u32) {
    // SAFETY: a chunk just claimed.
    let head = unsafe { &*log };
    head.count.store(parent, Relaxed);
    // SAFETY: plain call.
    head.pid.store(unsafe { libc::getpid() } as u32, Relaxed);
    let mut name = [0u64; 2];
    // SAFETY: the kernel writes at most 16 bytes, with a terminating zero.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    for (word, part) in head.comm.iter().zip(name) {
        word.store(part, Relaxed);
    }
}

/// Adds an entry to the process's log: words, then text. The offset of its head in the file, or `None`
/// without room.
pub(crate) fn log(kind: EntryKind, words: &[u64], text: &[u8]) -> Option<u64> {
    let ledger = ledger()?;
    let state = state();
    let bytes = size_of_val(words) + text.len();
    let whole = (size_of::<EntryHead>() + bytes).next_multiple_of(ENTRY_ALIGN);
    state.lock.lock();
    let at = log_space(state, whole).map(|memory| {
        // SAFETY: `whole` bytes of the log that nobody else uses.
        unsafe {
            let body = memory.add(size_of::<EntryHead>());
            body.cast::<u64>().copy_from_nonoverlapping(words.as_ptr(), words.len());
            body.add(size_of_val(words)).copy_from_nonoverlapping(text.as_ptr(), text.len());
            let head = &*memory.cast::<EntryHead>();
            head.bytes.store(bytes as u32, Relaxed);
            head.kind.store(kind as u32, Release);
        }
        ledger.offset_of(memory) as u64
    });
    state.lock.unlock();
    at
}

/// Room for `bytes` bytes in the log. The lock is held.
fn log_space(state: &State, bytes: usize) -> Option<*mut u8> {
    let mut log = state.log.load(Relaxed);
    // SAFETY: the log of a seated process.
    let mut head = unsafe { &*log };
    let room = |head: &ChunkHead| head.grains.load(Relaxed) as usize * GRAIN - size_of::<ChunkHead>();
    if head.used.load(Relaxed) as usize + bytes > room(head) {
        let next = claim(LOG_GRAINS, ChunkKind::Log)?;
        begin_log(next, head.count.load(Relaxed));
        state.log.store(next, Relaxed);
        log = next;
        // SAFETY: just claimed.
        head = unsafe { &*log };
    }
    let used = head.used.load(Relaxed);
    head.used.store(used + bytes as u32, Relaxed);
    // SAFETY: within the chunk, by the test.
    Some(unsafe { log.cast::<u8>().add(size_of::<ChunkHead>() + used as usize) })
}

/// Writes a line to standard error.
pub(crate) fn say(line: &[u8]) {
    // SAFETY: writes bytes that are there.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

/// `errno` put back as it was around something that may change it.
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
