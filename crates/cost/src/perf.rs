//! Opens the kernel's page fault events, and reads their samples while the program runs.
//!
//! `perf_event_open` counts the page faults of a process and all its descendants. It records each fault with
//! its instruction, its registers and a piece of its stack. Faults in user mode need no privilege if
//! `perf_event_paranoid` is 2 or less. The kernel's own faults in a program's memory (`read` into fresh
//! pages) are visible only to users who may profile the kernel.
//!
//! The events are opened on this thread, disabled. The forked child inherits them, and its `exec` enables
//! them, so this process's own faults are not counted. Each processor has one ring for all inherited events:
//!
//! ```text
//! processor 0:  minor faults, mapped files, forks ──▶ ring ◀── major faults      `drain` reads all rings
//! processor 1:  …
//! ```
//!
//! A full ring loses samples, and the kernel throttles samples that come too fast; the counts are exact.
//!
//! Source: perf_event_open(2); the structures are the kernel's `linux/perf_event.h`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use vellum_kernel::machine::{PROCESSORS, processors};
use vellum_kernel::perf::{self, Event, Record, What, is_permission};

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
        let cure = match is_permission(&source) {
            true => "; set /proc/sys/kernel/perf_event_paranoid to 2 or less",
            false => "",
        };
        Refused { call, source, cure }
    }
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
    minor: Event,
    major: Event,
    major_id: u64,
    ring: perf::Ring,
}

impl Rings {
    /// Opens the events on the calling thread. The child it forks inherits them, and they count from that
    /// child's `exec` on.
    pub(super) fn open() -> Result<Rings, Refused> {
        match Self::open_with(true) {
            Err(refused) if is_permission(&refused.source) => Self::open_with(false),
            other => other,
        }
    }

    fn open_with(sees_kernel: bool) -> Result<Rings, Refused> {
        let processors = processors().map_err(|error| Refused::of(PROCESSORS, error.source))?;
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

    /// Everything in the rings, oldest first as far as this call goes. Samples of major faults come with
    /// `true`.
    pub(super) fn drain(&mut self) -> Vec<(bool, Record)> {
        let mut found = Vec::new();
        for Ring { ring, major_id, .. } in &mut self.rings {
            ring.drain(|record| found.extend(parse(record, *major_id)));
        }
        // Between processors only time orders: a process's modules must be known before its faults.
        found.sort_by_key(|(time, ..)| *time);
        found.into_iter().map(|(_, is_major, record)| (is_major, record)).collect()
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
        let wakeup = *pages * page() / WAKE_SHARE;
        let every = Event::of(What::MinorFaults).inherited().from_exec().in_kernel(sees_kernel);
        let minor = every.sampled(wakeup, STACK_BYTES);
        let major = minor.instead(What::MajorFaults);
        let minor = minor.with_mappings().open(0, processor).map_err(failed("perf_event_open"))?;
        let major = major.open(0, processor).map_err(failed("perf_event_open"))?;
        let ring = perf::Ring::map(&minor, *pages, RING_PAGES_MIN).map_err(failed("mapping a ring"))?;
        // The kernel would refuse a refused size for the next ring too.
        *pages = ring.pages();
        let major_id = major.id().map_err(failed("reading an event's number"))?;
        major.share_ring(&minor).map_err(failed("joining two events' rings"))?;
        Ok(Ring { minor, major, major_id, ring })
    }
}

fn page() -> usize {
    rustix::param::page_size()
}

/// A record's time, whether it is a sample of the event `major_id`, and its contents.
pub(super) fn parse(record: &[u8], major_id: u64) -> Option<(u64, bool, Record)> {
    let (time, record) = Record::parse(record)?;
    let is_major = matches!(&record, Record::Sample(sample) if sample.id == major_id);
    Some((time, is_major, record))
}
