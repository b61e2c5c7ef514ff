//! Sampling by the kernel's `cpu-clock` event.
//!
//! For one thread there is one event that follows it from processor to processor. For a process, each of its
//! threads has one event on each processor, which threads that start later inherit. The events of one
//! processor share a ring. A thread of ours sleeps until rings are half full and empties them, so a region
//! may last for any time.

use super::{Sample, Scope, Taken};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use vellum_kernel::Pid;
use vellum_kernel::machine::{PROCESSORS, processors};
use vellum_kernel::perf::{Event, Opening, Parts, Record, Ring, What, is_permission};

/// The most and the fewest pages of a ring.
const RING_PAGES_MAX: usize = 256;
const RING_PAGES_MIN: usize = 2;
/// The interval at which a ring is read after its first thread has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The most threads at the start of a process's profile.
const THREADS_MAX: usize = 4096;

/// The reason why the kernel gives no events for sampling.
#[derive(Debug, thiserror::Error)]
#[error("the kernel gives no cpu-clock event ({call}: {source}){cure}")]
pub struct Refused {
    call: &'static str,
    source: io::Error,
    cure: &'static str,
}

impl Refused {
    fn of(call: &'static str, source: io::Error) -> Refused {
        let cure = match source.raw_os_error() {
            _ if is_permission(&source) => {
                "; set /proc/sys/kernel/perf_event_paranoid to 2 or less, or sample by signals"
            }
            Some(libc::EMFILE) => "; raise the limit on open files (ulimit -n), or profile one thread",
            _ => "; sample by signals",
        };
        Refused { call, source, cure }
    }
}

/// The events, and the thread that empties their rings.
pub(super) struct Sampling {
    events: Vec<Event>,
    sees_kernel: bool,
    stop: Arc<OwnedFd>,
    reader: Option<JoinHandle<Taken>>,
}

/// The rings, each with the event that it was opened with.
type Rings = Vec<(Event, Ring)>;

impl Sampling {
    /// Prepares everything; sampling does not start yet.
    pub(super) fn prepare(scope: Scope, hz: u32) -> Result<Sampling, Refused> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| Refused::of("eventfd", error.into()))?;
        let stop = Arc::new(stop);
        // The reader starts before the events: a thread started after them would inherit them.
        let (send, receive) = mpsc::channel::<Rings>();
        let (tell, told) = mpsc::channel::<i32>();
        let theirs = stop.clone();
        let reader = std::thread::spawn(move || {
            let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get());
            receive.recv().map_or_else(|_| Taken::default(), |rings| read(rings, &theirs))
        });
        let reader_thread = told.recv().unwrap_or(0);
        let opened = match open(scope, hz, true, reader_thread) {
            Err(refused) if is_permission(&refused.source) => {
                open(scope, hz, false, reader_thread).map(|it| (it, false))
            }
            other => other.map(|it| (it, true)),
        };
        // Without anything to receive, the reader ends.
        let ((rings, events), sees_kernel) = opened?;
        let _ = send.send(rings);
        Ok(Sampling { events, sees_kernel, stop, reader: Some(reader) })
    }

    pub(super) fn sees_kernel(&self) -> bool {
        self.sees_kernel
    }

    pub(super) fn start(&mut self) -> Result<(), Refused> {
        let started = self.events.iter().try_for_each(Event::enable);
        started.map_err(|error| Refused::of("starting an event", error))
    }

    pub(super) fn stop(mut self) -> Taken {
        self.end()
    }

    fn end(&mut self) -> Taken {
        for event in &self.events {
            // An event whose thread has ended is stopped already.
            let _ = event.disable();
        }
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        let reader = self.reader.take();
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.end();
    }
}

