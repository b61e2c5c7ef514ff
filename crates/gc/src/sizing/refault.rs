//! The cost S of a page fault that brings a page back, estimated from the times of collections.
//!
//! A collection's time without faults is known from `rates`. The time beyond that, divided by the number of
//! faults that had to read a page, is the cost of one fault. That includes the device's time, the kernel's,
//! and the losses in the caches. Compressed memory and disks differ a thousandfold, so the first measurement
//! replaces the initial value. The source for S as the price of a fault is Nishigaki 1981.

/// The initial value: a fast disk.
const S_NS: u64 = 100_000;
/// The least and the most that is believed: below, no page comes; above, something else was waited for.
const S_LEAST_NS: u64 = 2_000;
const S_MOST_NS: u64 = 50_000_000;
/// A collection with fewer faults shows nothing.
const FAULTS_MIN: u64 = 16;
/// The mean is over about this many collections.
const SMOOTH: u64 = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Refault {
    /// 0 until known.
    ns: u64,
}

impl Refault {
    pub(crate) const UNKNOWN: Refault = Refault { ns: 0 };

    /// Nanoseconds a fault.
    pub(crate) fn ns(&self) -> u64 {
        if self.ns == 0 { S_NS } else { self.ns }
    }

    /// A collection met `faults` and took `wall_ns` where it would have taken `without_ns`. Returns whether
    /// anything was learnt.
    pub(crate) fn learn(&mut self, faults: u64, wall_ns: u64, without_ns: u64) -> bool {
        if faults < FAULTS_MIN {
            return false;
        }
        let now = (wall_ns.saturating_sub(without_ns) / faults).clamp(S_LEAST_NS, S_MOST_NS);
        self.ns = if self.ns == 0 { now } else { self.ns - self.ns / SMOOTH + now / SMOOTH };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_costs_what_collections_wait_for() {
        let mut refault = Refault::UNKNOWN;
        assert!(!refault.learn(FAULTS_MIN - 1, 1_000_000_000, 0));
        assert_eq!(refault.ns(), S_NS, "too few to tell");
        assert!(refault.learn(1000, 21_000_000, 1_000_000));
        assert_eq!(refault.ns(), 20_000);
        refault.learn(1000, 0, 1_000_000);
        assert_eq!(refault.ns(), 15_000 + S_LEAST_NS / SMOOTH, "never for nothing");
        for _ in 0..40 {
            refault.learn(100, 800_000_000, 0);
        }
        assert!(refault.ns().abs_diff(8_000_000) < 100_000, "{refault:?}");
    }
}
