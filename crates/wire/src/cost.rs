//! The layout of the ledger, which `vellum cost` shares with the library it preloads.
//!
//! The ledger is one file in memory, mapped by the command and by every process of the job. Its space is
//! allocated from the front, in **chunks** of whole grains, by one atomic addition, and never freed. The
//! counts of a killed process therefore remain.
//!
//! ```text
//! ┌────────┬──────────────┬─────────┬──────────┬───────────┬─ ─
//! │ Ledger │ Ask × 64     │ Log     │ Table    │ Table ...   Log: one or more a process; Table: a thread
//! └────────┴──────────────┴─────────┴──────────┴───────────┴─ ─
//!  512 B    64 B each      GRAIN × n
//! ```
//!
//! - A **table** is open-addressed. Slot 0 is its [`ChunkHead`]; the others are [`Record`]s, one for each
//!   pair of a place in the program and an operation. Only the thread that owns the table writes to it.
//! - A **log** is a list of entries: mapped modules, stacks too long for a record's one word, and lines of an
//!   interpreted program on those stacks.
//! - An **ask** is a request to the command: does an instruction belong to the user's own source?
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
pub const LEDGER_VERSION: u32 = 4;
/// Bytes of the file, nearly all of them never touched.
pub const LEDGER_BYTES: usize = 1 << 30;
/// The unit in which space is handed out.
pub const GRAIN: usize = 16 << 10;
/// Questions that can be under way at once.
pub const ASKS: usize = 64;
/// Stack frames of one place that are recorded.
pub const FRAMES_MAX: usize = 128;
/// Set in [`Record::place`] when it is a stack's hash and not an address.
pub const STACK_BIT: u64 = 1 << 63;
/// Set in the key of a line of an interpreted program, which no address is.
pub const LINE_BIT: u64 = 1 << 63;
/// Set in [`Record::what`] of a record of asides: timings of the same place and operation that took longer
/// than [`DISTURBED_US`] although the shortest takes less than a microsecond. Its `count` is their number,
/// its `sum` and `squares` are theirs.
pub const ASIDE_BIT: u64 = 1 << 16;
/// Microseconds that no undisturbed operation takes of which others take less than one.
pub const DISTURBED_US: u64 = 20;
/// Asides are disturbances as long as the other timings are at least this many times as many; where they are
/// more, the operation is one that takes long at times.
pub const KEPT_PER_ASIDE_MIN: u64 = 4;
/// The parent of a process that is not a recorded one's fork.
pub const NO_PARENT: u32 = u32::MAX;

/// The head of the file.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ledger {
    /// [`LEDGER_MAGIC`].
    pub magic: AtomicU64,
    /// [`LEDGER_VERSION`].
    pub version: AtomicU32,
    /// 1 if whole stacks are to be recorded, for flame graphs.
    pub whole_stacks: AtomicU32,
    /// The clock's cycles in a microsecond, roughly: what decides which operations are long.
    pub cycles_per_us: AtomicU32,
    /// 1 when nobody answers questions any more.
    pub closed: AtomicU32,
    /// Grains handed out.
    pub grains: AtomicU64,
    /// Processes (and programs executed in their place) so far.
    pub processes: AtomicU32,
    /// Raised with every question.
    pub bell: AtomicU32,
    /// Questions that nobody answered in time.
    pub unanswered: AtomicU32,
    /// Whether [`Ledger::own`] is being measured (1) or there (2).
    pub own_state: AtomicU32,
    /// Operations before a process could be recorded: the loader's own.
    pub early: AtomicU64,
    /// Operations that found no room to be recorded in.
    pub lost: AtomicU64,
    /// Nanoseconds of processor time that went into what recording does rarely: tables, looking up, walking
    /// new stacks, asking.
    pub spent: AtomicU64,
    /// What recording costs.
    pub own: OwnCost,
    reserved: [u64; 43],
}

/// What recording costs, in cycles, measured in the first recorded process.
#[repr(C)]
#[derive(Debug)]
pub struct OwnCost {
    /// How many empty timings.
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

/// One question.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ask {
    /// An [`AskState`].
    pub state: AtomicU32,
    /// An [`Answer`].
    pub answer: AtomicU32,
    /// The asking process, in its own namespace.
    pub pid: AtomicU32,
    pad: u32,
    /// Where in the file the module's log entry begins.
    pub module_at: AtomicU64,
    /// The instruction, as an address in the module's file.
    pub address: AtomicU64,
    rest: [u64; 4],
}

/// Who has to act on an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AskState {
    /// Nobody: it is free.
    Free = 0,
    /// A process is filling it in.
    Taken = 1,
    /// The command is to answer.
    Asked = 2,
    /// The process is to read the answer.
    Answered = 3,
}

/// What the command knows about an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Answer {
    /// Nothing: there was nobody to ask.
    None = 0,
    /// The whole module is a library's: look at the caller.
    WalkModule = 1,
    /// The whole module is as far as can be walked: stop here.
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

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ChunkKind {
    /// Nothing yet.
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
    /// Log: the number of the process it was forked from, or [`NO_PARENT`]. Table: records in use.
    pub count: AtomicU32,
    /// Log: the process id in its own namespace.
    pub pid: AtomicU32,
    /// Log: bytes of entries in use.
    pub used: AtomicU32,
    /// Table without a thread: the address of the next such table, in the process that has it.
    pub next: AtomicU64,
    /// Log: the command's name, NUL-padded.
    pub comm: [AtomicU64; 2],
    pad: [u64; 2],
}

