//! The recorder: times operations, and records the events that happened during each.
//!
//! ```text
//!        ┌ counts ┐                                      ┌ counts ─ switched? ─▶ time waited for a CPU
//!        │  cpu   │                                      │  cpu (the thread's CPU time)
//!        │        ▼                                      ▼
//! ───────┴───── stamp ═══ operation, `batch` times ═══ stamp ──▶ one Raw, in resident memory
//!                       only this between the stamps
//! ```
//!
//! Only the operation lies between the stamps (clock readings). System calls (thread time, faults, switches)
//! come before and after; inputs are made before, results are stored afterwards. [`Detail::Stamps`] makes no
//! system calls, for operations that even a system call between observations would disturb.
//!
//! # Causes of a long observation
//!
//! Without performance counters a virtual machine cannot detect directly that the hypervisor took its
//! processor, but the difference of two clocks shows it. If no switch was counted, `wall − cpu` is time in
//! which the thread ran but was not charged. The hypervisor had taken the processor (steal), or an interrupt
//! ran, in kernels that account interrupts separately. If a switch was counted, the kernel reports how long
//! the thread was ready and waiting. Time missing beyond that is also steal:
//!
//! ```text
//! steal = wall − cpu − waited     (unknown if the thread slept voluntarily)
//! ```
//!
//! Checks of this rule: steal of 3 to 19 ms agrees with the steal column of `/proc/stat` to its step. The
//! waiting time of preempted observations agrees with `wall − cpu` within 0.2 µs. Timer interrupts (15 to 40
//! µs) appear in both clocks, so their steal is zero.
//!
//! # Invariants
//!
//! - Between construction and [`Recorder::finish`] a recorder allocates nothing and touches no fresh page.
//! - Observations for which there is no space are counted ([`Recorder::lost`]), and the series has that
//!   count.
//! - Observations contain the clock readings unchanged; bases (times of empty timings) are stored separately.
//! - A recorder stays on the thread that made it: its counts are that thread's.
//!
//! Source: Bates 1999 times by two stamps and keeps every observation. Recording events with each is ours.

mod allocator;
pub(crate) mod counts;

use crate::clock::{Anchor, BASE_COUNT, Clock, base_of, thread_ns};
use crate::machine;
use crate::marks::Collecting;
use allocator::{Allocator, Gave};
use counts::{Counts, Waited};
use std::hint::black_box;
use std::marker::PhantomData;
use vellum_measure::{Base, Mark, Observation, Sample, Series, touched};

/// The most observations of a recorder: 64 bytes each.
pub const OBSERVATIONS_MAX: usize = 1 << 24;

/// The facts recorded of each observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Detail {
    /// Start and wall time, by stamps only.
    Stamps,
    /// In addition thread time, faults, switches, steal and the allocator's marks: a few system calls beside
    /// each observation.
    #[default]
    Full,
}

/// Errors of making a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The capacity is 0 or too large.
    #[error("a recorder for {0} observations: use 1 to {OBSERVATIONS_MAX}")]
    Capacity(usize),
    /// There is not enough memory.
    #[error("no memory for {0} observations: use fewer, or raise the limit on memory (ulimit -v)")]
    Memory(usize),
}

/// An observation as stored during the measurement.
#[derive(Clone, Copy)]
struct Raw {
    first: u64,
    second: u64,
    /// Thread time between just before the first stamp and just after the second, nanoseconds.
    cpu_ns: u64,
    /// Time ready but not running, in nanoseconds; [`UNKNOWN`] if the kernel does not report it.
    waited_ns: u64,
    minor: u32,
    major: u32,
    voluntary: u32,
    involuntary: u32,
    gave: Gave,
}

const UNKNOWN: u64 = u64::MAX;
const _: () = assert!(size_of::<Raw>() <= 64);

/// The readings at the start of an observation.
#[derive(Clone, Copy, Default)]
struct Opened {
    first: u64,
    cpu_ns: u64,
    counts: Counts,
}

