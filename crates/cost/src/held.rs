//! Creates and reads the file of a heap profile, in which processes record how much memory each stack holds.
//!
//! The file is in a private directory that is removed after the run. It is sparse: unused parts take no
//! memory.
//!
//! Invariant: every length is checked against the file before use, as a program may have written anywhere.

use crate::log::{self, WORD};
use crate::place::Instruction;
use crate::script::ScriptLine;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use vellum_process::jit_map;
use vellum_wire::held as wire;
use vellum_wire::held::{
    Amount, ENTRY_WORDS, HEAD_BYTES, HELD_BYTES, HELD_MAGIC, HELD_VERSION, Held, HeldHead, KINDS, Kind,
    NO_MODULE, OFFSET_BITS, PART_BYTES, PARTS, PartHead, STACK_WORDS, StackHead,
};
use vellum_wire::log::LINE_BIT;

/// The file of a heap profile.
#[derive(Debug)]
pub struct HeldFile {
    path: PathBuf,
    file: File,
}

/// Amounts held: at the end (or now), at the process's peak, and the total ever allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Memory in use when the file was read.
    pub now: Amount,
    /// Memory in use at the peak.
    pub peak: Amount,
    /// All memory ever allocated.
    pub ever: Amount,
}

impl Holding {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Holding) -> Holding {
        Holding {
            now: self.now.plus(other.now),
            peak: self.peak.plus(other.peak),
            ever: self.ever.plus(other.ever),
        }
    }
}

impl Holding {
    /// The growth over `other`; zero where there is less. A difference has no samples.
    #[must_use]
    pub fn above(self, other: Holding) -> Holding {
        let above = |new: Amount, old: Amount| match new.bytes.checked_sub(old.bytes) {
            None | Some(0) => Amount::default(),
            Some(bytes) => Amount { bytes, blocks: new.blocks.saturating_sub(old.blocks), samples: 0 },
        };
        let (now, peak) = (above(self.now, other.now), above(self.peak, other.peak));
        Holding { now, peak, ever: above(self.ever, other.ever) }
    }
}

/// A call stack, and the memory that was allocated there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldStack {
    /// Its instructions, innermost first.
    pub stack: Vec<Instruction>,
    /// The memory it holds.
    pub holding: Holding,
    /// Bytes of free memory that its blocks in use keep resident, if that was counted.
    pub pins: u64,
}

/// All resident memory of a process, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// Bytes of each [`vellum_wire::held::Kind`].
    pub kinds: [u64; KINDS],
    /// Resident memory of slabs, for each size class that has some.
    pub classes: Vec<ResidentClass>,
}

/// The resident memory of the slabs of a size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResidentClass {
    /// Bytes of a block.
    pub block: u64,
    /// Bytes of blocks in use.
    pub live: u64,
    /// Bytes of the rest of the slabs.
    pub holes: u64,
}

impl Resident {
    /// The bytes of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u64 {
        self.kinds[kind as usize]
    }

    /// The sum of all kinds.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.kinds.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes))
    }

    /// Adds another process's resident memory.
    pub fn add(&mut self, other: &Resident) {
        for (kind, bytes) in self.kinds.iter_mut().zip(other.kinds) {
            *kind = kind.saturating_add(bytes);
        }
        for class in &other.classes {
            match self.classes.iter_mut().find(|known| known.block == class.block) {
                Some(known) => {
                    known.live = known.live.saturating_add(class.live);
                    known.holes = known.holes.saturating_add(class.holes);
                }
                None => self.classes.push(*class),
            }
        }
    }
}

/// A process, or a program that it executed, with the stacks that hold its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The process id in its own namespace.
    pub pid: u32,
    /// The command's name when it began.
    pub name: String,
    /// True if it was forked from a process with a profile: inherited memory belongs to that process.
    pub is_forked: bool,
    /// Samples lost for lack of room.
    pub lost: u64,
    /// The sum of its stacks.
    pub holding: Holding,
    /// Its resident memory by kind, if that was counted.
    pub resident: Option<Resident>,
    /// Its stacks.
    pub stacks: Vec<HeldStack>,
}

