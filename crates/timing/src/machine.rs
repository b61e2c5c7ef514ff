//! Reads the description of the machine that a measurement was made on.
//!
//! Each field comes from one file of `/proc` or `/sys`, or from the processor itself. Fields that a kernel, a
//! container or missing privileges hide are left out, never guessed. Files that identify the machine (host
//! name, addresses) are not opened.

use crate::clock::Calibration;
use vellum_kernel::machine;
use vellum_measure::Machine;

/// The unit of the counter's rate: whole megahertz. Each process calibrates it again, and more digits would
/// make the same machine look like two.
const KHZ_UNIT: f64 = 1000.0;
/// The tick rates with which kernels are built (`CONFIG_HZ`); the clock's figure is rounded to these.
const RATES: [u32; 4] = [100, 250, 300, 1000];

/// The description of this machine.
///
/// The first call in a process takes [`Calibration::TAKES`] unless a clock was opened before.
#[must_use]
pub fn read() -> Machine {
    let calibration = Calibration::of_this_machine();
    Machine {
        kernel: machine::release().unwrap_or_default(),
        processor: machine::processor("model name").unwrap_or_default(),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        memory_bytes: machine::memory("MemTotal").unwrap_or_default().0,
        huge_pages: machine::huge_pages().unwrap_or_default(),
        hz: hz(),
        clocksource: machine::clock_source(),
        tsc_khz: calibration.ok().map(|found| rounded_khz(&found)),
        tsc_invariant: Some(calibration.is_ok()),
        governor: machine::frequency_governor(),
        turbo: machine::may_boost(),
        hypervisor: hypervisor(),
    }
}

fn rounded_khz(found: &Calibration) -> u64 {
    ((found.khz() / KHZ_UNIT).round() * KHZ_UNIT) as u64
}

/// The tick rate, from the resolution of `CLOCK_MONOTONIC_COARSE`, which advances at each tick.
fn hz() -> Option<u32> {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `step` is a local timespec, which the call writes.
    if unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut step) } != 0 {
        return None;
    }
    rate_of_step(step.tv_nsec as u64)
}

fn rate_of_step(step_ns: u64) -> Option<u32> {
    RATES.into_iter().find(|&rate| step_ns.abs_diff(1_000_000_000 / u64::from(rate)) < step_ns / 100)
}

/// The hypervisor's usual name, from its signature.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    /// The bit of CPUID leaf 1, ECX, that is set under a hypervisor.
    const PRESENT: u32 = 1 << 31;
    /// The leaf with the hypervisor's signature.
    const NAME: u32 = 0x4000_0000;
    if __cpuid(1).ecx & PRESENT == 0 {
        return None;
    }
    let said = __cpuid(NAME);
    let bytes: Vec<u8> = [said.ebx, said.ecx, said.edx].iter().flat_map(|part| part.to_le_bytes()).collect();
    Some(known_hypervisor(String::from_utf8_lossy(&bytes).trim_matches(['\0', ' '])))
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    None
}

fn known_hypervisor(signature: &str) -> String {
    let known = [
        ("KVMKVMKVM", "KVM"),
        ("VMwareVMware", "VMware"),
        ("Microsoft Hv", "Hyper-V"),
        ("XenVMMXenVMM", "Xen"),
        ("bhyve bhyve", "bhyve"),
        ("TCGTCGTCGTCG", "QEMU"),
        ("VBoxVBoxVBox", "VirtualBox"),
    ];
    let name = known.iter().find(|(said, _)| *said == signature).map(|(_, name)| *name);
    match name {
        Some(name) => name.to_owned(),
        None if signature.is_empty() => "unnamed".to_owned(),
        None => signature.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described_the_same_twice() {
        let here = read();
        assert!(!here.kernel.is_empty() && here.processors > 0 && here.memory_bytes > 0, "{here:?}");
        assert_eq!(read(), here);
    }

    #[test]
    fn the_tick_is_one_that_kernels_are_built_with() {
        assert_eq!((rate_of_step(4_000_000), rate_of_step(3_333_333)), (Some(250), Some(300)));
        assert_eq!((rate_of_step(999_848), rate_of_step(1)), (Some(1000), None));
        assert!(hz().is_none_or(|hz| RATES.contains(&hz)));
    }

    #[test]
    fn rates_that_differ_by_calibration_are_one() {
        let khz = |khz: f64| rounded_khz(&Calibration { ns_per_tick: 1e6 / khz, ppm: 1.0 });
        assert_eq!((khz(2_596_124.0), khz(2_596_118.0)), (2_596_000, 2_596_000));
    }
}
