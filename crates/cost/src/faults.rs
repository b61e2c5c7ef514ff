//! Counts page faults by the stack that caused them.
//!
//! A thread reads the kernel's perf rings ([`super::perf`]) and keeps a table of each process's mapped files.
//! The kernel delivers each fault with a piece of its stack. If the fault is in a library, the thread unwinds
//! this piece up to the user's own code.
//!
//! Faults cannot be timed one by one. The cost of an ordinary fault is measured once, in this process
//! ([`minor_fault_ns`]).

use super::answers::locked;
use super::perf::{Refused, Rings, parse};
use super::place::{Instruction, Paths};
use rustix::event::Timespec;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;
use vellum_kernel::perf::{Record, Ring, Sample};
use vellum_process::{Symbols, is_recorder};
use vellum_unwind::Frame;
use vellum_wire::cost::Answer;

/// The longest wait for the rings.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The most frames of a stack that are walked.
const FRAMES_MAX: usize = 64;
/// Pages touched to measure the cost of a fault.
const TRIAL_PAGES: usize = 256;
/// Repetitions of the measurement; the fastest counts.
const TRIALS: usize = 3;

/// The faults of a job.
#[derive(Debug, Default)]
pub struct Faults {
    /// Counts by stack (innermost first) and whether the fault was major.
    pub by_stack: HashMap<(Vec<Instruction>, bool), u64>,
    /// Minor faults in user mode, and in the kernel if it reports them; exact, including the recorder's.
    pub minor: u64,
    /// Major faults, counted like the minor ones.
    pub major: u64,
    /// Faults of the recorder itself, included in the counts.
    pub own: u64,
    /// Faults that the kernel counted without a sample.
    pub lost: u64,
    /// True if the kernel throttled samples that came too fast.
    pub throttled: bool,
    /// True if faults inside the kernel are reported too.
    pub sees_kernel: bool,
}

/// The open events of a job, before the thread that reads them starts.
#[derive(Debug)]
pub struct FaultWatch {
    rings: Rings,
}

impl FaultWatch {
    /// Prepares to watch the next child of the calling thread, and all its descendants.
    ///
    /// # Errors
    /// If the kernel does not report faults to this user.
    pub fn prepare() -> Result<FaultWatch, Refused> {
        Ok(FaultWatch { rings: Rings::open()? })
    }

    /// Returns whether faults inside the kernel are reported too, as of system calls that fill program
    /// memory.
    #[must_use]
    pub fn sees_kernel(&self) -> bool {
        self.rings.sees_kernel
    }

    /// Bytes of the smallest ring, and of a ring of the preferred size.
    #[must_use]
    pub fn ring_bytes(&self) -> (usize, usize) {
        self.rings.bytes()
    }

    /// Starts a thread that reads the rings.
    pub fn start(self, symbols: Arc<Mutex<Symbols>>) -> FaultReader {
        let ended = Arc::new(AtomicBool::new(false));
        let theirs = ended.clone();
        FaultReader { ended, thread: std::thread::spawn(move || read(self.rings, &theirs, &symbols)) }
    }
}

/// The thread that reads the rings.
#[derive(Debug)]
pub struct FaultReader {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Faults>,
}

impl FaultReader {
    /// Stops the thread and returns the faults so far.
    pub fn stop(self) -> Faults {
        self.ended.store(true, Relaxed);
        // A panic in the thread is a bug that the tests would show; the report then goes without faults.
        self.thread.join().unwrap_or_default()
    }
}

fn read(mut rings: Rings, ended: &AtomicBool, symbols: &Mutex<Symbols>) -> Faults {
    let mut book =
        Book { faults: Faults { sees_kernel: rings.sees_kernel, ..Faults::default() }, ..Book::default() };
    let mut seen = 0;
    loop {
        // Loaded before the rings are read, so that the last reading has all faults before the end.
        let last = ended.load(Relaxed);
        for (is_major, record) in rings.drain() {
            seen += u64::from(matches!(record, Record::Sample(_)));
            book.note(is_major, record, symbols);
        }
        if last {
            break;
        }
        rings.wait(LOOK);
    }
    let mut faults = book.faults;
    (faults.minor, faults.major) = rings.counts();
    faults.lost = (faults.minor + faults.major).saturating_sub(seen);
    faults
}

/// The faults in the records of a ring that has no event.
pub(crate) fn of_ring(ring: &mut Ring, major_id: u64) -> Faults {
    let (mut book, symbols) = (Book::default(), Mutex::new(Symbols::default()));
    let mut events = Vec::new();
    ring.drain(|record| events.extend(parse(record, major_id)));
    for (_, is_major, record) in events {
        book.note(is_major, record, &symbols);
    }
    book.faults
}

/// The state of the job's processes.
#[derive(Default)]
struct Book {
    faults: Faults,
    spaces: HashMap<u32, Space>,
    paths: Paths,
    /// Caches whether an instruction is the user's, at which a walk ends.
    users: HashMap<Instruction, bool>,
}

/// A process's executable file mappings, by address.
#[derive(Clone, Debug, Default)]
struct Space(BTreeMap<u64, Mapped>);

#[derive(Clone, Debug)]
struct Mapped {
    end: u64,
    offset: u64,
    path: Arc<Path>,
}

