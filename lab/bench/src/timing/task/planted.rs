//! The tasks that check whether the analysis finds periodic disturbances of known rate.
//!
//! - A real disturbance: a kernel timer interrupts the measuring thread at a known rate, and the handler
//!   keeps the processor for a while. Like the slices of a collector, the interrupts fall within
//!   operations or between them, on time or late.
//! - A computed disturbance: the same time is added to an undisturbed series at exact moments.
//!
//! A period found in the undisturbed series is a false alarm, with two exceptions: a known tick, and a period
//! that also occurs in the series just before or after. (A busy machine has other periods: while it runs, a
//! thread that sleeps for a millisecond again and again causes a disturbance of 4 µs 960 times a second.)
//!
//! Known ticks are the kernel's and, in a virtual machine, the host's. The host's rate cannot be read, so
//! every period at a common kernel tick rate counts as the host's. (Example: a guest that ticks at 250 Hz
//! lost 34 µs a hundred times a second. The time was charged to the thread, although the guest counted no
//! switch and no interrupt.)

use super::{Given, TaskError};
use crate::Metrics;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vellum_measure::{Known, Machine, Period, Series, Spectrum};
use vellum_timing::clock::Clock;
use vellum_timing::record::{Detail, Recorder};

/// Relative distance from the planted period within which a found period counts as the planted one.
const NEAR: f64 = 0.01;
/// Common rates of a kernel's tick (`CONFIG_HZ`).
const HOST_HZ: [u32; 4] = [100, 250, 300, 1000];
/// The phase of the computed disturbance: not at the first observation.
const PHASE: f64 = 0.37;
/// Observations between two checks of the time.
const STRETCH: usize = 32;
/// Least time of an observation, in nanoseconds, for the size of the buffer: shorter observations shorten
/// the series.
const SHORTEST_NS: u64 = 10_000;

/// Rates of the disturbances computed into the undisturbed series.
const RECKONED_HZ: [u64; 2] = [250, 97];

/// Time for which the handler keeps the processor, in nanoseconds.
static BURDEN_NS: AtomicU64 = AtomicU64::new(0);
/// Number of calls of the handler.
static INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);

/// Measures a kernel for `ms` while a timer disturbs it `hz` times a second for `plant_us` each time.
pub(super) fn planted(given: &Given) -> Result<Metrics, TaskError> {
    let (hz, plant_us) = (given.number("hz")?, given.number("plant_us")?);
    let timer = Disturber::start(hz, plant_us * 1000)?;
    let series = record(given);
    drop(timer);
    let series = series?;
    let mut metrics = Metrics::new();
    metrics.set("interruptions", INTERRUPTIONS.load(Ordering::Relaxed) as f64);
    look(&mut metrics, "", &series, hz);
    metrics.set("observations", series.observations.len() as f64);
    Ok(metrics)
}

/// Measures a kernel for `ms` without disturbances, between two equally long series for comparison, and
/// adds disturbances to the result.
pub(super) fn undisturbed(given: &Given) -> Result<Metrics, TaskError> {
    let plant_us = given.number("plant_us")?;
    let (before, series, after) = (record(given)?, record(given)?, record(given)?);
    let mut metrics = Metrics::new();
    let spectrum = spectrum(&series);
    let periods = spectrum.as_ref().map_or(&[][..], |spectrum| &spectrum.periods);
    let unknown = periods.iter().filter(|period| period.whose().is_none());
    let witnesses: Vec<f64> = [before, after].iter().flat_map(frequencies).collect();
    let again =
        |period: &&Period| witnesses.iter().any(|other| (other / period.frequency - 1.0).abs() <= NEAR);
    let (others, unexplained): (Vec<&Period>, Vec<&Period>) = unknown.partition(again);
    metrics.set("others", others.len() as f64);
    metrics.set("unexplained", unexplained.len() as f64);
    let source = |period: &Period| period.source.as_ref().map(|found| found.known.tick);
    for (name, tick) in [("kernel_tick", true), ("host_tick", false)] {
        metrics.set(name, periods.iter().filter(|period| source(period) == Some(tick)).count() as f64);
    }
    // The periods, for readers of the JSON.
    for (place, period) in unexplained.iter().enumerate() {
        metrics.set(&format!("unexplained_{place}_hz"), period.frequency);
        metrics.set(&format!("unexplained_{place}_typical_ns"), period.typical);
        metrics.set(&format!("unexplained_{place}_false_alarm"), period.false_alarm);
    }
    metrics.set("observations", series.observations.len() as f64);
    for hz in RECKONED_HZ {
        let planted = with_beat(&series, hz as f64, plant_us as f64 * 1e3);
        look(&mut metrics, &format!("_{hz}hz"), &planted, hz);
    }
    Ok(metrics)
}

/// Searches for the planted period and reports the result.
fn look(metrics: &mut Metrics, name: &str, series: &Series, hz: u64) {
    let hz = hz as f64;
    let spectrum = spectrum(series);
    let periods = spectrum.as_ref().map_or(&[][..], |spectrum| &spectrum.periods);
    let found = periods.iter().find(|period| (period.frequency / hz - 1.0).abs() <= NEAR);
    metrics.set(&format!("found{name}"), f64::from(u8::from(found.is_some())));
    if let Some(period) = found {
        metrics.set(&format!("period_error{name}_percent"), (period.period * hz - 1.0).abs() * 100.0);
        metrics.set(&format!("typical{name}_ns"), period.typical);
        metrics.set(&format!("beats{name}_percent"), period.beats * 100.0);
    }
}

