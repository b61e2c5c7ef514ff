//! Page faults as they happen, from the kernel's software counter.
//!
//! `perf_event_open` counts the page faults of a process and all its descendants. It records each fault
//! with its instruction, its registers and a piece of its stack. Faults in user mode need no privilege if
//! `perf_event_paranoid` is 2 or less. The kernel's own faults in a program's memory (`read` into fresh
//! pages) are visible only to users who may profile the kernel.
//!
//! The events are opened on this thread, disabled. The forked child inherits them, and its `exec` enables
//! them, so this process's own faults are not counted. Inherited events have one ring per processor.
//!
//! ```text
//! processor 0:  minor faults, modules, forks ──▶ ring ◀── major faults        (one ring, read by `drain`)
//! processor 1:  …
//! ```
//!
//! A full ring loses samples, and the kernel throttles samples that come too fast; the counts are exact.
//!
//! Source: perf_event_open(2); the structures are the kernel's `linux/perf_event.h`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use vellum_process::ring::kernel::*;
use vellum_process::ring::{self, Attributes, PROCESSORS};

/// Bytes of stack sampled with a fault: enough for the frames of a library's `memset` or `calloc` and their
/// callers.
pub(super) const STACK_BYTES: u32 = 1024;
/// Bytes of all rings together, and of one ring; halved until the kernel allows it.
const RINGS_BYTES: usize = 64 << 20;
const RING_BYTES_MAX: usize = 16 << 20;
/// Pages of the smallest ring.
const RING_PAGES_MIN: usize = 8;

/// The reader is woken when a ring is this share full.
const WAKE_SHARE: usize = 8;

const FAULTS_MINOR: u64 = 5;
const FAULTS_MAJOR: u64 = 6;
/// bp, sp and ip, in the kernel's numbering.
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
const REGISTERS_ABI_64: u64 = 2;
const MISC_COMM_EXEC: u16 = 1 << 13;
/// Bytes of the identity after every record that is no sample: tid, time, identifier.
const IDENTITY_BYTES: usize = 24;

/// The reason why single page faults cannot be observed.
#[derive(Debug, thiserror::Error)]
#[error("the kernel does not show them ({call}: {source}){cure}")]
pub struct Refused {
    call: &'static str,
    source: io::Error,
    cure: &'static str,
}

impl Refused {
    fn of(call: &'static str, source: io::Error) -> Refused {
        let cure = match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => "; set /proc/sys/kernel/perf_event_paranoid to 2 or less",
            _ => "",
        };
        Refused { call, source, cure }
    }
}

/// One fault.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) pid: u32,
    pub(super) is_major: bool,
    pub(super) pc: u64,
    pub(super) sp: u64,
    pub(super) bp: u64,
    /// The stack from `sp` on.
    pub(super) stack: Vec<u8>,
}

/// An event of a ring.
#[derive(Debug)]
pub(super) enum Event {
    Fault(Fault),
    /// A file was mapped as executable.
    Map {
        pid: u32,
        start: u64,
        bytes: u64,
        offset: u64,
        path: Vec<u8>,
    },
    /// A process was forked.
    Fork {
        pid: u32,
        parent: u32,
    },
    /// A process executed another program.
    Exec {
        pid: u32,
    },
    /// The kernel dropped samples for a while because there were too many.
    Throttled,
}

/// The rings of all processors.
#[derive(Debug)]
pub(super) struct Rings {
    rings: Vec<Ring>,
    /// True if faults inside the kernel are reported too.
    pub(super) sees_kernel: bool,
}

#[derive(Debug)]
struct Ring {
    minor: ring::Event,
    major: ring::Event,
    major_id: u64,
    ring: ring::Ring,
}

impl Rings {
    /// Opens the events on the calling thread. The child it forks inherits them, and they count from that
    /// child's `exec` on.
    pub(super) fn open() -> Result<Rings, Refused> {
        match Self::open_with(true) {
            Err(refused) if matches!(refused.source.raw_os_error(), Some(libc::EACCES | libc::EPERM)) => {
                Self::open_with(false)
            }
            other => other,
        }
    }

    fn open_with(sees_kernel: bool) -> Result<Rings, Refused> {
        let processors = ring::processors().map_err(|error| Refused::of(PROCESSORS, error))?;
        let mut pages = wanted_pages(processors.len());
        let rings = processors
            .into_iter()
            .map(|processor| Ring::open(processor, sees_kernel, &mut pages))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Rings { rings, sees_kernel })
    }

    /// Bytes of the smallest ring, and of a ring of the preferred size.
    pub(super) fn bytes(&self) -> (usize, usize) {
        let smallest = self.rings.iter().map(|ring| ring.ring.pages()).min().unwrap_or(0);
        (smallest * page(), wanted_pages(self.rings.len()) * page())
    }

    /// Waits until a ring has records, or for `timeout`.
    pub(super) fn wait(&self, timeout: Timespec) {
        let mut fds: Vec<PollFd<'_>> =
            self.rings.iter().map(|ring| PollFd::new(ring.minor.file(), PollFlags::IN)).collect();
        // An interrupted wait only costs another round.
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Takes all events out of the rings, sorted by time.
    pub(super) fn drain(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for ring in &mut self.rings {
            ring.drain(&mut events);
        }
        // Only times order events of different processors: a process's modules must come before its faults.
        events.sort_by_key(|(time, _)| *time);
        events.into_iter().map(|(_, event)| event).collect()
    }

    /// The exact numbers of minor and major faults so far.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.rings
            .iter()
            .fold((0, 0), |(minor, major), ring| (minor + ring.minor.count(), major + ring.major.count()))
    }
}

