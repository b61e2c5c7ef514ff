//! The machine's memory, and how much its tasks stall on it.

use std::time::Instant;
use vellum_process::Bytes;
use vellum_sys::limits::{Limits, SCRATCH};

/// The part of the machine's memory that is never counted on …
const RESERVE_PART: u64 = 32;
/// … and the most of it.
const RESERVE_MAX: Bytes = Bytes(1 << 30);

/// Files that are read every period.
#[derive(Debug)]
pub(crate) struct Machine {
    limits: Limits,
    total: Bytes,
    /// Microseconds of stall, and when they were read.
    stalled: Option<(u64, Instant)>,
}

impl Machine {
    /// Looks up what stays the same.
    pub(crate) fn discover() -> Machine {
        let limits = Limits::discover(&mut [0; SCRATCH]);
        Machine { limits, total: line("/proc/meminfo", "MemTotal:").unwrap_or_default(), stalled: stall() }
    }

    /// All memory.
    pub(crate) fn total(&self) -> Bytes {
        self.total
    }

    /// The memory still available, by the machine and by our own limits.
    pub(crate) fn available(&self) -> Bytes {
        Bytes(self.limits.headroom())
    }

    /// The part of it that must be left.
    pub(crate) fn reserve(&self) -> Bytes {
        Bytes(self.total.0 / RESERVE_PART).min(RESERVE_MAX)
    }

    /// Where anonymous memory can be put: free swap.
    pub(crate) fn swap_free(&self) -> Bytes {
        line("/proc/meminfo", "SwapFree:").unwrap_or_default()
    }

    /// The part of the time since the last call that some task stalled on memory; `None` where the kernel
    /// does not say.
    pub(crate) fn stalled(&mut self) -> Option<f64> {
        let (now, before) = (stall()?, self.stalled);
        self.stalled = Some(now);
        let (stalled, at) = before?;
        let passed = now.1.duration_since(at).as_secs_f64();
        (passed > 0.0).then(|| (now.0.saturating_sub(stalled)) as f64 / 1e6 / passed)
    }
}

/// A line of kibibytes.
fn line(path: &str, name: &str) -> Option<Bytes> {
    let text = std::fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok().map(Bytes::from_kib)
}

fn stall() -> Option<(u64, Instant)> {
    let text = std::fs::read_to_string("/proc/pressure/memory").ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split("total=").nth(1)?.trim().parse().ok()?;
    Some((total, Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        let mut machine = Machine::discover();
        assert!(machine.total() > machine.reserve() && machine.available() > Bytes(0));
        match machine.stalled() {
            Some(part) => assert!((0.0..=1.5).contains(&part), "{part}"),
            None => vellum_skip::skip("no pressure-stall information here"),
        }
    }
}
