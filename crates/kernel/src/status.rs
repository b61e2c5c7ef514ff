//! Memory, threads and capabilities of a process, by `/proc/PID/status`, read without walking page tables.

use crate::file::{Unreadable, text};
use crate::{Bytes, Pid};

/// The capability to read and change the memory of other users' processes.
pub const SYS_PTRACE: u32 = 19;
/// The capability to have memory of other processes paged out.
pub const SYS_NICE: u32 = 23;

/// A process's `status`. A process that is ending, and a thread of the kernel, have no memory there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Memory with page frames.
    pub resident: Bytes,
    /// Memory in swap.
    pub swapped: Bytes,
    /// The most that was resident; `None` if the kernel does not keep it.
    pub peak: Option<Bytes>,
    /// Page tables.
    pub page_tables: Bytes,
    /// Threads.
    pub threads: u64,
    /// The process id in the innermost pid namespace that the process is in.
    pub innermost_pid: Option<u32>,
    /// The capabilities in force, a bit each.
    pub capabilities: u64,
}

impl Status {
    pub(crate) fn parse(text: &str) -> Status {
        let mut status = Status::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let number = || value.split_ascii_whitespace().next()?.parse::<u64>().ok();
            let size = || Bytes::from_kib(number().unwrap_or(0));
            match name {
                "VmRSS" => status.resident = size(),
                "VmSwap" => status.swapped = size(),
                "VmHWM" => status.peak = number().map(Bytes::from_kib),
                "VmPTE" => status.page_tables = size(),
                "Threads" => status.threads = number().unwrap_or(0),
                "NSpid" => {
                    let inner = value.split_ascii_whitespace().next_back();
                    status.innermost_pid = inner.and_then(|pid| pid.parse().ok());
                }
                "CapEff" => status.capabilities = u64::from_str_radix(value.trim(), 16).unwrap_or(0),
                _ => {}
            }
        }
        status
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities.checked_shr(capability).unwrap_or(0) & 1 == 1
    }
}

impl Pid {
    /// Its `status`.
    pub fn status(self) -> Result<Status, Unreadable> {
        Ok(Status::parse(&text(self.file("status"))?))
    }
}

/// True if the capability with this number is in force for this process.
pub fn has_capability(capability: u32) -> bool {
    Pid::me().status().is_ok_and(|status| status.has(capability))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_may_be_missing() {
        let text = "Name:\tx\nNSpid:\t77\t5\nVmHWM:\t 4096 kB\nVmRSS:\t    2048 kB\nVmPTE:\t 8 kB\nVmSwap:\t      12 kB\nThreads:\t3\nCapEff:\t0000000000080000\n";
        let status = Status::parse(text);
        assert_eq!((status.resident, status.swapped), (Bytes(2 << 20), Bytes(12 << 10)));
        assert_eq!((status.peak, status.page_tables), (Some(Bytes(4 << 20)), Bytes(8 << 10)));
        assert_eq!((status.threads, status.innermost_pid), (3, Some(5)));
        assert!(status.has(SYS_PTRACE) && !status.has(SYS_NICE) && !status.has(64) && !status.has(u32::MAX));
        assert_eq!(Status::parse("Name:\tx\n"), Status::default());
        assert!(Pid::me().status().unwrap().resident > Bytes(0));
        assert!(Pid(i32::MAX).status().is_err());
    }
}
