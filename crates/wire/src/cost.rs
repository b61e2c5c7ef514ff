//! The layout of the ledger, which `vellum cost` shares with the library it preloads.
//!
//! The ledger is one file in memory, mapped by the command and by every process of the job. Its space is
//! allocated from the front, in **chunks** of whole grains ([`GRAIN`] bytes), by one atomic addition, and
//! never freed. The counts of a killed process therefore remain.
//!
//! ```text
//! ┌────────┬──────────────┬─────────┬──────────┬───────────┬─ ─
//! │ Ledger │ Ask × 64     │ Log     │ Table    │ Table ...   Log: one or more for each process
//! └────────┴──────────────┴─────────┴──────────┴───────────┴─ ─    Table: one or more for each thread
//!  512 B    64 B each      GRAIN × n
//! ```
//!
//! - A **table** is an open-addressed hash table. Slot 0 is its [`ChunkHead`]; the others are [`Record`]s,
//!   one for each pair of a place in the program and an operation. Only the table's thread writes to it.
//! - A **log** is a list of entries ([`crate::log`]): mapped modules, stacks too long for a record's one
//!   word, and lines of an interpreted program on those stacks.
//! - An **ask** is a query to the command: does an instruction belong to the user's own source?
//!
//! Invariants:
//! - all fields are atomics or are written before the word that announces them;
//! - a chunk whose kind is [`ChunkKind::Unwritten`] reads as one grain of zeros;
//! - a record with `place == 0` is empty;
//! - counts only grow.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire};

/// The environment variable that holds the ledger's path.
pub const LEDGER_ENV: &str = "VELLUM_LEDGER";
/// The first eight bytes of a ledger.
pub const LEDGER_MAGIC: u64 = u64::from_le_bytes(*b"VELLUM\0C");
/// The layout's version.
pub const LEDGER_VERSION: u32 = 5;
/// The size of the file in bytes; nearly all of it stays untouched.
pub const LEDGER_BYTES: usize = 1 << 30;
/// The unit of allocation.
pub const GRAIN: usize = 16 << 10;
/// The most requests at a time.
pub const ASKS: usize = 64;
/// Set in [`Record::place`] if it is a stack's hash, not an address.
pub const STACK_BIT: u64 = 1 << 63;
/// Set in [`Record::what`] of a record of asides: timings longer than [`DISTURBED_US`] of a place and
/// operation whose shortest timing is less than a microsecond. Its `count`, `sum` and `squares` are those of
/// the asides.
pub const ASIDE_BIT: u64 = 1 << 16;
/// The limit for asides, in microseconds. Operations that can take less than one are shorter if undisturbed.
pub const DISTURBED_US: u64 = 20;
/// Asides count as disturbances if there are at least this many other timings for each. Otherwise the
/// operation itself is long at times.
pub const KEPT_PER_ASIDE_MIN: u64 = 4;
/// The parent of a process that was not forked by a recorded one.
pub const NO_PARENT: u32 = u32::MAX;

/// The head of the file.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ledger {
    /// [`LEDGER_MAGIC`].
    pub magic: AtomicU64,
    /// [`LEDGER_VERSION`].
    pub version: AtomicU32,
    /// 1 if whole stacks are recorded, for flame graphs.
    pub whole_stacks: AtomicU32,
    /// The approximate cycles of the clock in a microsecond; this decides which operations are long.
    pub cycles_per_us: AtomicU32,
    /// 1 if the command no longer answers requests.
    pub closed: AtomicU32,
    /// Grains allocated.
    pub grains: AtomicU64,
    /// Processes so far (including programs executed in place of others).
    pub processes: AtomicU32,
    /// Raised with every request.
    pub bell: AtomicU32,
    /// Requests without an answer in time.
    pub unanswered: AtomicU32,
    /// 1 while [`Ledger::own`] is being measured, 2 when it is complete.
    pub own_state: AtomicU32,
    /// Operations before a process could be recorded, made by the loader.
    pub early: AtomicU64,
    /// Operations that were not recorded for lack of space.
    pub lost: AtomicU64,
    /// Nanoseconds of processor time for rare work: tables, lookups, walks of new stacks, requests.
    pub spent: AtomicU64,
    /// The cost of recording.
    pub own: OwnCost,
    reserved: [u64; 43],
}

