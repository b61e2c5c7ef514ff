//! The two kernels (pieces of work in C, of known length) that the tools time, and the choice of their sizes.
//!
//! Both are compiled once (`c/kernels.c`, by `build.rs`) into the archive that this program and every other
//! tool link. All tools therefore time the same instructions. Version B does 1 % more work than version A.

use std::time::Instant;

unsafe extern "C" {
    fn vellum_timing_cpu(turns: u64) -> u64;
    fn vellum_timing_alloc(pairs: u64) -> u64;
}

/// The archive with both kernels, for the peers.
pub(super) const ARCHIVE: &str = env!("VELLUM_BENCH_KERNELS");

/// The time of the CPU-bound kernel: the goals are for 60 to 100 µs.
const CPU_NS: f64 = 65_000.0;
/// Pairs of malloc and free of the other kernel.
const ALLOC_PAIRS: u64 = 5000;
/// Sizes are whole hundreds, so that one in a hundred more is exact.
const HUNDRED: u64 = 100;
/// Turns for a calibration, and number of calibrations: the shortest time counts.
const GAUGE_TURNS: u64 = 10_000;
const GAUGES: usize = 200;

/// A kernel to be timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// A chain of dependent arithmetic in registers.
    Cpu,
    /// malloc and free of small blocks.
    Alloc,
}

/// The amount of work of A and of B, which does one in a hundred more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Work of A: turns, or pairs of malloc and free.
    pub a: u64,
    /// Work of B.
    pub b: u64,
}

impl Kernel {
    /// Both kernels.
    pub const ALL: [Kernel; 2] = [Kernel::Cpu, Kernel::Alloc];

    /// Its stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::Cpu => "cpu",
            Kernel::Alloc => "alloc",
        }
    }

    /// Its name in reports.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Kernel::Cpu => "CPU-bound",
            Kernel::Alloc => "allocation-bound",
        }
    }

    /// The share of observations below the absolute figure: the most repeatable share for each kernel.
    pub(super) const fn low_share(self) -> f64 {
        match self {
            Kernel::Cpu => vellum_measure::LOW_SHARE,
            Kernel::Alloc => vellum_measure::LOW_SHARE_ALLOCATING,
        }
    }

    #[inline]
    pub(super) fn run(self, size: u64) -> u64 {
        match self {
            // SAFETY: the kernel takes any number and touches only registers.
            Kernel::Cpu => unsafe { vellum_timing_cpu(size) },
            // SAFETY: the kernel takes any number and touches only memory of its own.
            Kernel::Alloc => unsafe { vellum_timing_alloc(size) },
        }
    }

    /// The sizes for this machine. The CPU-bound kernel's are calibrated here, in about ten milliseconds.
    #[must_use]
    pub fn sizes(self) -> Sizes {
        let a = match self {
            Kernel::Cpu => turns_of(CPU_NS),
            Kernel::Alloc => ALLOC_PAIRS,
        };
        Sizes { a, b: a + a / HUNDRED }
    }
}

/// The number of turns that last about this long.
fn turns_of(ns: f64) -> u64 {
    let once = |_| {
        let began = Instant::now();
        std::hint::black_box(Kernel::Cpu.run(GAUGE_TURNS));
        began.elapsed().as_nanos() as f64
    };
    let shortest = (0..GAUGES).map(once).fold(f64::INFINITY, f64::min).max(1.0);
    let hundreds = (ns / shortest * GAUGE_TURNS as f64 / HUNDRED as f64).round() as u64;
    hundreds.max(1) * HUNDRED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_does_exactly_one_percent_more() {
        for kernel in Kernel::ALL {
            let Sizes { a, b } = kernel.sizes();
            assert!(a >= HUNDRED && b * 100 == a * 101, "{kernel:?}: {a} and {b}");
        }
    }

    #[test]
    fn the_chain_computes_the_published_shift_register() {
        // Computed step by step here, to verify that the compiler removes and merges no steps of the loop.
        let mut x = 88_172_645_463_325_252u64;
        for turns in 0..50 {
            assert_eq!(Kernel::Cpu.run(turns), x);
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
    }

    #[test]
    fn the_allocating_kernel_repeats_its_result() {
        let sum = Kernel::Alloc.run(2000);
        assert!(sum > 0);
        assert_eq!(Kernel::Alloc.run(2000), sum);
        assert_ne!(Kernel::Alloc.run(2100), sum);
    }
}
