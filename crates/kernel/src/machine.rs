//! Facts about the machine, from `/proc` and `/sys`: its processors, memory, swap and settings.
//!
//! A value is `None` if a container hides its file or an old kernel does not have it.

use crate::Bytes;
use crate::file::{Unreadable, field, text};
use std::time::Duration;

/// The setting that restricts perf events: 2 or less lets users watch their own programs.
pub const PERF_PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
/// The setting that restricts reading other processes' memory.
pub const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";
/// The most mappings that a process may have.
pub const MAP_COUNT: &str = "/proc/sys/vm/max_map_count";
/// Which memory may get huge pages.
pub const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// The processors in use.
pub const PROCESSORS: &str = "/sys/devices/system/cpu/online";
const PROCESSOR: &str = "/sys/devices/system/cpu";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";
const PROCESSORS_MAX: usize = 1 << 14;

/// The word that a file of settings holds; `None` if it cannot be read or is empty.
pub fn setting(path: &str) -> Option<String> {
    Some(text(path).ok()?.trim().to_owned()).filter(|word| !word.is_empty())
}

/// The kernel's release, such as `6.12.1-amd64`.
pub fn release() -> Option<String> {
    setting("/proc/sys/kernel/osrelease")
}

/// The random name of this boot.
pub fn boot() -> Option<String> {
    setting("/proc/sys/kernel/random/boot_id")
}

/// The huge-page policy in force: `always`, `madvise` or `never`.
pub fn huge_pages() -> Option<String> {
    chosen(&setting(HUGE_PAGES)?).map(str::to_owned)
}

fn chosen(choices: &str) -> Option<&str> {
    choices.split(['[', ']']).nth(1)
}

/// A field of the first processor in `/proc/cpuinfo`: `model name` or `flags`, for example.
pub fn processor(name: &str) -> Option<String> {
    processor_in(&text("/proc/cpuinfo").ok()?, name)
}

pub(crate) fn processor_in(cpuinfo: &str, name: &str) -> Option<String> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(known, _)| known.trim_end() == name).map(|(_, value)| value.trim().to_owned())
}

/// The processors in use.
pub fn processors() -> Result<Vec<i32>, Unreadable> {
    text(PROCESSORS).map(|text| numbers(&text))
}

/// The numbers in a list such as `0-3,8`.
pub fn numbers(text: &str) -> Vec<i32> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    };
    text.trim().split(',').filter_map(part).flatten().take(PROCESSORS_MAX).collect()
}

/// True if processors share cores (simultaneous multithreading).
pub fn shares_cores() -> Option<bool> {
    Some(setting(&format!("{PROCESSOR}/smt/active"))? == "1")
}

/// The frequency governor of the first processor: `performance`, for example.
pub fn frequency_governor() -> Option<String> {
    setting(&format!("{PROCESSOR}/cpu0/cpufreq/scaling_governor"))
}

/// True if the frequency may rise above the nominal one, as either of the two drivers shows it.
pub fn may_boost() -> Option<bool> {
    let forbidden = setting(&format!("{PROCESSOR}/intel_pstate/no_turbo")).map(|word| word == "0");
    forbidden.or_else(|| Some(setting(&format!("{PROCESSOR}/cpufreq/boost"))? == "1"))
}

/// The kernel's clock source.
pub fn clock_source() -> Option<String> {
    setting(&format!("{CLOCKSOURCE}/current_clocksource"))
}

/// The clock sources that the kernel accepts, separated by blanks.
pub fn clock_sources() -> Option<String> {
    text(format!("{CLOCKSOURCE}/available_clocksource")).ok()
}

/// A size of `/proc/meminfo`: `MemTotal` or `MemAvailable`, for example.
pub fn memory(name: &str) -> Option<Bytes> {
    field(&text("/proc/meminfo").ok()?, name).map(Bytes::from_kib)
}

/// Counters of `/proc/vmstat` since the machine started, in the order of their names.
pub fn counters<const N: usize>(names: [&str; N]) -> [Option<u64>; N] {
    let text = text("/proc/vmstat").unwrap_or_default();
    names.map(|name| field(&text, name))
}

/// The swap device that the kernel uses first: the one of the highest priority.
pub fn first_swap() -> Option<String> {
    first_swap_in(&text("/proc/swaps").ok()?).map(str::to_owned)
}

pub(crate) fn first_swap_in(swaps: &str) -> Option<&str> {
    let devices = swaps.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        Some((fields.last()?.parse::<i64>().ok()?, *fields.first()?))
    });
    // Of equals, the first in the list.
    let first = |best: (i64, _), other: (i64, _)| if other.0 > best.0 { other } else { best };
    devices.reduce(first).map(|(_, name)| name)
}

/// The time since its start for which the calling thread was ready and had no processor.
pub fn thread_waited() -> Option<Duration> {
    waited_in(&std::fs::read(THREAD_SCHEDSTAT).ok()?)
}

/// The file of [`thread_waited`], for readers that keep it open.
pub const THREAD_SCHEDSTAT: &str = "/proc/thread-self/schedstat";

/// The waiting time in the text of a `schedstat`.
pub fn waited_in(schedstat: &[u8]) -> Option<Duration> {
    let word = schedstat.split(u8::is_ascii_whitespace).nth(1)?;
    vellum_sys::text::decimal(word).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(numbers("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(numbers("0\n"), [0]);
        assert!(numbers("").is_empty());
        assert!(!processors().unwrap().is_empty());
    }

    #[test]
    fn words_and_fields_are_found() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(
            processor_in("processor\t: 0\nmodel name\t: Z 1: x\n", "model name").as_deref(),
            Some("Z 1: x")
        );
        assert_eq!(waited_in(b"216954 2409414 2\n"), Some(Duration::from_nanos(2_409_414)));
        assert_eq!(waited_in(b"216954\n"), None);
        assert!(memory("MemTotal").is_some_and(|bytes| bytes > Bytes(0)) && release().is_some());
    }

    #[test]
    fn the_device_of_the_highest_priority_is_the_one_measured() {
        let head = "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        let lines = "/swapfile  file  1048572  0  -2\n/dev/zram1  partition  3145724  12  100\n/dev/zram2 partition 8 0 100\n";
        assert_eq!(first_swap_in(&format!("{head}{lines}")), Some("/dev/zram1"));
        assert_eq!((first_swap_in(head), first_swap_in("")), (None, None));
    }
}
