//! Creates, maps and reads the ledger: the file in which the recorder counts and times operations.
//!
//! The file is in a private directory that is removed after the run. It is sparse: unused parts take no
//! memory.
//!
//! Invariant: every length is checked against the file, and a log entry's length against its chunk, as a
//! program may have written anywhere.

use crate::log::{self, MappedModule};
use crate::script::ScriptLine;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use vellum_process::library;
use vellum_wire::cost::{
    ASIDE_BIT, ChunkHead, ChunkKind, Due, GRAIN, GRAINS, LEDGER_BYTES, LedgerView, NO_PARENT, Record,
    STACK_WORDS, halves,
};
use vellum_wire::operation::Operation;

/// A ledger in a file, mapped here.
#[derive(Debug)]
pub struct LedgerFile {
    path: PathBuf,
    base: usize,
    view: LedgerView,
}

/// The records of a process, or of a program that it executed.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The process id in its own namespace.
    pub pid: u32,
    /// The command's name when it began to record.
    pub name: String,
    /// The number of its parent, if that recorded too.
    pub parent: Option<u32>,
    /// Its modules, in the order in which they were first seen.
    pub modules: Vec<MappedModule>,
    /// Its stacks by their hashes: return addresses, innermost first, then the keys of lines.
    pub stacks: HashMap<u64, Vec<u64>>,
    /// Lines of interpreted programs by their keys.
    pub lines: HashMap<u64, Arc<ScriptLine>>,
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The number of its process.
    pub process: u32,
    /// A return address or a stack's hash.
    pub place: u64,
    /// The epoch of the addresses.
    pub epoch: u32,
    /// The operation.
    pub operation: Operation,
    /// The number of operations.
    pub count: u64,
    /// The sum of requested bytes.
    pub bytes: u64,
    /// The times of these operations.
    pub times: Times,
}

/// Times of operations, in cycles, each weighted by the number of operations it represents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The number of timed operations.
    pub timed: u64,
    /// The number of operations that they represent.
    pub covered: f64,
    /// The weighted sum of times.
    pub sum: f64,
    /// The weighted sum of their squares.
    pub squares: f64,
    /// The smallest time.
    pub min: f64,
    /// The largest time, including those of `asides`.
    pub max: f64,
    /// Long timings beside timings below a microsecond. The fields above exclude them, except `min` and
    /// `max`.
    pub asides: Asides,
}

/// Long timings of an operation that also has short ones: see [`ASIDE_BIT`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asides {
    /// The number of timings.
    pub count: u64,
    /// The sum of their times, in cycles.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
}

impl Times {
    /// The number of timed operations, including `asides`.
    pub fn all(&self) -> u64 {
        self.timed.saturating_add(self.asides.count)
    }
}

impl Asides {
    /// Adds `others`.
    pub fn add(&mut self, others: Asides) {
        self.count = self.count.saturating_add(others.count);
        self.sum += others.sum;
        self.squares += others.squares;
    }
}