impl HeldFile {
    /// Creates the file in `directory`, which should be private, for a sample every `interval` bytes.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn create(directory: &Path, interval: u64) -> io::Result<HeldFile> {
        let path = directory.join("held");
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        // The lock shows other processes that the command that reads the file is running.
        file.try_lock()?;
        file.set_len(HELD_BYTES)?;
        file.write_all_at(&interval.to_ne_bytes(), offset_of!(HeldHead, interval) as u64)?;
        file.write_all_at(&HELD_VERSION.to_ne_bytes(), offset_of!(HeldHead, version) as u64)?;
        file.write_all_at(&HELD_MAGIC.to_ne_bytes(), offset_of!(HeldHead, magic) as u64)?;
        Ok(HeldFile { path, file })
    }

    /// The path that other processes open.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The processes so far, in the order in which they sampled their first blocks.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn holders(&self) -> io::Result<Vec<Holder>> {
        let mut parts = [0; 4];
        self.file.read_exact_at(&mut parts, offset_of!(HeldHead, parts) as u64)?;
        let parts = (u32::from_ne_bytes(parts) as usize).min(PARTS);
        let mut holders = Vec::new();
        for number in 0..parts {
            let at = HEAD_BYTES as u64 + number as u64 * PART_BYTES as u64;
            let mut bytes = vec![0; HEAD_BYTES];
            self.file.read_exact_at(&mut bytes, at)?;
            let used = words_of(&bytes)[offset_of!(PartHead, used) / WORD];
            let used = usize::try_from(used).unwrap_or(usize::MAX).min(ENTRY_WORDS);
            bytes.resize(HEAD_BYTES + used * WORD, 0);
            self.file.read_exact_at(&mut bytes[HEAD_BYTES..], at + HEAD_BYTES as u64)?;
            holders.extend(holder(&bytes));
        }
        Ok(holders)
    }
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word)).collect()
}

fn holding(held: &Held, peak: Amount) -> Holding {
    Holding { now: held.now.get(), peak, ever: held.ever.get() }
}

/// Reads a process's part from `bytes`: its head and its entries. `None` if no process has taken the part.
pub(crate) fn holder(bytes: &[u8]) -> Option<Holder> {
    let words = words_of(bytes);
    let (head, entries) = words.split_at_checked(HEAD_BYTES / WORD)?;
    // SAFETY: a `PartHead` is shorter than `HEAD_BYTES`, and any words are a valid one.
    let head = unsafe { head.as_ptr().cast::<PartHead>().read() };
    let pid = head.pid.load(Relaxed);
    if pid == 0 {
        return None;
    }
    let mut process = Holder {
        pid,
        name: log::name(&head.name),
        is_forked: head.is_forked.load(Relaxed) != 0,
        lost: head.lost.load(Relaxed),
        holding: holding(&head.held, head.held.noted.get()),
        resident: resident(&head.resident),
        stacks: Vec::new(),
    };
    let mut modules: Vec<Arc<Path>> = Vec::new();
    let mut known: HashMap<PathBuf, Arc<Path>> = HashMap::new();
    let mut lines: HashMap<u64, Arc<ScriptLine>> = HashMap::new();
    let list = jit_map(pid).map(Arc::from);
    for entry in log::entries(entries, STACK_WORDS) {
        match entry {
            log::Entry::Module(log::MappedModule { path, .. }) => {
                modules.push(known.entry(path.clone()).or_insert_with(|| path.into()).clone());
            }
            log::Entry::Stack(own, frames) => {
                // SAFETY: `own` has the words of a `StackHead`, and any words are a valid one.
                let own = unsafe { own.as_ptr().cast::<StackHead>().read() };
                process.stacks.push(HeldStack {
                    stack: frames
                        .iter()
                        .map(|&at| instruction(at, &modules, &lines, list.as_ref()))
                        .collect(),
                    holding: holding(&own.held, own.held.at_peak(head.held.peak.load(Relaxed))),
                    pins: own.pins.load(Relaxed),
                });
            }
            log::Entry::Line(key, line) => _ = lines.insert(key, line),
        }
    }
    Some(process)
}

/// The resident memory in a part's head, if it was counted.
fn resident(resident: &wire::Resident) -> Option<Resident> {
    let classes = resident.classes.iter().map(|class| {
        let [block, live, holes] = [&class.block, &class.live, &class.holes].map(|word| word.load(Relaxed));
        ResidentClass { block, live, holes }
    });
    let classes = classes.filter(|class| class.live | class.holes != 0).collect();
    let kinds = resident.kinds.each_ref().map(|kind| kind.load(Relaxed));
    (resident.counted.load(Relaxed) != 0).then_some(Resident { kinds, classes })
}

