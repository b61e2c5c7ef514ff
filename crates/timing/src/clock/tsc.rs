//! Reads the processor's time-stamp counter, checks if it can be trusted, and measures the length of its
//! ticks.
//!
//! The counter is a clock only if its rate is constant and it is the same on all processors. CPUID reports
//! the first (*invariant TSC*). Only the kernel can check the second: it compares processors, and takes the
//! counter off its list of clock sources if they disagree. Both must hold, or the counter is refused.
//!
//! The rate is measured once per process, against `CLOCK_MONOTONIC_RAW`. Two instants, some milliseconds
//! apart, are read on both clocks. Each instant is the narrowest of many brackets (readings of counter,
//! clock, counter). The error of the rate, reported with it, is half the brackets' width divided by the time
//! between the instants.

use std::sync::OnceLock;
use std::time::Duration;

use super::anchor::Bracket;
use super::read;

/// The number of brackets of an instant; the tightest counts.
const BRACKETS: usize = 64;
/// CPUID's leaf of power management, and the leaf that gives the highest extended leaf.
#[cfg(target_arch = "x86_64")]
const LEAF_POWER: u32 = 0x8000_0007;
#[cfg(target_arch = "x86_64")]
const LEAF_EXTENDED: u32 = 0x8000_0000;
/// Bit of that leaf's EDX: the counter's rate never changes.
#[cfg(target_arch = "x86_64")]
const INVARIANT: u32 = 1 << 8;

/// Reasons not to use the counter as a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// The processor has no supported counter.
    #[error("this processor has no counter that Vellum supports")]
    None,
    /// CPUID does not report that the counter is invariant.
    #[error("the processor does not call it invariant (CPUID 0x80000007, EDX bit 8), so its rate may change")]
    Variant,
    /// The kernel forbids this process to read it.
    #[error("reading it is forbidden to this process (prctl PR_SET_TSC)")]
    Forbidden,
    /// The kernel does not list it among its clock sources.
    #[error(
        "the kernel found it unstable (it is not in /sys/devices/system/clocksource/clocksource0/available_clocksource)"
    )]
    Unstable,
    /// The counter stood still, or ran back, during calibration.
    #[error("it did not advance beside CLOCK_MONOTONIC_RAW")]
    Still,
}

/// The counter's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The length of one tick in nanoseconds of `CLOCK_MONOTONIC_RAW`.
    pub ns_per_tick: f64,
    /// The error bound of that length, in parts per million.
    pub ppm: f64,
}

impl Calibration {
    /// The time that calibration sleeps.
    pub const TAKES: Duration = Duration::from_millis(30);

    /// The counter's rate on this machine, measured once a process.
    ///
    /// # Errors
    /// The reason why the counter cannot be trusted.
    pub fn of_this_machine() -> Result<Calibration, Distrust> {
        static FOUND: OnceLock<Result<Calibration, Distrust>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            trust()?;
            let now =
                || Bracket::tightest(BRACKETS, now_fenced, || read(libc::CLOCK_MONOTONIC_RAW).unwrap_or(0));
            let first = now();
            std::thread::sleep(Self::TAKES);
            Self::between(&first, &now())
        })
    }

    /// Ticks in a millisecond, the unit the kernel itself uses.
    #[must_use]
    pub fn khz(&self) -> f64 {
        1e6 / self.ns_per_tick
    }

    fn between(first: &Bracket, second: &Bracket) -> Result<Calibration, Distrust> {
        if second.ticks <= first.ticks || second.ns <= first.ns {
            return Err(Distrust::Still);
        }
        let (ticks, ns) = ((second.ticks - first.ticks) as f64, (second.ns - first.ns) as f64);
        let ns_per_tick = ns / ticks;
        // Each reading of the clock lies somewhere within its bracket, whose middle is taken, and is rounded
        // to a nanosecond.
        let off = (first.width + second.width) as f64 / 2.0 * ns_per_tick + 1.0;
        Ok(Calibration { ns_per_tick, ppm: off / ns * 1e6 })
    }
}