/// The cost of recording, in cycles, measured in the first recorded process.
#[repr(C)]
#[derive(Debug)]
pub struct OwnCost {
    /// The number of empty timings.
    pub n: AtomicU64,
    /// Their mean, as the bits of an `f64`.
    pub mean: AtomicU64,
    /// Their smallest, subtracted from each timed operation.
    pub min: AtomicU64,
    /// Their largest.
    pub max: AtomicU64,
    /// Their standard deviation, as the bits of an `f64`.
    pub std: AtomicU64,
    /// Cycles to count one operation without timing it, as the bits of an `f64`.
    pub count: AtomicU64,
    /// Cycles to count and time one, as the bits of an `f64`.
    pub timed: AtomicU64,
}

/// One query to the command.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ask {
    /// An [`AskState`].
    pub state: AtomicU32,
    /// An [`Answer`].
    pub answer: AtomicU32,
    /// The id of the requesting process, in its own namespace.
    pub pid: AtomicU32,
    pad: u32,
    /// The offset in the file of the module's log entry.
    pub module_at: AtomicU64,
    /// The instruction, as an address in the module's file.
    pub address: AtomicU64,
    rest: [u64; 4],
}

/// The state of an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AskState {
    /// Free.
    Free = 0,
    /// A process is filling it in.
    Taken = 1,
    /// The command must answer.
    Asked = 2,
    /// The process must read the answer.
    Answered = 3,
}

/// The command's answer on an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Answer {
    /// No answer: the command is not running.
    None = 0,
    /// The whole module is a library's: continue with the caller.
    WalkModule = 1,
    /// The whole module is the end of a walk: stop here.
    StopModule = 2,
    /// The instruction belongs to a library's code in a module of the user's (an instantiated template).
    Walk = 3,
    /// The instruction belongs to the user's source.
    Stop = 4,
}

impl Answer {
    /// The answer stored as `value`.
    pub const fn from_u32(value: u32) -> Answer {
        match value {
            1 => Answer::WalkModule,
            2 => Answer::StopModule,
            3 => Answer::Walk,
            4 => Answer::Stop,
            _ => Answer::None,
        }
    }
}

/// The content of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ChunkKind {
    /// Not written yet.
    Unwritten = 0,
    /// A thread's records.
    Table = 1,
    /// A process's log.
    Log = 2,
}

/// The head of a chunk.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ChunkHead {
    /// A [`ChunkKind`], written last.
    pub kind: AtomicU32,
    /// Grains of the chunk.
    pub grains: AtomicU32,
    /// The process's number in this file.
    pub process: AtomicU32,
    /// Log: the number of the parent process that forked it, or [`NO_PARENT`]. Table: records in use.
    pub count: AtomicU32,
    /// Log: the process id in its own namespace.
    pub pid: AtomicU32,
    /// Log: bytes of entries in use.
    pub used: AtomicU32,
    /// Table without a thread: the address of the next such table, in its process's memory.
    pub next: AtomicU64,
    /// Log: the command's name, NUL-padded.
    pub comm: [AtomicU64; 2],
    pad: [u64; 2],
}

/// The count and times of one place and operation. Times are in cycles of the time-stamp counter.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Record {
    /// A return address, or [`STACK_BIT`] and a stack's hash.
    pub place: AtomicU64,
    /// The operation in the low 16 bits, optionally [`ASIDE_BIT`]. The epoch (the number of earlier
    /// unmappings of modules) is in the high 32 bits.
    pub what: AtomicU64,
    /// The exact number of operations.
    pub count: AtomicU64,
    /// A [`Due`].
    pub due: AtomicU64,
    /// The exact number of bytes that the operations requested; 0 if they request none or do not give a size.
    pub bytes: AtomicU64,
    /// The sum of times, each multiplied by the number of operations it stands for, without asides
    /// ([`ASIDE_BIT`]).
    pub sum: AtomicU64,
    /// The sum of their squares, weighted in the same way, as the bits of an `f32` (low 32 bits). The number
    /// of timings without asides is in the high 32 bits.
    pub squares_timed: AtomicU64,
    /// The smallest (low 32 bits) and the largest (high 32 bits) time, including asides, each as the bits of
    /// an `f32`. 0 before the first.
    pub extremes: AtomicU64,
}

/// The next timing of an operation, stored in [`Record::due`]: the count at which it takes place (high 48
/// bits), and the number of operations that it stands for (low 16 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due(pub u64);

/// The bits of a [`Due`] with the number of operations that the next timing stands for.
const GAP_BITS: u32 = 16;