/// Opens the events: the pairs of a ring and its event, and a list of all events (again) for starting and
/// stopping.
fn open(scope: Scope, hz: u32, kernel: bool, except: i32) -> Result<(Rings, Vec<Event>), Refused> {
    let (mut rings, mut events) = (Rings::new(), Vec::new());
    let (threads, processors) = match scope {
        Scope::Thread => (vec![0], vec![-1]),
        Scope::Process => {
            (threads(except)?, processors().map_err(|error| Refused::of(PROCESSORS, error.source))?)
        }
    };
    let opening = opening(scope, hz, kernel);
    for processor in processors {
        let mut first: Option<usize> = None;
        for &thread in &threads {
            let event = match opening.open(thread, processor) {
                Ok(event) => event,
                // The thread ended before its event was opened.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && thread != 0 => continue,
                Err(error) => return Err(Refused::of("perf_event_open", error)),
            };
            match first {
                None => {
                    let ring = Ring::map(&event, RING_PAGES_MAX, RING_PAGES_MIN)
                        .map_err(|error| Refused::of("mapping a ring", error))?;
                    let switch = event.duplicate().map_err(|error| Refused::of("dup", error))?;
                    first = Some(rings.len());
                    rings.push((event, ring));
                    events.push(switch);
                }
                Some(index) => {
                    event
                        .share_ring(&rings[index].0)
                        .map_err(|error| Refused::of("sharing a ring", error))?;
                    events.push(event);
                }
            }
        }
    }
    Ok((rings, events))
}

fn opening(scope: Scope, hz: u32, kernel: bool) -> Opening {
    // Half of the smallest ring: larger ones are emptied sooner than they must.
    let wakeup = RING_PAGES_MIN * rustix::param::page_size() / 2;
    let period = 1_000_000_000 / u64::from(hz);
    let opening = Event::of(What::CpuClock).sampled(period, Parts::ADDRESS, wakeup).in_kernel(kernel);
    if scope == Scope::Process { opening.inherited() } else { opening }
}

/// The threads of this process except one.
fn threads(except: i32) -> Result<Vec<i32>, Refused> {
    let all = Pid::me().threads().map_err(|error| Refused::of("reading /proc/self/task", error.source))?;
    Ok(all.map(|thread| thread.0).filter(|id| *id != except).take(THREADS_MAX).collect())
}

/// Empties the rings until `stop` is written, and once more.
fn read(mut rings: Rings, stop: &OwnedFd) -> Taken {
    let mut taken = Taken::default();
    let own = std::process::id();
    // The thread of a ring's first event may end while others still write. Its descriptor is then always
    // ready, so the ring is read at intervals instead.
    let mut over = vec![false; rings.len()];
    loop {
        let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(stop, PollFlags::IN)];
        let waited: Vec<usize> = (0..rings.len()).filter(|&index| !over[index]).collect();
        fds.extend(waited.iter().map(|&index| PollFd::new(rings[index].0.file(), PollFlags::IN)));
        let by_clock = waited.len() < rings.len();
        // An interrupted poll also reads the rings.
        let _ = poll(&mut fds, by_clock.then_some(&LOOK));
        let stopped = fds[0].revents().contains(PollFlags::IN);
        for (&index, fd) in waited.iter().zip(&fds[1..]) {
            over[index] = fd.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        }
        drop(fds);
        for (_, ring) in &mut rings {
            ring.drain(|record| note(record, own, &mut taken));
        }
        if stopped {
            return taken;
        }
    }
}

/// The number of samples of process `own` in a ring without an event, and the number reported lost.
pub(crate) fn of_ring(ring: &mut Ring, own: u32) -> (usize, u64) {
    let mut taken = Taken::default();
    ring.drain(|record| note(record, own, &mut taken));
    (taken.samples.len(), taken.lost)
}

/// Stores a record if it is a sample or a count of lost ones.
fn note(record: &[u8], own: u32, taken: &mut Taken) {
    match Record::parse(record, Parts::ADDRESS) {
        Some((_, Record::Sample(sample))) if sample.pid == own => {
            taken.samples.push(Sample { address: sample.address, in_kernel: sample.in_kernel, weight: 1 });
        }
        Some((_, Record::Lost(lost))) => taken.lost = taken.lost.saturating_add(lost),
        _ => {}
    }
}
