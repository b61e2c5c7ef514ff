//! Opens clocks and takes stamps (readings in ticks); finds the length of a clock's ticks and its resolution.
//!
//! ```text
//!   Clock::open(kind) ──▶ Clock ── stamp() ─▶ ticks ── nanoseconds(ticks) ─▶ ns
//!      │  refused when the kind cannot be trusted here       ▲
//!      ├─ tsc: invariant? trusted by the kernel? ────────────┤ calibrated against CLOCK_MONOTONIC_RAW
//!      └─ resolution: the clock's step, found by experiment ─┘
//! ```
//!
//! | kind | time of a stamp | clock |
//! | --- | --- | --- |
//! | `tsc` | about 10 ns | the time-stamp counter as the processor executes it, out of order |
//! | `tsc-fenced` | about 20 ns | `tsc` behind a load fence: all earlier instructions have finished |
//! | `monotonic` | about 25 ns | `CLOCK_MONOTONIC`, steered by the network time daemon |
//! | `monotonic-raw` | about 25 ns | `CLOCK_MONOTONIC_RAW`, not steered |
//! | `thread-cpu` | a system call | `CLOCK_THREAD_CPUTIME_ID`: stops while the thread does not run |
//!
//! Source: Bates 1999, section "Improving the Results": reading the clock must take a few instructions. A
//! stamp read as text from a file took hundreds of microseconds and let the scheduler run other processes.
//! The first four kinds here make no system call.
//!
//! Invariants:
//! - a [`Clock`] exists only if its kind can be trusted;
//! - ticks of one clock have no meaning for another clock;
//! - [`Clock::stamp`] is the only way to take a stamp; it is inlined, and the compiler moves no memory access
//!   across it.

mod anchor;
mod base;
mod resolution;
mod tsc;

pub use anchor::Anchor;
pub(crate) use base::base_of;
pub use base::{BASE_COUNT, BASE_COUNT_MAX, BASE_COUNT_MIN, measure_base_on};
pub use tsc::{Calibration, Distrust};

use std::fmt;
use std::str::FromStr;