/// The instruction of a frame: the call, which ends before the return address.
fn instruction(
    frame: u64,
    modules: &[Arc<Path>],
    lines: &HashMap<u64, Arc<ScriptLine>>,
    list: Option<&Arc<Path>>,
) -> Instruction {
    if frame & LINE_BIT != 0 {
        return Instruction { module: None, address: 0, line: lines.get(&frame).cloned() };
    }
    let (number, offset) = (frame >> OFFSET_BITS, frame & ((1 << OFFSET_BITS) - 1));
    let module = if number == NO_MODULE { list.cloned() } else { modules.get(number as usize).cloned() };
    Instruction::at(module, offset.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_wire::held::{BLOCK, frame};
    use vellum_wire::log::{Entry, EntryKind};

    /// A part with one module, and one stack with frames inside and outside that module.
    fn part() -> Vec<u64> {
        let mut words = vec![0; HEAD_BYTES / WORD];
        words[0] = 77 | 1 << 32;
        words[offset_of!(PartHead, name) / WORD] = u64::from_ne_bytes(*b"prog\0\0\0\0");
        let held = offset_of!(PartHead, held) / WORD;
        words[held..held + 10].copy_from_slice(&[10, BLOCK, 1, 40, 4 * BLOCK, 4, 30, 3 * BLOCK, 3, 9]);
        let mut enter = |kind, of: &[u64], text| {
            let entry = Entry { kind, words: of, texts: [text, &[]] };
            let at = words.len();
            words.resize(at + entry.words(), 0);
            // SAFETY: the vector was just extended by the entry's words, which are zero.
            unsafe { entry.write(words[at..].as_mut_ptr()) };
        };
        enter(EntryKind::Module, &[0, 0x1000, 0x2000, 0x1000], b"/prog");
        let mut stack = vec![1, 10, BLOCK, 1, 40, 4 * BLOCK, 4, 30, 3 * BLOCK, 3, 9, 500];
        stack.extend([frame(0, 0x123), frame(NO_MODULE, 0x7f00_0000_0001)]);
        enter(EntryKind::Stack, &stack, b"");
        words
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn parts_of_the_file_are_read() {
        let holder = holder(&bytes(&part())).unwrap();
        assert_eq!((holder.pid, &*holder.name, holder.is_forked), (77, "prog", true));
        assert_eq!(holder.holding.peak, Amount { bytes: 30, blocks: 3 * BLOCK, samples: 3 });
        let [stack] = &holder.stacks[..] else { panic!("{holder:?}") };
        assert_eq!((stack.holding, stack.pins), (holder.holding, 500));
        assert_eq!(holder.resident, None);
        assert_eq!(stack.stack[0].module.as_deref(), Some(Path::new("/prog")));
        assert_eq!((stack.stack[0].address, stack.stack[1].address), (0x122, 0x7f00_0000_0000));
        assert_eq!(stack.stack[1].module, None);
    }

    #[test]
    fn resident_memory_is_read_where_it_was_counted() {
        let mut words = part();
        let at = |offset: usize| (offset_of!(PartHead, resident) + offset) / WORD;
        words[at(offset_of!(wire::Resident, counted))] = 1;
        words[at(offset_of!(wire::Resident, kinds)) + Kind::Stacks as usize] = 4096;
        let class = at(offset_of!(wire::Resident, classes)) + 3 * 7;
        words[class..class + 3].copy_from_slice(&[112, 1000, 2000]);
        let mut resident = holder(&bytes(&words)).unwrap().resident.expect("counted");
        assert_eq!((resident.of(Kind::Stacks), resident.sum()), (4096, 4096));
        assert_eq!(resident.classes, [ResidentClass { block: 112, live: 1000, holes: 2000 }]);
        resident.add(&resident.clone());
        assert_eq!((resident.sum(), resident.classes[0].holes, resident.classes.len()), (8192, 4000, 1));
    }

    #[test]
    fn stack_unchanged_since_the_peak_has_its_peak_amount() {
        let mut words = part();
        let held = words.len() - 2 - 11;
        words[held + 9] = 8;
        let holder = holder(&bytes(&words)).unwrap();
        assert_eq!(holder.stacks[0].holding.peak, holder.stacks[0].holding.now);
    }

    #[test]
    fn overwritten_parts_are_read_as_far_as_valid() {
        assert_eq!(holder(&[]), None);
        assert_eq!(holder(&[0; 2 * HEAD_BYTES]), None);
        let words = part();
        for index in HEAD_BYTES / WORD..words.len() {
            for value in [0, 1, u64::MAX, 1 << 32, 2 | 3 << 32, 1 | 1 << 40] {
                let mut words = words.clone();
                words[index] = value;
                assert!(holder(&bytes(&words)).unwrap().stacks.len() <= 2);
                assert!(holder(&bytes(&words[..index])).is_some());
            }
        }
    }
}
