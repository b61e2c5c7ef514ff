//! Time for decisions, not for measuring: the kernel's coarse monotonic clock, some nanoseconds to read.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since boot, as fresh as the kernel's last tick (1 to 10 ms).
#[inline]
pub fn now_ms() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