/// The source of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockKind {
    /// The time-stamp counter, unfenced.
    Tsc,
    /// The time-stamp counter behind a load fence.
    TscFenced,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`.
    MonotonicRaw,
    /// `CLOCK_THREAD_CPUTIME_ID`.
    ThreadCpu,
}

impl ClockKind {
    /// Every kind, the cheapest first.
    pub const ALL: [ClockKind; 5] = [
        ClockKind::Tsc,
        ClockKind::TscFenced,
        ClockKind::Monotonic,
        ClockKind::MonotonicRaw,
        ClockKind::ThreadCpu,
    ];

    /// The stable name, in options and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().0
    }

    /// The kernel's number of the clock; the counter has none.
    #[must_use]
    pub const fn id(self) -> Option<libc::clockid_t> {
        self.facts().1
    }

    const fn facts(self) -> (&'static str, Option<libc::clockid_t>) {
        match self {
            ClockKind::Tsc => ("tsc", None),
            ClockKind::TscFenced => ("tsc-fenced", None),
            ClockKind::Monotonic => ("monotonic", Some(libc::CLOCK_MONOTONIC)),
            ClockKind::MonotonicRaw => ("monotonic-raw", Some(libc::CLOCK_MONOTONIC_RAW)),
            ClockKind::ThreadCpu => ("thread-cpu", Some(libc::CLOCK_THREAD_CPUTIME_ID)),
        }
    }
}

impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ClockKind {
    type Err = ClockError;

    fn from_str(text: &str) -> Result<Self, ClockError> {
        let found = ClockKind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| ClockError::Unknown(text.to_owned()))
    }
}

/// Errors of opening a clock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// No clock has this name.
    #[error("no clock is called {0:?}; there are tsc, tsc-fenced, monotonic, monotonic-raw and thread-cpu")]
    Unknown(String),
    /// The time-stamp counter cannot be trusted.
    #[error("the time-stamp counter cannot be used: {0}; use the clock monotonic-raw instead")]
    Distrusted(Distrust),
    /// The kernel lacks the clock, or a filter forbids it.
    #[error("clock {kind} cannot be read (errno {errno}); use another clock")]
    Unreadable {
        /// The kind of the clock.
        kind: ClockKind,
        /// The kernel's error number.
        errno: i32,
    },
    /// The requested number of empty timings is out of range.
    #[error("a base of {0} observations: use {BASE_COUNT_MIN} to {BASE_COUNT_MAX}")]
    BaseCount(usize),
}

/// A trusted clock, with the length of its ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    kind: ClockKind,
    ns_per_tick: f64,
    ppm: f64,
    step_ticks: u64,
}

impl Clock {
    /// The clock of this kind. In each process, the first one on the time-stamp counter takes
    /// [`Calibration::TAKES`].
    ///
    /// # Errors
    /// If the kind cannot be trusted or read on this machine.
    pub fn open(kind: ClockKind) -> Result<Clock, ClockError> {
        let (ns_per_tick, ppm) = match kind.id() {
            Some(id) => {
                read(id).map_err(|errno| ClockError::Unreadable { kind, errno })?;
                (1.0, 0.0)
            }
            None => {
                let calibration = Calibration::of_this_machine().map_err(ClockError::Distrusted)?;
                (calibration.ns_per_tick, calibration.ppm)
            }
        };
        let mut clock = Clock { kind, ns_per_tick, ppm, step_ticks: 1 };
        clock.step_ticks = resolution::step_ticks(&clock);
        Ok(clock)
    }

    /// The fenced time-stamp counter if it can be trusted, else `CLOCK_MONOTONIC_RAW`.
    ///
    /// # Errors
    /// If neither can be read.
    pub fn best() -> Result<Clock, ClockError> {
        Clock::open(ClockKind::TscFenced).or_else(|_| Clock::open(ClockKind::MonotonicRaw))
    }

    /// The source of its stamps.
    #[must_use]
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// The present time, in ticks.
    #[inline(always)]
    #[must_use]
    pub fn stamp(&self) -> u64 {
        match self.kind {
            ClockKind::Tsc => tsc::now(),
            ClockKind::TscFenced => tsc::now_fenced(),
            kind => system(kind),
        }
    }

    /// The length of `ticks` in nanoseconds.
    #[inline]
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// The nanoseconds between two stamps; 0 if the second is smaller.
    #[inline]
    #[must_use]
    pub fn between(&self, first: u64, second: u64) -> f64 {
        self.nanoseconds(second.saturating_sub(first))
    }

    /// The length of one tick in nanoseconds.
    #[must_use]
    pub fn ns_per_tick(&self) -> f64 {
        self.ns_per_tick
    }

    /// The error bound of [`Clock::ns_per_tick`] against `CLOCK_MONOTONIC_RAW`, in parts per million; 0 for
    /// the kernel's clocks.
    #[must_use]
    pub fn ppm(&self) -> f64 {
        self.ppm
    }

    /// The clock's step in nanoseconds, found by experiment: the least difference between two different
    /// readings. The numbers that a clock returns may be finer than its steps.
    #[must_use]
    pub fn step_ns(&self) -> f64 {
        self.nanoseconds(self.step_ticks)
    }
}

/// A stamp of one of the kernel's clocks, not inlined so that the counter's path stays small.
#[inline(never)]
fn system(kind: ClockKind) -> u64 {
    // The clock was readable when it was opened, so it still is.
    kind.id().and_then(|id| read(id).ok()).unwrap_or(0)
}

/// Nanoseconds of one of the kernel's clocks, or errno.
#[inline]
pub fn read(id: libc::clockid_t) -> Result<u64, i32> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a local timespec, which the call writes; the kernel checks `id`.
    if unsafe { libc::clock_gettime(id, &raw mut time) } == 0 {
        Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    } else {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

/// The processor time of the calling thread, in nanoseconds.
#[inline]
pub fn thread_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// The time of `CLOCK_MONOTONIC` in nanoseconds, the clock of the starts of series and marks.
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clocks available here: all of the kernel's, and the counter if it is invariant.
    pub(super) fn all() -> impl Iterator<Item = Clock> {
        ClockKind::ALL.into_iter().filter_map(|kind| match Clock::open(kind) {
            Ok(clock) => Some(clock),
            Err(ClockError::Distrusted(why)) => {
                vellum_skip::skip(format_args!("{kind}: {why}"));
                None
            }
            Err(other) => panic!("{kind}: {other}"),
        })
    }

    #[test]
    fn stamps_never_go_back() {
        for clock in all() {
            let mut last = clock.stamp();
            for _ in 0..10_000 {
                let now = clock.stamp();
                assert!(now >= last, "{:?}: {now} after {last}", clock.kind());
                last = now;
            }
        }
    }

    #[test]
    fn every_clock_sees_the_same_computation() {
        // Each reading is bracketed by CLOCK_MONOTONIC_RAW: the clock's difference must lie between the inner
        // and the outer bracket. A thousandth is allowed for steering and calibration.
        for clock in all().filter(|clock| clock.kind() != ClockKind::ThreadCpu) {
            let raw = || read(libc::CLOCK_MONOTONIC_RAW).unwrap();
            let (outer, first) = (raw(), clock.stamp());
            let inner = raw();
            while raw() - inner < 2_000_000 {}
            let inner = (raw() - inner) as f64;
            let seen = clock.between(first, clock.stamp());
            let outer = (raw() - outer) as f64;
            assert!(inner * 0.999 <= seen && seen <= outer * 1.001, "{clock:?}: {inner} {seen} {outer}");
        }
    }

    #[test]
    fn the_threads_clock_stops_while_it_sleeps() {
        let clock = Clock::open(ClockKind::ThreadCpu).unwrap();
        let first = clock.stamp();
        let wall = monotonic_ns();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let slept = (monotonic_ns() - wall) as f64;
        assert!(clock.between(first, clock.stamp()) < slept);
    }

    #[test]
    fn clocks_of_a_kind_have_one_step() {
        for clock in all() {
            let again = Clock::open(clock.kind()).unwrap();
            assert_eq!(again.step_ns(), clock.step_ns());
        }
        assert!(ClockKind::ALL.iter().enumerate().all(|(index, kind)| *kind as usize == index));
    }

    #[test]
    fn time_that_went_back_counts_as_none() {
        let clock = Clock::open(ClockKind::Monotonic).unwrap();
        assert_eq!(clock.between(7, 3), 0.0);
        assert_eq!(clock.between(3, 7), 4.0);
    }
}
