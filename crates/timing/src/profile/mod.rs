//! Profiles by sampling: where the time of a region went, by symbol.
//!
//! ```no_run
//! use vellum_timing::profile::{self, ProfileOptions};
//!
//! let profiler = profile::on(&ProfileOptions::default())?;
//! // … the region …
//! let profile = profiler.off();
//! print!("{profile}");
//! # Ok::<(), profile::ProfileError>(())
//! ```
//!
//! ```text
//! total: 1460 in kernel text: 120    outside kernel text: 1340
//!    ms   %    sym
//!   130   8.9  markheap
//! ```
//!
//! # How samples are taken
//!
//! The kernel's `cpu-clock` event runs while the thread runs, and interrupts it a thousand times a second. A
//! sample is the address that was interrupted. The event also samples the kernel's functions, with permission
//! (`perf_event_paranoid` 1 or less, or `CAP_PERFMON`); without it, only the program's. If no event is
//! available (a filter, a container), a timer's signal (`SIGPROF`) takes its place. The signal samples only
//! the program, charges system calls to the instruction behind them, and comes at most once a tick of the
//! kernel. The [`Profile`] records the source that was used, and if the kernel was sampled.
//!
//! Samples are random: the error of a symbol with n samples is about √n.
//!
//! Source: Bates surrounds the loop with `profon()` and `profoff()`, which drive a kernel profiler, and
//! prints total, milliseconds, percent and symbol. Departures: program and kernel share one table; samples
//! are of the region's own thread or process, not of the whole machine.

pub(crate) mod names;
pub(crate) mod perf;
mod signal;
mod table;

pub use perf::Refused;
pub use table::{Profile, Row};

use crate::clock::read;
use std::fmt;

/// The usual number of samples a second. It is no multiple of a kernel's tick, to avoid samples in step with
/// ticks.
pub const HZ: u32 = 997;
/// The least rate.
pub const HZ_MIN: u32 = 1;
/// The highest rate: beyond it, sampling would measure itself.
pub const HZ_MAX: u32 = 20_000;

/// The threads whose time is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scope {
    /// The calling thread.
    #[default]
    Thread,
    /// All threads of the process, including those that start later.
    Process,
}

/// The source of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// The kernel's `cpu-clock` event.
    Event,
    /// A timer's signal.
    Signal,
}

impl fmt::Display for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Sampler::Event => "cpu-clock",
            Sampler::Signal => "SIGPROF",
        })
    }
}

/// Options of a profile.
#[derive(Clone, Copy, Debug)]
pub struct ProfileOptions {
    /// The threads to sample.
    pub scope: Scope,
    /// Samples a second of CPU time.
    pub hz: u32,
    /// The source of the samples; if `None`, the event if it is available, else the signal.
    pub sampler: Option<Sampler>,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        ProfileOptions { scope: Scope::Thread, hz: HZ, sampler: None }
    }
}

/// Errors of starting a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The rate is out of range.
    #[error("{0} samples a second: use {HZ_MIN} to {HZ_MAX}")]
    Rate(u32),
    /// The kernel refused the event.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The timer could not be made.
    #[error("no timer can be had to sample by ({call}: {source})")]
    Timer {
        /// The call that failed.
        call: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another profile uses the signal; a process has only one.
    #[error("another region is being profiled by signals: end that first")]
    Busy,
}

/// Samples by address, in order.
#[derive(Debug, Default)]
struct Taken {
    samples: Vec<Sample>,
    lost: u64,
}

/// An address with one sample or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    address: u64,
    in_kernel: bool,
    weight: u64,
}

enum Running {
    Event(perf::Sampling),
    Signal(Box<signal::Sampling>),
}

/// A running profile of a region.
#[must_use = "a profiler that is not switched off gives no profile"]
pub struct Profiler {
    running: Running,
    scope: Scope,
    hz: u32,
    sees_kernel: bool,
    cpu_ns: u64,
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler").field("scope", &self.scope).field("hz", &self.hz).finish_non_exhaustive()
    }
}

/// Starts the profile: `profon`.
///
/// # Errors
/// If no source of samples is available, or the rate is out of range.
pub fn on(options: &ProfileOptions) -> Result<Profiler, ProfileError> {
    let ProfileOptions { scope, hz, sampler } = *options;
    if !(HZ_MIN..=HZ_MAX).contains(&hz) {
        return Err(ProfileError::Rate(hz));
    }
    let event = match sampler {
        Some(Sampler::Signal) => None,
        Some(Sampler::Event) => Some(perf::Sampling::prepare(scope, hz)?),
        None => perf::Sampling::prepare(scope, hz).ok(),
    };
    let (running, sees_kernel) = match event {
        Some(event) => {
            let sees_kernel = event.sees_kernel();
            (Running::Event(event), sees_kernel)
        }
        None => (Running::Signal(Box::new(signal::Sampling::prepare(scope, hz)?)), false),
    };
    let mut profiler = Profiler { running, scope, hz, sees_kernel, cpu_ns: 0 };
    profiler.cpu_ns = profiler.cpu_now();
    match &mut profiler.running {
        Running::Event(event) => event.start()?,
        Running::Signal(signal) => signal.start()?,
    }
    Ok(profiler)
}

