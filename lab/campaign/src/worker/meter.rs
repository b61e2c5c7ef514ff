//! Measures the cost of a workload: clocks, CPU time, faults and resident memory of this process.
//!
//! - Peak memory is `VmHWM` of /proc/self/status. getrusage's figure survives `exec`, so it would include
//!   the parent's peak.
//! - Current memory is `Rss` of smaps_rollup, which walks the page tables and is exact. The kernel's
//!   running counters lag by a few dozen pages per CPU.
//! - Reading these figures allocates nothing.

use crate::Metrics;
use std::ffi::CStr;
use std::time::Instant;

/// A stopwatch, started before and stopped after the work to measure.
#[derive(Debug)]
pub struct Meter {
    clock: Instant,
    usage: libc::rusage,
}

impl Meter {
    /// Starts all clocks; the time is read last.
    #[must_use]
    pub fn start() -> Self {
        let usage = usage();
        Self { clock: Instant::now(), usage }
    }

    /// `wall_ns`, `cpu_ns` (user and system, all threads), `user_ns`, `sys_ns` and `minor_faults` since the
    /// start.
    #[must_use]
    pub fn stop(self) -> Metrics {
        let wall = self.clock.elapsed();
        let now = usage();
        let user = nanos(now.ru_utime) - nanos(self.usage.ru_utime);
        let sys = nanos(now.ru_stime) - nanos(self.usage.ru_stime);
        let mut metrics = Metrics::new();
        metrics.set("wall_ns", wall.as_nanos() as f64);
        metrics.set("user_ns", user);
        metrics.set("sys_ns", sys);
        metrics.set("cpu_ns", user + sys);
        metrics.set("minor_faults", (now.ru_minflt - self.usage.ru_minflt) as f64);
        metrics
    }
}

fn usage() -> libc::rusage {
    // SAFETY: rusage is plain numbers, for which zero is valid; the call fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    }
}

fn nanos(t: libc::timeval) -> f64 {
    t.tv_sec as f64 * 1e9 + t.tv_usec as f64 * 1e3
}

/// Highest resident memory of this process so far, bytes.
#[must_use]
pub fn peak_bytes() -> f64 {
    field(c"/proc/self/status", b"VmHWM:")
}

/// Resident memory of this process now, bytes.
#[must_use]
pub fn resident_bytes() -> f64 {
    field(c"/proc/self/smaps_rollup", b"Rss:")
}

/// The number of kilobytes after `name` in a file of /proc, in bytes; NaN without such a line.
fn field(path: &CStr, name: &[u8]) -> f64 {
    let mut text = [0u8; 4096];
    let got = read(path, &mut text);
    let text = &text[..got];
    let Some(at) = text.windows(name.len()).position(|w| w == name) else { return f64::NAN };
    let digits = text[at + name.len()..].iter().skip_while(|b| b.is_ascii_whitespace());
    let kilobytes = digits.take_while(|b| b.is_ascii_digit()).fold(0u64, |n, b| n * 10 + u64::from(b - b'0'));
    (kilobytes << 10) as f64
}

fn read(path: &CStr, into: &mut [u8]) -> usize {
    // SAFETY: the path is a C string, `read` gets the buffer's true length, and the descriptor is closed
    // again.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return 0;
        }
        let mut filled = 0;
        while filled < into.len() {
            let got = libc::read(file, into[filled..].as_mut_ptr().cast(), into.len() - filled);
            if got <= 0 {
                break;
            }
            filled += got as usize;
        }
        libc::close(file);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_memory_is_resident_and_raises_the_peak() {
        // Other tests share the process, so only lower bounds hold.
        const HELD: usize = 48 << 20;
        let area = crate::worker::area::Area::<u8>::new(HELD);
        assert!(resident_bytes() >= HELD as f64);
        drop(area);
        assert!(peak_bytes() >= HELD as f64);
        assert!(field(c"/proc/self/status", b"NoSuchField:").is_nan());
        assert!(field(c"/nonexistent", b"Rss:").is_nan());
    }

    #[test]
    fn the_meter_counts_time_and_faults() {
        let meter = Meter::start();
        let area = std::hint::black_box(vec![1u8; 4 << 20]);
        let metrics = meter.stop();
        assert_eq!(area.len(), 4 << 20);
        assert!(metrics.get("wall_ns").unwrap() > 0.0);
        assert!(metrics.get("cpu_ns").unwrap() >= 0.0);
        assert!(metrics.get("minor_faults").unwrap() >= 0.0);
        assert_eq!(metrics.get("no such"), None);
    }
}