/// Times operations by one clock, on one thread.
pub struct Recorder {
    clock: Clock,
    detail: Detail,
    batch: u64,
    base: Base,
    cpu_base: Option<Base>,
    raws: Vec<Raw>,
    capacity: usize,
    lost: u64,
    opened: Opened,
    waited: Waited,
    waited_ns: Option<u64>,
    allocator: Allocator,
    began: Anchor,
    collecting: Collecting,
    _of_this_thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("clock", &self.clock)
            .field("detail", &self.detail)
            .field("observations", &self.raws.len())
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recorder with space for `capacity` observations by `clock`. Its bases are measured here, by
    /// recording an empty operation [`BASE_COUNT`] times. With the thread's clock, which sometimes stands
    /// still, starts are only approximate.
    ///
    /// # Errors
    /// If `capacity` is 0 or above [`OBSERVATIONS_MAX`], or if there is not enough memory.
    pub fn new(clock: Clock, detail: Detail, capacity: usize) -> Result<Recorder, RecordError> {
        if capacity == 0 || capacity > OBSERVATIONS_MAX {
            return Err(RecordError::Capacity(capacity));
        }
        // Checked first, because an allocation that fails ends the program.
        let memory = Vec::<Raw>::new().try_reserve_exact(capacity);
        memory.map_err(|_| RecordError::Memory(capacity))?;
        let waited = Waited::open();
        let mut recorder = Recorder {
            clock,
            detail,
            batch: 1,
            // A placeholder, the base of a single zero; replaced below.
            base: base_of(&clock, &Sample::from(vec![0.0])),
            cpu_base: None,
            raws: touched(BASE_COUNT, Raw::EMPTY),
            capacity: BASE_COUNT,
            lost: 0,
            opened: Opened::default(),
            waited_ns: waited.read_ns(),
            waited,
            allocator: Allocator::find(),
            began: Anchor::now(&clock),
            collecting: Collecting::start(),
            _of_this_thread: PhantomData,
        };
        // The first run brings code and data into the caches.
        for _ in 0..2 {
            recorder.raws.clear();
            recorder.repeat(BASE_COUNT, || ());
        }
        let walls = recorder.raws.iter().map(|raw| clock.between(raw.first, raw.second)).collect();
        recorder.base = base_of(&clock, &walls);
        if detail == Detail::Full {
            let cpus: Sample = recorder.raws.iter().map(|raw| raw.cpu_ns as f64).collect();
            recorder.cpu_base = Base::of("thread-cpu", &cpus);
        }
        recorder.raws = touched(capacity, Raw::EMPTY);
        recorder.capacity = capacity;
        recorder.began = Anchor::now(&clock);
        recorder.collecting = Collecting::start();
        Ok(recorder)
    }

    /// The base of the clock of the walls.
    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Sets the operations in an observation, at least 1. Observations with another batch are dropped,
    /// because a series has only one batch.
    pub fn set_batch(&mut self, batch: u64) {
        self.batch = batch.max(1);
        self.forget();
    }

    /// Drops all observations and marks, and resets the counts of lost ones.
    pub fn forget(&mut self) {
        self.raws.clear();
        self.lost = 0;
        self.began = Anchor::now(&self.clock);
        self.collecting = Collecting::start();
    }

    /// The number of observations for which there is space.
    #[must_use]
    pub fn left(&self) -> usize {
        self.capacity - self.raws.len()
    }

