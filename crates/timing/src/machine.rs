//! Reads the description of the machine that a measurement was made on.
//!
//! Each field comes from one file of `/proc` or `/sys`, or from the processor itself. Fields that a kernel, a
//! container or missing privileges hide are left out, never guessed. Files that identify the machine (host
//! name, addresses) are not opened.

use crate::clock::Calibration;
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
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let word = |path: &str| Some(text(path).trim().to_owned()).filter(|word| !word.is_empty());
    let cpuinfo = text("/proc/cpuinfo");
    let memory = field(&text("/proc/meminfo"), "MemTotal");
    let kilobytes = memory.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let policy = text("/sys/kernel/mm/transparent_hugepage/enabled");
    let calibration = Calibration::of_this_machine();
    let frequency = "/sys/devices/system/cpu/cpu0/cpufreq";
    Machine {
        kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        processor: field(&cpuinfo, "model name").unwrap_or_default(),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        memory_bytes: kilobytes.unwrap_or(0) << 10,
        huge_pages: policy.split(['[', ']']).nth(1).unwrap_or_default().to_owned(),
        hz: hz(),
        clocksource: word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        tsc_khz: calibration.ok().map(|found| rounded_khz(&found)),
        tsc_invariant: Some(calibration.is_ok()),
        governor: word(&format!("{frequency}/scaling_governor")),
        turbo: turbo(&word),
        hypervisor: hypervisor(),
    }
}

/// True if processors share cores (simultaneous multithreading); `None` if the kernel does not show it.
#[must_use]
pub fn shares_cores() -> Option<bool> {
    let active = std::fs::read_to_string("/sys/devices/system/cpu/smt/active").ok()?;
    Some(active.trim() == "1")
}

pub(crate) fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
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

/// True if the frequency may rise above the nominal one, by the files of the two drivers that show it.
fn turbo(word: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    let forbidden = word("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|word| word == "0");
    forbidden.or_else(|| word("/sys/devices/system/cpu/cpufreq/boost").map(|word| word == "1"))
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