/// Checks that the counter can be trusted on this machine and read by this process.
fn trust() -> Result<(), Distrust> {
    invariant()?;
    let mut mode: libc::c_int = 0;
    // SAFETY: `mode` is a local int, which the call writes; kernels without the call do not touch it.
    let asked = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    if asked == 0 && mode == libc::PR_TSC_SIGSEGV {
        return Err(Distrust::Forbidden);
    }
    // Without /sys (a container may hide it) the processor's word stands alone.
    vellum_kernel::machine::clock_sources().map_or(Ok(()), |listed| listed_by_kernel(&listed))
}

/// The kernel takes an unstable counter off its list, or never puts it there.
fn listed_by_kernel(sources: &str) -> Result<(), Distrust> {
    let listed = sources.split_whitespace().any(|source| source == "tsc");
    if listed { Ok(()) } else { Err(Distrust::Unstable) }
}

#[cfg(target_arch = "x86_64")]
fn invariant() -> Result<(), Distrust> {
    use std::arch::x86_64::__cpuid;
    let known = __cpuid(LEAF_EXTENDED).eax >= LEAF_POWER;
    if known && __cpuid(LEAF_POWER).edx & INVARIANT != 0 { Ok(()) } else { Err(Distrust::Variant) }
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant() -> Result<(), Distrust> {
    Err(Distrust::None)
}

/// The counter, read out of order with the neighbouring instructions.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn now() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: `rdtsc` only reads a counter into two registers. Without the option `nomem` the compiler moves
    // no load or store across it.
    unsafe { std::arch::asm!("rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// The counter, read after every earlier instruction has finished.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn now_fenced() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: `lfence` waits and `rdtsc` reads a counter into two registers; neither touches memory.
    unsafe {
        std::arch::asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Without a counter no clock of this kind is ever opened.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn now() -> u64 {
    0
}

/// Without a counter no clock of this kind is ever opened.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn now_fenced() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64, ns: u64, width: u64) -> Bracket {
        Bracket { ticks, ns, width }
    }

    #[test]
    fn the_rate_and_its_error() {
        // 2.5 GHz: 25 million ticks in 10 ms; brackets of 50 ticks are 20 ns, so the error is 20 ns and the
        // rounding, in 10 ms.
        let found = Calibration::between(&at(1000, 5, 50), &at(25_001_000, 10_000_005, 50)).unwrap();
        assert!((found.ns_per_tick - 0.4).abs() < 1e-12 && (found.khz() - 2.5e6).abs() < 1e-3);
        assert!((found.ppm - 2.1).abs() < 1e-9, "{}", found.ppm);
    }

    #[test]
    fn a_counter_that_stands_still_is_refused() {
        assert_eq!(Calibration::between(&at(7, 5, 1), &at(7, 10, 1)), Err(Distrust::Still));
        assert_eq!(Calibration::between(&at(9, 5, 1), &at(7, 10, 1)), Err(Distrust::Still));
    }

    #[test]
    fn a_counter_that_the_kernel_took_off_its_list_is_refused() {
        assert_eq!(listed_by_kernel("tsc kvm-clock acpi_pm \n"), Ok(()));
        assert_eq!(listed_by_kernel("hpet acpi_pm\n"), Err(Distrust::Unstable));
        assert_eq!(listed_by_kernel("tsc-early jiffies\n"), Err(Distrust::Unstable));
        assert_eq!(listed_by_kernel(""), Err(Distrust::Unstable));
    }

    #[test]
    fn this_machines_counter_is_calibrated_or_refused_with_a_reason() {
        match Calibration::of_this_machine() {
            Ok(found) => {
                // Real counters run at 100 MHz to 10 GHz; a bracket as wide as the wait would calibrate
                // nothing.
                assert!((1e5..1e7).contains(&found.khz()) && found.ppm > 0.0 && found.ppm < 1e6, "{found:?}");
                assert_eq!(Calibration::of_this_machine(), Ok(found));
            }
            Err(why) => vellum_skip::skip(format_args!("{why}")),
        }
    }
}