impl Due {
    /// The timing at count `at`, if the last kept timing was at `last`. Gaps too large for the bits are
    /// stored as the largest.
    #[inline]
    pub const fn new(at: u64, last: u64) -> Due {
        let (gap, max) = (at.wrapping_sub(last), (1 << GAP_BITS) - 1);
        Due(at << GAP_BITS | if gap < max { gap } else { max })
    }

    /// The count of the next timing.
    #[inline(always)]
    pub const fn at(self) -> u64 {
        self.0 >> GAP_BITS
    }

    /// The count of the last kept timing; 0 before the first.
    #[inline]
    pub const fn last(self) -> u64 {
        self.at().saturating_sub(self.0 & ((1 << GAP_BITS) - 1))
    }
}

/// The low and the high half of a word.
#[inline]
pub const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The word of these halves.
#[inline]
pub const fn joined(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Words of a stack's entry before its frames, which are return addresses: the head and the hash.
pub const STACK_WORDS: usize = 2;

/// The offset of the requests.
pub const ASKS_AT: usize = size_of::<Ledger>();
/// The offset of the chunks.
pub const CHUNKS_AT: usize = GRAIN;
/// The number of usable grains. One more exists, so that memory follows each.
pub const GRAINS: usize = (LEDGER_BYTES - CHUNKS_AT) / GRAIN - 1;

const _: () = assert!(size_of::<Ledger>() == 512);
const _: () = assert!(size_of::<Ask>() == 64);
const _: () = assert!(ASKS_AT + ASKS * size_of::<Ask>() <= CHUNKS_AT);
const _: () = assert!(size_of::<Record>() == 64 && size_of::<ChunkHead>() == size_of::<Record>());
const _: () = assert!((GRAIN / size_of::<Record>()).is_power_of_two());

/// A view of a mapped ledger.
#[derive(Clone, Copy, Debug)]
pub struct LedgerView {
    base: *mut u8,
}

// SAFETY: all memory reached through the view is atomic, or constant after an atomic announced it.
unsafe impl Send for LedgerView {}
// SAFETY: all memory reached through the view is atomic, or constant after an atomic announced it.
unsafe impl Sync for LedgerView {}

impl LedgerView {
    /// Views the ledger mapped at `base`, or `None` if this version cannot read it.
    ///
    /// # Safety
    /// `base` points to [`LEDGER_BYTES`] bytes of readable and writable memory, page-aligned, that stay
    /// mapped while a view or a reference from it is in use.
    pub unsafe fn open(base: *mut u8) -> Option<LedgerView> {
        let view = LedgerView { base };
        let head = view.head();
        (head.magic.load(Acquire) == LEDGER_MAGIC && head.version.load(Acquire) == LEDGER_VERSION)
            .then_some(view)
    }

    /// Writes the head of a fresh, zeroed ledger and views it.
    ///
    /// # Safety
    /// The conditions of [`LedgerView::open`], and the memory is zeroed.
    pub unsafe fn create(base: *mut u8) -> LedgerView {
        let view = LedgerView { base };
        use core::sync::atomic::Ordering::{Relaxed, Release};
        view.head().version.store(LEDGER_VERSION, Relaxed);
        view.head().magic.store(LEDGER_MAGIC, Release);
        view
    }

    /// The head.
    #[inline]
    pub fn head(&self) -> &'static Ledger {
        // SAFETY: the head lies at the base; any bit pattern is valid; by `open` the mapping stays.
        unsafe { &*self.base.cast::<Ledger>() }
    }

    /// The requests.
    pub fn asks(&self) -> &'static [Ask; ASKS] {
        // SAFETY: the requests follow the head; any bit pattern is valid; by `open` the mapping stays.
        unsafe { &*self.base.add(ASKS_AT).cast::<[Ask; ASKS]>() }
    }

    /// The memory of grain `index`, or `None` beyond the end.
    pub fn grain(&self, index: usize) -> Option<*mut u8> {
        // SAFETY: `index` is below GRAINS, so the offset lies within the mapping.
        (index < GRAINS).then(|| unsafe { self.base.add(CHUNKS_AT + index * GRAIN) })
    }

    /// The memory at `offset` of the file, if `bytes` bytes are there.
    pub fn at(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= LEDGER_BYTES);
        // SAFETY: `offset + bytes` is at most LEDGER_BYTES, so the offset lies within the mapping.
        fits.then(|| unsafe { self.base.add(offset) })
    }

    /// The offset in the file of `memory`, which lies in it.
    pub fn offset_of(&self, memory: *const u8) -> usize {
        memory as usize - self.base as usize
    }
}
