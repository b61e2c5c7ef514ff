//! Pressure-stall information, the time in which tasks waited for a resource: `/proc/pressure/memory` and
//! `cpu` for the machine, `memory.pressure` for a cgroup of version 2.
//!
//! ```text
//! some avg10=12.50 avg60=1.00 avg300=0.10 total=4711      avg10: percent of ten seconds; total: microseconds
//! full avg10=0.00 avg60=0.00 avg300=0.00 total=1
//! ```
//!
//! Source: the kernel's `Documentation/accounting/psi.rst`. A kernel without this feature has no such files.

use std::path::Path;
use std::time::Duration;

/// The time in which some tasks, or all, stalled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalled {
    /// Since the machine started, or the group was made.
    pub total: Duration,
    /// The part of the last ten seconds, from 0 to 1.
    pub lately: f64,
}

/// An account at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalls {
    /// At least one task stalled.
    pub some: Stalled,
    /// All tasks stalled. Older kernels do not have this line for processors.
    pub full: Option<Stalled>,
}

impl Stalls {
    /// The machine's account of memory, in this file.
    pub const MEMORY: &str = "/proc/pressure/memory";
    /// The machine's account of processors, in this file.
    pub const CPU: &str = "/proc/pressure/cpu";

    /// The account in a file; `None` where the kernel keeps none.
    pub fn read(path: impl AsRef<Path>) -> Option<Stalls> {
        Stalls::of(&crate::text(path).ok()?)
    }

    fn of(text: &str) -> Option<Stalls> {
        let line = |kind: &str| {
            let fields = text.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
            let field = |name: &str| fields.split(' ').find_map(|field| field.strip_prefix(name));
            let percent: f64 = field("avg10=")?.parse().ok()?;
            let total = Duration::from_micros(field("total=")?.parse().ok()?);
            Some(Stalled { total, lately: percent / 100.0 })
        };
        Some(Stalls { some: line("some")?, full: line("full") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_are_read() {
        let text = "some avg10=12.50 avg60=1.00 avg300=0.10 total=4711\nfull avg10=99.00 total=1\n";
        let stalled = |micros, lately| Stalled { total: Duration::from_micros(micros), lately };
        let stalls = Stalls { some: stalled(4711, 0.125), full: Some(stalled(1, 0.99)) };
        assert_eq!(Stalls::of(text), Some(stalls));
        let alone = text.lines().next().unwrap();
        assert_eq!(Stalls::of(alone), Some(Stalls { full: None, ..stalls }));
    }

    #[test]
    fn what_is_no_account_is_none() {
        for text in ["", "some", "some total=x", "some avg10=1.0 total=-1", "full avg10=1.0 total=1"] {
            assert_eq!(Stalls::of(text), None, "{text:?}");
        }
    }
}