/// One place and operation, counted and timed. Times are in cycles of the time-stamp counter.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Record {
    /// A return address, or [`STACK_BIT`] and a stack's hash.
    pub place: AtomicU64,
    /// The operation in the low 16 bits, perhaps [`ASIDE_BIT`], the epoch (how often modules were unmapped
    /// before) in the high 32.
    pub what: AtomicU64,
    /// How often it happened: exact.
    pub count: AtomicU64,
    /// A [`Due`].
    pub due: AtomicU64,
    /// Bytes that the operations asked for, all together: exact. 0 where they ask for none or do not say.
    pub bytes: AtomicU64,
    /// Sum of times, each taken as often as operations it stands for; asides ([`ASIDE_BIT`]) left out.
    pub sum: AtomicU64,
    /// Sum of their squares, likewise, as the bits of an `f32` (low 32 bits); how often it was timed, asides
    /// left out (high 32 bits).
    pub squares_timed: AtomicU64,
    /// The smallest (low 32 bits) and the largest (high 32 bits), asides among them, each as the bits of an
    /// `f32`. 0 before the first.
    pub extremes: AtomicU64,
}

/// When an operation is timed next, as [`Record::due`] has it: the count at which it is (high 48 bits), and
/// how many operations that timing stands for (low 16 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due(pub u64);

/// Bits of a [`Due`] that say how many operations the next timing stands for.
const GAP_BITS: u32 = 16;

impl Due {
    /// At count `at`, when the last timing that was kept was at `last`. Longer gaps than there is room for
    /// are taken for the longest.
    #[inline]
    pub const fn new(at: u64, last: u64) -> Due {
        let (gap, max) = (at.wrapping_sub(last), (1 << GAP_BITS) - 1);
        Due(at << GAP_BITS | if gap < max { gap } else { max })
    }

    /// The count at which it is.
    #[inline(always)]
    pub const fn at(self) -> u64 {
        self.0 >> GAP_BITS
    }

    /// The count at the last timing that was kept; 0 before the first.
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

/// The kinds of a log's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EntryKind {
    /// A module that is mapped: words `epoch, start, end, bias`, then its path.
    Module = 1,
    /// A stack: words `hash, epoch`, then the return addresses, innermost first, then the keys of lines of an
    /// interpreted program ([`LINE_BIT`]), innermost first.
    Stack = 2,
    /// A line of an interpreted program: words `key, line, bytes of the function's name`, then that name,
    /// then the file's.
    Line = 3,
}

/// The head of a log's entry; padded to [`ENTRY_ALIGN`].
#[repr(C)]
#[derive(Debug)]
pub struct EntryHead {
    /// An [`EntryKind`], written last.
    pub kind: AtomicU32,
    /// Bytes that follow.
    pub bytes: AtomicU32,
}

/// The alignment of entries.
pub const ENTRY_ALIGN: usize = 8;
/// Words before the path of a module's entry.
pub const MODULE_WORDS: usize = 4;
/// Words before the addresses of a stack's entry.
pub const STACK_WORDS: usize = 2;
/// Words before the names of a line's entry.
pub const LINE_WORDS: usize = 3;

/// Where the asks begin.
pub const ASKS_AT: usize = size_of::<Ledger>();
/// Where the chunks begin.
pub const CHUNKS_AT: usize = GRAIN;
/// Grains there are to be had. One more is there, so that there is something behind each.
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

// SAFETY: all that is reached through the view is atomic, or constant once announced by an atomic.
unsafe impl Send for LedgerView {}
// SAFETY: as above.
unsafe impl Sync for LedgerView {}

impl LedgerView {
    /// Views the ledger mapped at `base`, or `None` if it is not one this version reads.
    ///
    /// # Safety
    /// `base` points to [`LEDGER_BYTES`] bytes of readable and writable memory, page-aligned, that are never
    /// unmapped while a view or something reached through one is used.
    pub unsafe fn open(base: *mut u8) -> Option<LedgerView> {
        let view = LedgerView { base };
        let head = view.head();
        (head.magic.load(Acquire) == LEDGER_MAGIC && head.version.load(Acquire) == LEDGER_VERSION)
            .then_some(view)
    }

    /// Writes the head of a fresh, zeroed ledger and views it.
    ///
    /// # Safety
    /// As for [`LedgerView::open`], and the memory is zeroed.
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
        // SAFETY: the head lies at the base, any bit pattern is a valid one, and the mapping stays.
        unsafe { &*self.base.cast::<Ledger>() }
    }

    /// The questions.
    pub fn asks(&self) -> &'static [Ask; ASKS] {
        // SAFETY: they follow the head, any bit pattern is a valid one, and the mapping stays.
        unsafe { &*self.base.add(ASKS_AT).cast::<[Ask; ASKS]>() }
    }

    /// The memory of grain `index`, or `None` beyond the end.
    pub fn grain(&self, index: usize) -> Option<*mut u8> {
        // SAFETY: within the mapping, by the test.
        (index < GRAINS).then(|| unsafe { self.base.add(CHUNKS_AT + index * GRAIN) })
    }

    /// The memory at `offset` of the file, if `bytes` bytes are there.
    pub fn at(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= LEDGER_BYTES);
        // SAFETY: within the mapping, by the test.
        fits.then(|| unsafe { self.base.add(offset) })
    }

    /// The offset in the file of memory that lies in it.
    pub fn offset_of(&self, memory: *const u8) -> usize {
        memory as usize - self.base as usize
    }
}