    /// The number of observations without space.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The number of observations so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.raws.len()
    }

    /// The wall time of observation `index` (from 0) so far, nanoseconds, base included.
    #[must_use]
    pub fn wall_ns(&self, index: usize) -> Option<f64> {
        self.raws.get(index).map(|raw| self.clock.between(raw.first, raw.second))
    }

    /// Makes `times` observations of `operation` in a row. Its results are dropped within the stamps, as in a
    /// loop without stamps.
    #[inline]
    pub fn repeat<R>(&mut self, times: usize, mut operation: impl FnMut() -> R) {
        let batch = self.batch;
        self.look();
        for _ in 0..times {
            // The counts at the end of an observation are those at the start of the next one: nothing lies
            // between.
            self.open();
            for _ in 0..batch {
                drop(black_box(operation()));
            }
            self.end();
        }
    }

    /// Makes one observation of `operation` on inputs that `input` makes before the stamps. Results are
    /// dropped after the stamps.
    #[inline]
    pub fn time_with<I, R>(&mut self, mut input: impl FnMut() -> I, mut operation: impl FnMut(I) -> R) {
        let batch = self.batch as usize;
        let made: Vec<I> = (0..batch).map(|_| input()).collect();
        // The vector is freed after the observation, so that the free is not part of it.
        let mut inputs = made.into_iter();
        let mut outputs: Vec<R> = Vec::with_capacity(batch);
        let room = outputs.spare_capacity_mut();
        let mut filled = 0;
        self.look();
        self.open();
        for (input, place) in inputs.by_ref().zip(room) {
            place.write(operation(black_box(input)));
            filled += 1;
        }
        self.end();
        drop(inputs);
        // SAFETY: the first `filled` spare places were written above, in order.
        unsafe { outputs.set_len(filled) };
        drop(black_box(outputs));
    }

    /// Begins an observation that [`Recorder::end`] ends, for operations that do not fit in a closure. The
    /// caller runs the batch.
    #[inline]
    pub fn begin(&mut self) {
        self.look();
        self.open();
    }

    /// Ends the observation that [`Recorder::begin`] began.
    #[inline(always)]
    pub fn end(&mut self) {
        let second = self.clock.stamp();
        self.keep(second);
    }

    /// Updates the counts, so that earlier events are not counted in the next observation.
    #[inline]
    fn look(&mut self) {
        if self.detail == Detail::Full {
            let counts = Counts::now();
            if counts.since(&self.opened.counts).switched() {
                self.waited_ns = self.waited.read_ns();
            }
            self.opened.counts = counts;
            self.allocator.look();
        }
    }

    #[inline(always)]
    fn open(&mut self) {
        if self.detail == Detail::Full {
            self.opened.cpu_ns = thread_ns();
        }
        self.opened.first = self.clock.stamp();
    }

    #[inline(never)]
    fn keep(&mut self, second: u64) {
        let opened = self.opened;
        let mut raw = Raw { first: opened.first, second, ..Raw::EMPTY };
        if self.detail == Detail::Full {
            raw.cpu_ns = thread_ns().saturating_sub(opened.cpu_ns);
            let counts = Counts::now();
            let during = counts.since(&opened.counts);
            if during.switched() {
                let now = self.waited.read_ns();
                raw.waited_ns =
                    now.zip(self.waited_ns).map_or(UNKNOWN, |(now, before)| now.saturating_sub(before));
                self.waited_ns = now;
            }
            let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            raw.minor = count(during.minor);
            raw.major = count(during.major);
            raw.voluntary = count(during.voluntary);
            raw.involuntary = count(during.involuntary);
            raw.gave = self.allocator.look();
            self.opened.counts = counts;
        }
        if self.raws.len() < self.capacity {
            self.raws.push(raw);
        } else {
            self.lost += 1;
        }
    }

    /// A series of all observations, with this name, the bases, the machine, and the marks that overlap them.
    /// Labels show losses, if there are any: `lost=N` observations, `lost-marks=N`.
    #[must_use]
    pub fn finish(self, name: &str) -> Series {
        let ended = Anchor::now(&self.clock);
        let observations: Vec<Observation> =
            self.raws.iter().map(|raw| self.observation(raw, &ended)).collect();
        let taken = self.collecting.take();
        let begins = observations.first().map_or(u64::MAX, |one| one.start_ns);
        let ends = observations.last().map_or(0, end_ns);
        let mut marks: Vec<Mark> = taken.marks;
        marks.retain(|mark| mark.end_ns >= begins && mark.start_ns <= ends);
        for (raw, observation) in self.raws.iter().zip(&observations) {
            marks.extend(raw.gave.causes().map(|cause| Mark {
                start_ns: observation.start_ns,
                end_ns: end_ns(observation),
                cause,
            }));
        }
        marks.sort_by_key(|mark| mark.start_ns);
        let lost = [("lost", self.lost), ("lost-marks", taken.lost)];
        let labels = lost.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what}={n}")).collect();
        Series {
            name: name.to_owned(),
            labels,
            batch: self.batch,
            base: Some(self.base),
            cpu_base: self.cpu_base,
            clock: Some(self.clock.kind().name().to_owned()),
            observations,
            marks,
            machine: Some(machine::read()),
            ..Series::default()
        }
    }

    fn observation(&self, raw: &Raw, ended: &Anchor) -> Observation {
        let wall_ns = self.clock.between(raw.first, raw.second);
        let full = self.detail == Detail::Full;
        let cpu_ns = full.then_some(raw.cpu_ns as f64);
        let cpu_base = self.cpu_base.as_ref().map_or(0.0, |base| base.min);
        let net_cpu = cpu_ns.map(|cpu| cpu - cpu_base);
        Observation {
            start_ns: self.began.place(ended, &self.clock, raw.first),
            wall_ns,
            cpu_ns,
            minor: raw.minor,
            major: raw.major,
            voluntary: raw.voluntary,
            involuntary: raw.involuntary,
            steal_ns: net_cpu.and_then(|cpu| steal_ns(wall_ns - self.base.min - cpu, raw)),
        }
    }
}