impl LedgerFile {
    /// Creates a ledger in `directory`, which should be private.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn create(directory: &Path, whole_stacks: bool, cycles_per_us: u32) -> io::Result<LedgerFile> {
        let path = directory.join("ledger");
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        file.set_len(LEDGER_BYTES as u64)?;
        // SAFETY: a new mapping at an address of the kernel's choice; the file is as long as the mapping.
        let base = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), LEDGER_BYTES, access, MapFlags::SHARED, &file, 0)?
        };
        // SAFETY: page-aligned, zeroed (a new file), and unmapped only when `self` is dropped.
        let view = unsafe { LedgerView::create(base.cast()) };
        view.head().whole_stacks.store(u32::from(whole_stacks), Relaxed);
        view.head().cycles_per_us.store(cycles_per_us, Relaxed);
        Ok(LedgerFile { path, base: base as usize, view })
    }

    /// The path that other processes open.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The mapping. Must not be used after `self` is dropped.
    pub fn view(&self) -> LedgerView {
        self.view
    }

    /// [`library::preloadable`], with a link beside the ledger if one is needed.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub fn preloadable(&self, library: &Path) -> io::Result<PathBuf> {
        library::preloadable(library, self.path.parent().unwrap_or(Path::new("/")))
    }

    /// The module whose log entry begins at `offset`.
    pub fn module_at(&self, offset: u64) -> Option<MappedModule> {
        let offset = usize::try_from(offset).ok().filter(|offset| offset.is_multiple_of(log::WORD))?;
        let words =
            self.words(offset, log::MODULE_WORDS_MAX.min(LEDGER_BYTES.checked_sub(offset)? / log::WORD))?;
        match log::entries(&words, STACK_WORDS).next()? {
            log::Entry::Module(module) => Some(module),
            _ => None,
        }
    }

    /// A copy of `count` words from `offset` on, which is aligned. The words of an entry are complete if its
    /// head is there.
    fn words(&self, offset: usize, count: usize) -> Option<Vec<u64>> {
        let first = self.view.at(offset, count * log::WORD)?.cast::<AtomicU64>();
        // SAFETY: `at` checked that the words are within the mapping, and any bit pattern is a valid word.
        Some((0..count).map(|at| unsafe { &*first.add(at) }.load(Acquire)).collect())
    }

    /// Everything recorded so far: processes by number, and all records.
    pub fn read(&self) -> (HashMap<u32, Recorded>, Vec<Entry>) {
        let mut processes = HashMap::new();
        let (mut entries, mut asides) = (Vec::new(), HashMap::new());
        let claimed = (self.view.head().grains.load(Acquire) as usize).min(GRAINS);
        let mut index = 0;
        while index < claimed {
            let Some(memory) = self.view.grain(index) else { break };
            // SAFETY: within the mapping, aligned; any bit pattern is a valid head.
            let head = unsafe { &*memory.cast::<ChunkHead>() };
            let kind = head.kind.load(Acquire);
            let grains = (head.grains.load(Relaxed) as usize).clamp(1, claimed - index);
            if kind == ChunkKind::Unwritten as u32 {
                index += 1;
                continue;
            }
            if kind == ChunkKind::Table as u32 {
                let slots = grains * (GRAIN / size_of::<Record>());
                // SAFETY: `grains` grains are within the mapping; any bit pattern is a valid record.
                let records = unsafe { std::slice::from_raw_parts(memory.cast::<Record>(), slots) };
                let process = head.process.load(Relaxed);
                for record in &records[1..] {
                    match entry(process, record) {
                        Some((entry, false)) => entries.push(entry),
                        Some((aside, true)) => {
                            asides.entry(key(&aside)).or_insert_with(Asides::default).add(aside.times.asides);
                        }
                        None => {}
                    }
                }
            } else if kind == ChunkKind::Log as u32 {
                self.read_log(head, memory, grains, processes.entry(head.process.load(Relaxed)).or_default());
            }
            index += grains;
        }
        join_asides(&mut entries, asides);
        (processes, entries)
    }

    fn read_log(&self, head: &ChunkHead, memory: *const u8, grains: usize, into: &mut Recorded) {
        into.pid = head.pid.load(Relaxed);
        into.name = log::name(&head.comm);
        let parent = head.count.load(Relaxed);
        into.parent = (parent != NO_PARENT).then_some(parent);
        let start = self.view.offset_of(memory) + size_of::<ChunkHead>();
        let used = (head.used.load(Acquire) as usize).min(grains * GRAIN - size_of::<ChunkHead>());
        let words = self.words(start, used / log::WORD).unwrap_or_default();
        for entry in log::entries(&words, STACK_WORDS) {
            match entry {
                log::Entry::Module(module) => into.modules.push(module),
                log::Entry::Stack(own, frames) => _ = into.stacks.insert(own[1], frames.to_vec()),
                log::Entry::Line(key, line) => _ = into.lines.insert(key, line),
            }
        }
    }
}

impl Drop for LedgerFile {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `create`; by the documentation of `view`, no view is used afterwards.
        let _ = unsafe { munmap(self.base as *mut _, LEDGER_BYTES) };
    }
}

/// The key shared by an entry and its asides.
type Key = (u32, u64, u32, u16);

fn key(entry: &Entry) -> Key {
    (entry.process, entry.place, entry.epoch, entry.operation.bits())
}

/// Adds each entry's asides to it; they may be in another table of the same process.
fn join_asides(entries: &mut [Entry], mut asides: HashMap<Key, Asides>) {
    if asides.is_empty() {
        return;
    }
    for entry in entries {
        if let Some(own) = asides.remove(&key(entry)) {
            entry.times.asides = own;
        }
    }
}

/// The entry in a record, and whether it is a record of asides.
fn entry(process: u32, record: &Record) -> Option<(Entry, bool)> {
    let place = record.place.load(Acquire);
    let what = record.what.load(Relaxed);
    let count = record.count.load(Relaxed);
    if place == 0 || count == 0 {
        return None;
    }
    let bytes = record.bytes.load(Relaxed);
    let (squares, timed) = halves(record.squares_timed.load(Relaxed));
    let (min, max) = halves(record.extremes.load(Relaxed));
    let times = Times {
        timed: timed.into(),
        covered: if timed == 0 { 0.0 } else { Due(record.due.load(Relaxed)).last() as f64 },
        sum: record.sum.load(Relaxed) as f64,
        squares: f32::from_bits(squares).into(),
        min: f32::from_bits(min).into(),
        max: f32::from_bits(max).into(),
        asides: Asides::default(),
    };
    let is_aside = what & ASIDE_BIT != 0;
    let times = if is_aside {
        Times { asides: Asides { count, sum: times.sum, squares: times.squares }, ..Times::default() }
    } else {
        times
    };
    let operation = Operation::from_bits(what as u16)?;
    Some((Entry { process, place, epoch: (what >> 32) as u32, operation, count, bytes, times }, is_aside))
}