/// The frequencies of the periods in a series, in cycles per second.
fn frequencies(series: &Series) -> Vec<f64> {
    let spectrum = spectrum(series);
    spectrum.map_or_else(Vec::new, |found| found.periods.iter().map(|period| period.frequency).collect())
}

fn spectrum(series: &Series) -> Option<Spectrum> {
    Spectrum::of_series(series, &known(series.machine.as_ref()))
}

/// The ticks of kernel and host, which are not disturbances.
fn known(machine: Option<&Machine>) -> Vec<Known> {
    let Some(machine) = machine else { return Vec::new() };
    let hosts = HOST_HZ.into_iter().filter(|hz| machine.hypervisor.is_some() && machine.hz != Some(*hz));
    let hosts = hosts.map(|hz| Known::new("tick of the host", f64::from(hz)));
    machine.hz.map(Known::tick).into_iter().chain(hosts).collect()
}

/// Runs the kernel repeatedly for `ms`.
fn record(given: &Given) -> Result<Series, TaskError> {
    let (kernel, size, ms) = (given.kernel()?, given.number("a")?, given.number("ms")?);
    let capacity = (ms * 1_000_000 / SHORTEST_NS).max(STRETCH as u64) as usize;
    let mut recorder = Recorder::new(Clock::best()?, Detail::Full, capacity)?;
    let (began, time) = (Instant::now(), Duration::from_millis(ms));
    while began.elapsed() < time && recorder.left() >= STRETCH {
        recorder.repeat(STRETCH, || black_box(kernel.run(black_box(size))));
    }
    Ok(recorder.finish("planted"))
}

/// The series with `burden_ns` added to the observation at each beat.
fn with_beat(series: &Series, hz: f64, burden_ns: f64) -> Series {
    let first = series.observations.first().map_or(0, |one| one.start_ns);
    let beats_before = |ns: f64| (ns * hz / 1e9 - PHASE).ceil().max(0.0);
    let mut planted = series.clone();
    for one in &mut planted.observations {
        let begin = (one.start_ns - first) as f64;
        one.wall_ns += burden_ns * (beats_before(begin + one.wall_ns) - beats_before(begin));
    }
    planted
}

/// A timer that interrupts the thread that started it. There is one at a time.
struct Disturber {
    timer: libc::timer_t,
}

/// The timer's signal.
const SIGNAL: libc::c_int = libc::SIGUSR1;

extern "C" fn burden(_: libc::c_int) {
    // The handler only reads the clock, which is async-signal-safe.
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call fills the timespec, which is a live local variable.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let end = now() + BURDEN_NS.load(Ordering::Relaxed);
    while now() < end {}
    INTERRUPTIONS.fetch_add(1, Ordering::Relaxed);
}

impl Disturber {
    fn start(hz: u64, burden_ns: u64) -> Result<Self, TaskError> {
        let fail =
            |operation| move || TaskError::System { operation, source: std::io::Error::last_os_error() };
        BURDEN_NS.store(burden_ns, Ordering::Relaxed);
        let period_ns = (1e9 / hz.max(1) as f64).round() as i64;
        let period = libc::timespec { tv_sec: period_ns / 1_000_000_000, tv_nsec: period_ns % 1_000_000_000 };
        // SAFETY: the records are local, consist of plain numbers for which zero is valid, and are read and
        // filled by the calls. The handler makes only async-signal-safe calls. The signal goes to this
        // thread, which exists.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = burden as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            if libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut()) != 0 {
                return Err(fail("taking the disturbing signal")());
            }
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::ptr::null_mut();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
                return Err(fail("making the disturbing timer")());
            }
            let disturber = Disturber { timer };
            let times = libc::itimerspec { it_interval: period, it_value: period };
            if libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut()) != 0 {
                return Err(fail("starting the disturbing timer")());
            }
            Ok(disturber)
        }
    }
}

impl Drop for Disturber {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is deleted once. The handler stays installed, since a signal may
        // still be pending.
        unsafe { libc::timer_delete(self.timer) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Observation;

    #[test]
    fn a_computed_beat_falls_on_the_current_observation() {
        // Ten consecutive observations of 1 ms. 250 Hz has its beats at 0.37, 1.37 and 2.37 periods of 4
        // ms: 1.48, 5.48, 9.48 ms.
        let observation =
            |n: u64| Observation { start_ns: 7 + n * 1_000_000, wall_ns: 1e6, ..Observation::default() };
        let series = Series { observations: (0..10).map(observation).collect(), ..Series::default() };
        let walls = with_beat(&series, 250.0, 5.0).walls();
        let hit: Vec<usize> = (0..10).filter(|n| walls[*n] > 1e6).collect();
        assert_eq!(hit, [1, 5, 9]);
        assert!(hit.iter().all(|n| walls[*n] == 1e6 + 5.0));
    }

    #[test]
    fn the_timer_interrupts_and_stops() {
        let timer = Disturber::start(1000, 1000).unwrap();
        let began = Instant::now();
        while INTERRUPTIONS.load(Ordering::Relaxed) < 3 {
            assert!(began.elapsed() < DEADLINE, "no interruption in {DEADLINE:?}");
        }
        drop(timer);
    }

    /// The deadline turns a hang into a failure.
    const DEADLINE: Duration = Duration::from_secs(60);
}