/// The end of an observation, on `CLOCK_MONOTONIC`.
fn end_ns(observation: &Observation) -> u64 {
    observation.start_ns + observation.wall_ns as u64
}

/// The part of the uncharged time that neither waiting nor sleeping explains.
fn steal_ns(uncharged_ns: f64, raw: &Raw) -> Option<f64> {
    let known = raw.voluntary == 0 && raw.waited_ns != UNKNOWN;
    known.then(|| (uncharged_ns - raw.waited_ns as f64).max(0.0))
}

impl Raw {
    /// Not zero, because memory with zeros may not be resident yet.
    const EMPTY: Raw = Raw {
        first: 1,
        second: 0,
        cpu_ns: 0,
        waited_ns: 0,
        minor: 0,
        major: 0,
        voluntary: 0,
        involuntary: 0,
        gave: Gave { decay: false, trim: false },
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockKind;
    use crate::marks::{self, Kind};

    fn recorder(detail: Detail, capacity: usize) -> Recorder {
        Recorder::new(Clock::open(ClockKind::Monotonic).unwrap(), detail, capacity).unwrap()
    }

    #[test]
    fn observations_are_kept_in_order_with_their_circumstances() {
        let mut recorder = recorder(Detail::Full, 10);
        recorder.repeat(3, || std::hint::black_box(17) + 1);
        recorder.repeat(1, || std::thread::sleep(std::time::Duration::from_millis(2)));
        let series = recorder.finish("mixed");
        assert_eq!((series.name.as_str(), series.observations.len(), series.batch), ("mixed", 4, 1));
        assert!(series.starts().unwrap().windows(2).all(|pair| pair[0] < pair[1]));
        let slept = &series.observations[3];
        assert!(slept.voluntary >= 1 && slept.wall_ns >= 2e6, "{slept:?}");
        assert_eq!(slept.steal_ns, None, "a sleeper's steal is not known");
        assert!(series.observations.iter().all(|one| one.cpu_ns.is_some()));
        assert!(slept.cpu_ns.unwrap() < slept.wall_ns);
        assert!(series.machine.is_some() && series.base.is_some() && series.cpu_base.is_some());
        assert!(series.labels.is_empty());
    }

    #[test]
    fn faults_belong_to_their_observation() {
        let mut recorder = recorder(Detail::Full, 4);
        let fault = || {
            // SAFETY: one fresh private page, whose address no other code has, is written and unmapped.
            unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let page =
                    libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
                assert_ne!(page, libc::MAP_FAILED);
                page.cast::<u8>().write_volatile(1);
                libc::munmap(page, 4096);
            }
        };
        fault();
        recorder.repeat(1, fault);
        let series = recorder.finish("fault");
        assert!(series.observations[0].minor >= 1);
    }

