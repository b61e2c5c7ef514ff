//! Reads the memory available to the governor and its jobs, and the time that tasks stall on memory.
//!
//! All quantities of a [`Memory`] have one source: the cgroup above this process with the least limit (a
//! container's), or else the machine.

use std::time::{Duration, Instant};
use vellum_kernel::{Bytes, Stalls};
use vellum_sys::limits::{Limits, SCRATCH, machine_total};

/// The part of all memory that is never counted on …
const RESERVE_PART: u64 = 32;
/// … and the most of it.
const RESERVE_MAX: Bytes = Bytes(1 << 30);
/// More than there is: everything that counts as available is looked up.
const EVERYTHING: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    /// All of it: the limit of a container, or what the machine has.
    pub(crate) total: Bytes,
    /// Memory still available, with pages of files that the kernel would evict.
    pub(crate) available: Bytes,
    pub(crate) swap_free: Bytes,
}

impl Memory {
    pub(crate) fn reserve(&self) -> Bytes {
        Bytes(self.total.0 / RESERVE_PART).min(RESERVE_MAX)
    }
}

/// Files that are read every period.
#[derive(Debug)]
pub(crate) struct Machine {
    limits: Limits,
    /// The time stalled, and when that was read.
    stalled: Option<(Duration, Instant)>,
}

impl Machine {
    pub(crate) fn discover() -> Machine {
        Machine { limits: Limits::discover(&mut [0; SCRATCH]), stalled: stall() }
    }

    pub(crate) fn memory(&self) -> Memory {
        let found = self.limits.available(EVERYTHING);
        Memory {
            total: Bytes(found.limit.min(machine_total())),
            available: Bytes(found.bytes),
            swap_free: Bytes(found.swap),
        }
    }

    /// The part of the time since the last call that some task stalled on memory; `None` where the kernel
    /// does not count it.
    pub(crate) fn stalled(&mut self) -> Option<f64> {
        let (now, before) = (stall()?, self.stalled);
        self.stalled = Some(now);
        let (stalled, at) = before?;
        let passed = now.1.duration_since(at).as_secs_f64();
        (passed > 0.0).then(|| now.0.saturating_sub(stalled).as_secs_f64() / passed)
    }
}

fn stall() -> Option<(Duration, Instant)> {
    Some((Stalls::read(Stalls::MEMORY)?.some.total, Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        let mut machine = Machine::discover();
        let memory = machine.memory();
        assert!(memory.total > memory.reserve() && memory.available > Bytes(0), "{memory:?}");
        match machine.stalled() {
            Some(part) => assert!((0.0..=1.5).contains(&part), "{part}"),
            None => vellum_skip::skip("no pressure-stall information here"),
        }
    }

    #[test]
    fn the_reserve_is_a_part_of_the_place_that_is_counted_on() {
        let of = |total: u64| Memory { total: Bytes(total), available: Bytes(0), swap_free: Bytes(0) };
        assert_eq!(of(512 << 20).reserve(), Bytes(16 << 20));
        assert_eq!(of(256 << 30).reserve(), Bytes(1 << 30));
    }
}