/// The preferred pages of each ring: a power of two, as the kernel requires.
fn wanted_pages(processors: usize) -> usize {
    let bytes = (RINGS_BYTES / processors.max(1)).min(RING_BYTES_MAX);
    1 << (bytes / page()).max(RING_PAGES_MIN).ilog2()
}

impl Ring {
    fn open(processor: i32, sees_kernel: bool, pages: &mut usize) -> Result<Ring, Refused> {
        let failed = |call| move |error| Refused::of(call, error);
        let mut minor = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: FAULTS_MINOR,
            period: 1,
            sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_REGISTERS | SAMPLE_STACK | SAMPLE_IDENTIFIER,
            flags: DISABLED | INHERIT | EXCLUDE_HYPERVISOR | ENABLE_ON_EXEC | WATERMARK | SAMPLE_ID_ALL,
            wakeup: (*pages * page() / WAKE_SHARE) as u32,
            sample_regs_user: REGISTERS,
            sample_stack_user: STACK_BYTES,
            ..Attributes::default()
        };
        if !sees_kernel {
            minor.flags |= EXCLUDE_KERNEL;
        }
        let major = Attributes { config: FAULTS_MAJOR, ..minor };
        minor.flags |= MMAP | MMAP2 | COMM | COMM_EXEC | TASK;
        let minor = ring::Event::open(&minor, 0, processor).map_err(failed("perf_event_open"))?;
        let major = ring::Event::open(&major, 0, processor).map_err(failed("perf_event_open"))?;
        let ring = ring::Ring::map(&minor, *pages, RING_PAGES_MIN).map_err(failed("mapping a ring"))?;
        // The kernel would refuse a refused size for the next ring too.
        *pages = ring.pages();
        let major_id = major.id().map_err(failed("reading an event's number"))?;
        major.share_ring(&minor).map_err(failed("joining two events' rings"))?;
        Ok(Ring { minor, major, major_id, ring })
    }

    /// Takes all events out of the ring.
    fn drain(&mut self, into: &mut Vec<(u64, Event)>) {
        self.ring.drain(|record| into.extend(parse(record, self.major_id)));
    }
}

fn page() -> usize {
    rustix::param::page_size()
}

/// Reads numbers from a record, one after the other.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*word))
    }

    fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
}

/// The time and event of a record, if its kind is used here.
pub(super) fn parse(record: &[u8], major_id: u64) -> Option<(u64, Event)> {
    let mut head = Words(record);
    let kind = head.u32()?;
    let misc = head.u32()? as u16;
    let body = head.0;
    if kind == RECORD_SAMPLE {
        return fault(body, major_id);
    }
    let (body, identity) = body.split_at_checked(body.len().checked_sub(IDENTITY_BYTES)?)?;
    let time = Words(&identity[8..]).u64()?;
    let mut words = Words(body);
    let event = match kind {
        RECORD_MMAP2 => {
            let (pid, _tid) = (words.u32()?, words.u32()?);
            let (start, bytes, offset) = (words.u64()?, words.u64()?, words.u64()?);
            // Skipped: device, inode and generation, or a build id; protection and flags.
            let path = words.0.get(32..)?;
            let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
            Event::Map { pid, start, bytes, offset, path: path[..end].to_vec() }
        }
        RECORD_FORK => {
            let (pid, parent) = (words.u32()?, words.u32()?);
            Event::Fork { pid, parent }
        }
        RECORD_COMM if misc & MISC_COMM_EXEC != 0 => Event::Exec { pid: words.u32()? },
        RECORD_THROTTLE => Event::Throttled,
        _ => return None,
    };
    Some((time, event))
}

/// A sample: identifier, pid and tid, time, registers, stack.
fn fault(body: &[u8], major_id: u64) -> Option<(u64, Event)> {
    let mut words = Words(body);
    let id = words.u64()?;
    let (pid, _tid) = (words.u32()?, words.u32()?);
    let time = words.u64()?;
    // A kernel thread has no user registers.
    if words.u64()? != REGISTERS_ABI_64 {
        return None;
    }
    let (bp, sp, pc) = (words.u64()?, words.u64()?, words.u64()?);
    let room = usize::try_from(words.u64()?).ok()?;
    let (stack, mut after) = words.0.split_at_checked(room).map(|(stack, rest)| (stack, Words(rest)))?;
    let there = if room == 0 { 0 } else { usize::try_from(after.u64()?).ok()?.min(room) };
    let stack = stack[..there].to_vec();
    Some((time, Event::Fault(Fault { pid, is_major: id == major_id, pc, sp, bp, stack })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut record = kind.to_ne_bytes().to_vec();
        record.extend(0u16.to_ne_bytes());
        record.extend((8 + body.len() as u16).to_ne_bytes());
        record.extend(body);
        record
    }

    #[test]
    fn fault_is_parsed_with_its_stack() {
        let mut body = Vec::new();
        for word in [7u64, 5 | 6 << 32, 99, REGISTERS_ABI_64, 0xb, 0x5, 0x1, 16] {
            body.extend(word.to_ne_bytes());
        }
        body.extend([1u8; 16]);
        body.extend(8u64.to_ne_bytes());
        let (time, event) = parse(&record(RECORD_SAMPLE, &body), 7).unwrap();
        assert_eq!(time, 99);
        let Event::Fault(fault) = event else { panic!("{event:?}") };
        assert_eq!((fault.pid, fault.is_major, fault.pc, fault.sp, fault.bp), (5, true, 1, 5, 11));
        assert_eq!(fault.stack, [1u8; 8]);
        for cut in 0..body.len() {
            let _ = parse(&record(RECORD_SAMPLE, &body[..cut]), 7);
            let _ = parse(&record(RECORD_MMAP2, &body[..cut]), 7);
        }
    }
}
