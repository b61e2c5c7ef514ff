//! Readings of the processor's time-stamp counter, and of the CPU time of this process.
//!
//! The papers count cycles, and so does this file on x86-64. There the counter runs at one constant rate,
//! close to the processor's nominal frequency. Fences around each reading keep the processor from moving
//! work across it. On other processors the unit is nanoseconds; [`UNIT`] names the unit in every table.

use std::time::Duration;

/// The unit of [`now`].
#[cfg(target_arch = "x86_64")]
pub(crate) const UNIT: &str = "cycles";
/// The unit of [`now`].
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const UNIT: &str = "ns";

/// Number of readings to find the cost of one reading.
const BASE_READINGS: usize = 101;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn now() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both instructions; they touch no memory.
    unsafe {
        _mm_lfence();
        let time = _rdtsc();
        _mm_lfence();
        time
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn now() -> u64 {
    of_clock(libc::CLOCK_MONOTONIC).as_nanos() as u64
}

/// The difference of two readings with nothing between them, subtracted from every measurement.
pub(crate) fn base() -> u64 {
    let mut seen = [0; BASE_READINGS];
    for slot in &mut seen {
        let start = now();
        *slot = now() - start;
    }
    seen.sort_unstable();
    seen[BASE_READINGS / 2]
}

/// CPU time, user and system, of this process so far.
pub(crate) fn cpu() -> Duration {
    of_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn of_clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the record lives across the call, which fills it; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