impl Space {
    fn map(&mut self, start: u64, mapped: Mapped) {
        // Older mappings in this range are gone, though their unmapping was not reported.
        let end = mapped.end;
        self.0.retain(|&other, there| other >= end || there.end <= start);
        self.0.insert(start, mapped);
    }

    fn at(&self, address: u64) -> Option<(u64, &Mapped)> {
        let (start, mapped) = self.0.range(..=address).next_back()?;
        (address < mapped.end).then_some((*start, mapped))
    }
}

impl Book {
    fn note(&mut self, is_major: bool, record: Record, symbols: &Mutex<Symbols>) {
        match record {
            Record::Map { pid, start, bytes, offset, path } => {
                let path = self.paths.of(Path::new(std::ffi::OsStr::from_bytes(&path)));
                let mapped = Mapped { end: start.saturating_add(bytes), offset, path };
                self.spaces.entry(pid).or_default().map(start, mapped);
            }
            Record::Fork { pid, parent } if pid != parent => {
                let space = self.spaces.get(&parent).cloned().unwrap_or_default();
                self.spaces.insert(pid, space);
            }
            Record::Fork { .. } | Record::Lost(_) => {}
            Record::Exec { pid } => {
                self.spaces.remove(&pid);
            }
            Record::Throttled => self.faults.throttled = true,
            Record::Sample(fault) => self.fault(&fault, is_major, &mut locked(symbols)),
        }
    }

    fn fault(&mut self, fault: &Sample, is_major: bool, symbols: &mut Symbols) {
        let mut frame = Frame { pc: fault.pc, sp: fault.sp, bp: fault.bp };
        let mut stack = Vec::new();
        // The first instruction is the faulting one. The others are return addresses, so 1 is subtracted.
        let mut back = 0;
        while stack.len() < FRAMES_MAX {
            let at = self.instruction(fault.pid, frame.pc - back, symbols);
            let Some(module) = at.module.clone() else {
                stack.push(at);
                break;
            };
            // The recorder's own faults are not counted as the program's.
            if stack.is_empty() && is_recorder(&module) {
                self.faults.own += 1;
                return;
            }
            let is_users = self.is_users(&at, symbols);
            let rule = symbols.rule(&module, at.address);
            stack.push(at);
            if is_users {
                break;
            }
            let load = |address: u64| {
                let from = usize::try_from(address.checked_sub(fault.sp)?).ok()?;
                fault.stack.get(from..)?.first_chunk::<8>().map(|word| u64::from_ne_bytes(*word))
            };
            let Some(caller) = rule.and_then(|rule| frame.caller(rule, load)) else { break };
            frame = caller;
            back = 1;
        }
        *self.faults.by_stack.entry((stack, is_major)).or_default() += 1;
    }

    fn instruction(&self, pid: u32, pc: u64, symbols: &mut Symbols) -> Instruction {
        let mapped = self.spaces.get(&pid).and_then(|space| space.at(pc));
        let found = mapped.and_then(|(start, mapped)| {
            let address =
                symbols.address_of_offset(&mapped.path, (pc - start).wrapping_add(mapped.offset))?;
            Some(Instruction::at(Some(mapped.path.clone()), address))
        });
        found.unwrap_or(Instruction::at(None, pc))
    }

    fn is_users(&mut self, at: &Instruction, symbols: &mut Symbols) -> bool {
        let Some(module) = at.module.as_deref() else { return false };
        *self.users.entry(at.clone()).or_insert_with(|| {
            matches!(symbols.answer(module, at.address), Answer::StopModule | Answer::Stop)
        })
    }
}

/// The undisturbed cost of a minor fault of fresh anonymous memory on this machine, in nanoseconds; `None`
/// if it cannot be measured.
pub fn minor_fault_ns() -> Option<f64> {
    let bytes = TRIAL_PAGES * rustix::param::page_size();
    let mut best = f64::INFINITY;
    for _ in 0..TRIALS {
        // SAFETY: a new mapping, accessed within its bounds and unmapped below; no pointer to it remains.
        unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let base = mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE).ok()?;
            // With huge pages there would be one fault for many pages.
            let _ = madvise(base, bytes, Advice::LinuxNoHugepage);
            let began = Instant::now();
            for page in 0..TRIAL_PAGES {
                base.cast::<u8>().add(page * rustix::param::page_size()).write_volatile(1);
            }
            best = best.min(began.elapsed().as_nanos() as f64 / TRIAL_PAGES as f64);
            munmap(base, bytes).ok()?;
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_mapping_replaces_an_earlier_one() {
        let file = |name: &str| -> Arc<Path> { Path::new(name).into() };
        let mut space = Space::default();
        space.map(100, Mapped { end: 200, offset: 0, path: file("a") });
        space.map(300, Mapped { end: 400, offset: 0, path: file("b") });
        space.map(150, Mapped { end: 160, offset: 7, path: file("c") });
        assert!(space.at(120).is_none(), "unmapped before its place could be taken");
        assert_eq!(space.at(155).unwrap().1.path.as_ref(), Path::new("c"));
        assert!(space.at(160).is_none() && space.at(99).is_none());
        assert_eq!(space.at(399).unwrap().1.path.as_ref(), Path::new("b"));
    }

    #[test]
    fn minor_fault_has_a_cost() {
        let ns = minor_fault_ns().expect("memory can be mapped");
        assert!(ns > 0.0 && ns.is_finite());
    }
}
