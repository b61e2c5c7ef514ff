//! Measured rates, smoothed for a policy: how fast the program allocates, and how fast its heap is collected.
//!
//! Both rates use CPU time, which excludes the waits for pages. The times of a collection that met page
//! faults are not used, because they include the faults' handling.

/// The most that is believed of a MiB (18 minutes): what took longer was something else.
const NS_A_MIB_MOST: u64 = 1 << 40;
/// The mean is over about this many observations.
const SMOOTH: u64 = 4;
/// The cost of tracing a MiB of objects before the first measurement: 10 ns for each of 32 bytes.
const TRACE_NS_A_MIB: u64 = 330_000;
/// The cost of allocating a MiB before the first measurement, in a program that does little else.
const ALLOCATE_NS_A_MIB: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    /// 0 until known.
    trace_ns_a_mib: u64,
    /// 0 until known.
    allocate_ns_a_mib: u64,
}

impl Rates {
    pub(crate) const UNKNOWN: Rates = Rates { trace_ns_a_mib: 0, allocate_ns_a_mib: 0 };

    /// A collection that met no page fault left `live` bytes and took `trace_ns` of CPU time; before it the
    /// program allocated `allocated` bytes in `ran_ns`. Where there are no bytes, nothing is learnt.
    pub(crate) fn learn(&mut self, live: usize, allocated: usize, trace_ns: u64, ran_ns: u64) {
        smooth(&mut self.trace_ns_a_mib, trace_ns, live);
        smooth(&mut self.allocate_ns_a_mib, ran_ns, allocated);
    }

    /// Nanoseconds of CPU time that tracing a MiB of live objects takes.
    pub(crate) fn trace_ns_a_mib(&self) -> u64 {
        if self.trace_ns_a_mib == 0 { TRACE_NS_A_MIB } else { self.trace_ns_a_mib }
    }

    /// Nanoseconds of CPU time in which the program allocates a MiB.
    pub(crate) fn allocate_ns_a_mib(&self) -> u64 {
        if self.allocate_ns_a_mib == 0 { ALLOCATE_NS_A_MIB } else { self.allocate_ns_a_mib }
    }

    /// Nanoseconds that a collection with `live` bytes alive takes without faults.
    pub(crate) fn collection_ns(&self, live: usize) -> u64 {
        crate::sizing::limits::cost_ns(0, 0, 0) as u64 + scale(self.trace_ns_a_mib(), live)
    }
}

fn scale(ns_a_mib: u64, bytes: usize) -> u64 {
    u64::try_from((u128::from(ns_a_mib) * bytes as u128) >> 20).unwrap_or(u64::MAX)
}

fn smooth(mean: &mut u64, ns: u64, bytes: usize) {
    let Some(now) = (u128::from(ns) << 20).checked_div(bytes as u128) else { return };
    let now = u64::try_from(now).unwrap_or(u64::MAX).clamp(1, NS_A_MIB_MOST);
    *mean = if *mean == 0 { now } else { *mean - *mean / SMOOTH + now / SMOOTH };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_what_is_seen() {
        let mut rates = Rates::UNKNOWN;
        assert_eq!(rates.trace_ns_a_mib(), TRACE_NS_A_MIB);
        rates.learn(2 << 20, 0, 1_000_000, 0);
        assert_eq!((rates.trace_ns_a_mib(), rates.allocate_ns_a_mib()), (500_000, ALLOCATE_NS_A_MIB));
        for _ in 0..40 {
            rates.learn(2 << 20, 4 << 20, 2_000_000, 800_000);
        }
        assert!(rates.trace_ns_a_mib().abs_diff(1_000_000) < 10_000, "{rates:?}");
        assert_eq!(rates.allocate_ns_a_mib(), 200_000);
        assert_eq!(rates.collection_ns(3 << 20) / 100_000, 30);
    }
}