impl Profiler {
    /// Ends the region and looks up the names of the samples: `profoff`.
    #[must_use]
    pub fn off(self) -> Profile {
        let cpu_after = self.cpu_now();
        let cpu_ns = cpu_after.saturating_sub(self.cpu_ns);
        let (sampler, taken) = match self.running {
            Running::Event(event) => (Sampler::Event, event.stop()),
            Running::Signal(signal) => (Sampler::Signal, signal.stop()),
        };
        table::profile(taken, sampler, self.hz, self.sees_kernel, cpu_ns)
    }

    fn cpu_now(&self) -> u64 {
        let clock = match self.scope {
            Scope::Thread => libc::CLOCK_THREAD_CPUTIME_ID,
            Scope::Process => libc::CLOCK_PROCESS_CPUTIME_ID,
        };
        read(clock).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::sync::{Mutex, PoisonError};

    /// Signals belong to the process: tests that use them run one at a time.
    static TURN: Mutex<()> = Mutex::new(());

    #[inline(never)]
    fn the_busy_function(cpu_ms: u64) -> u64 {
        let until = read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap() + cpu_ms * 1_000_000;
        let mut sum = 1u64;
        while read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap() < until {
            sum = black_box(the_inner_function(black_box(sum)));
        }
        sum
    }

    #[inline(never)]
    fn the_inner_function(mut sum: u64) -> u64 {
        // The loop makes no call, even without optimisation, and cannot be removed: each turn needs the last.
        let mut turn = 0;
        while turn < 200_000 {
            sum ^= sum << 13;
            sum ^= sum >> 7;
            sum ^= sum << 17;
            turn += 1;
        }
        sum
    }

    fn share_of_inner(profile: &Profile) -> f64 {
        let rows = profile.rows.iter().filter(|row| row.symbol.contains("the_inner_function"));
        rows.map(|row| row.percent).sum()
    }

    /// A profile of events, where the kernel gives them.
    fn by_events(scope: Scope) -> Option<Profiler> {
        let options = ProfileOptions { scope, sampler: Some(Sampler::Event), ..ProfileOptions::default() };
        on(&options).map_err(|why| vellum_skip::skip(format_args!("{why}"))).ok()
    }

    #[test]
    fn the_function_that_works_is_named() {
        for scope in [Scope::Thread, Scope::Process] {
            let Some(profiler) = by_events(scope) else { continue };
            black_box(the_busy_function(120));
            let profile = profiler.off();
            assert_eq!(profile.sampler, Sampler::Event);
            assert!(profile.samples > 0, "{profile:?}");
            assert_eq!(profile.rows.iter().map(|row| row.samples).sum::<u64>(), profile.samples);
            assert!(profile.cpu_ns >= 120_000_000, "{}", profile.cpu_ns);
            // The process's profile includes the threads of other tests.
            let least = if scope == Scope::Thread { 50.0 } else { 0.0 };
            assert!(share_of_inner(&profile) > least, "{profile}");
        }
    }

    #[test]
    fn threads_that_come_and_go_are_in_the_processs_profile() {
        // Two threads: the first is there at the start and ends early, the second starts later.
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let early = std::thread::spawn(move || wait.recv().is_ok());
        let Some(profiler) = by_events(Scope::Process) else { return };
        go.send(()).unwrap();
        assert!(early.join().unwrap());
        std::thread::spawn(|| black_box(the_busy_function(100))).join().unwrap();
        let profile = profiler.off();
        assert!(share_of_inner(&profile) > 0.0, "{profile}");
    }

    #[test]
    fn a_signal_also_names_the_function() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let options = ProfileOptions { sampler: Some(Sampler::Signal), ..ProfileOptions::default() };
        let profiler = on(&options).unwrap();
        assert!(matches!(on(&options), Err(ProfileError::Busy)));
        black_box(the_busy_function(200));
        let profile = profiler.off();
        assert_eq!(
            (profile.sampler, profile.kernel_samples, profile.sees_kernel),
            (Sampler::Signal, 0, false)
        );
        assert!(profile.samples > 0 && share_of_inner(&profile) > 50.0, "{profile}");
    }

    #[test]
    fn a_dropped_profiler_stops_sampling() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let options = ProfileOptions { sampler: Some(Sampler::Signal), ..ProfileOptions::default() };
        drop(on(&options).unwrap());
        black_box(the_busy_function(20));
        assert!(on(&options).is_ok(), "the timer is free again");
    }

    #[test]
    fn rates_out_of_bounds_are_refused() {
        for hz in [0, HZ_MAX + 1] {
            let error = on(&ProfileOptions { hz, ..ProfileOptions::default() }).unwrap_err();
            assert!(error.to_string().contains("20000"), "{error}");
        }
    }
}