    #[test]
    fn stamps_record_only_times() {
        let mut recorder = recorder(Detail::Stamps, 5);
        recorder.repeat(5, || ());
        assert!(recorder.cpu_base.is_none());
        let series = recorder.finish("stamps");
        assert!(series.observations.iter().all(|one| one.cpu_ns.is_none() && one.steal_ns.is_none()));
        assert_eq!(series.starts().unwrap().len(), 5);
    }

    #[test]
    fn observations_without_space_are_counted() {
        let mut recorder = recorder(Detail::Stamps, 2);
        let mut runs = 0;
        recorder.repeat(5, || runs += 1);
        assert_eq!((runs, recorder.count(), recorder.left(), recorder.lost()), (5, 2, 0, 3));
        assert_eq!(recorder.finish("small").labels, ["lost=3"]);
        for capacity in [0, OBSERVATIONS_MAX + 1] {
            let clock = Clock::open(ClockKind::Monotonic).unwrap();
            let error = Recorder::new(clock, Detail::Stamps, capacity).unwrap_err();
            assert_eq!(error, RecordError::Capacity(capacity));
        }
    }

    #[test]
    fn batches_run_and_inputs_are_made_outside() {
        let mut recorder = recorder(Detail::Stamps, 4);
        recorder.set_batch(7);
        let mut runs = 0;
        recorder.repeat(1, || runs += 1);
        let (mut made, mut used) = (0, 0);
        recorder.time_with(
            || {
                made += 1;
                made
            },
            |number| {
                used += number;
                number
            },
        );
        assert_eq!((runs, made, used), (7, 7, 28));
        let series = recorder.finish("batch");
        assert_eq!((series.batch, series.observations.len()), (7, 2));
    }

    #[test]
    fn recording_allocates_nothing() {
        let mut recorder = recorder(Detail::Full, 100);
        let place = recorder.raws.as_ptr();
        recorder.repeat(100, || ());
        assert_eq!((recorder.raws.as_ptr(), recorder.count()), (place, 100));
    }

    #[test]
    fn marks_that_fall_among_the_observations_are_the_series() {
        let kind = Kind::named("test recorder").unwrap();
        let mut recorder = recorder(Detail::Stamps, 10);
        recorder.repeat(1, || marks::record(kind, marks::now(), marks::now()));
        let series = recorder.finish("marked");
        let own: Vec<_> = series.marks.iter().filter(|mark| mark.cause == kind.cause()).collect();
        assert_eq!(own.len(), 1);
        let only = &series.observations[0];
        // Both figures are rounded to nanoseconds.
        assert!(
            own[0].start_ns + 2 >= only.start_ns && own[0].end_ns <= end_ns(only) + 4,
            "{own:?} {only:?}"
        );
    }

    #[test]
    fn steal_is_what_neither_waiting_nor_sleeping_explains() {
        let preempted = Raw { waited_ns: 5000, involuntary: 1, ..Raw::EMPTY };
        assert_eq!(steal_ns(5000.0, &preempted), Some(0.0));
        assert_eq!(steal_ns(19_000.0, &preempted), Some(14_000.0));
        assert_eq!(steal_ns(-80.0, &Raw::EMPTY), Some(0.0));
        assert_eq!(steal_ns(3e6, &Raw::EMPTY), Some(3e6));
        assert_eq!(steal_ns(3e6, &Raw { voluntary: 1, ..Raw::EMPTY }), None);
        assert_eq!(steal_ns(3e6, &Raw { waited_ns: UNKNOWN, ..Raw::EMPTY }), None);
    }
}
