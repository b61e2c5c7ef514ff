//! Memory of a process, by `/proc/PID/status`, which walks no page tables.

use crate::source::SourceError;
use vellum_process::{Bytes, Pid, procfs};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(super) resident: Bytes,
    pub(super) swapped: Bytes,
}

impl Status {
    pub(super) fn of(pid: Pid) -> Result<Status, SourceError> {
        let text = procfs::text(format!("/proc/{pid}/status"))
            .map_err(|source| SourceError::of("read the status", pid, source))?;
        Ok(Status::parse(&text))
    }

    /// A process that is ending, or a kernel thread, has no such lines: then it holds nothing.
    pub(crate) fn parse(text: &str) -> Status {
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            Bytes::from_kib(line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0))
        };
        Status { resident: kib("VmRSS:"), swapped: kib("VmSwap:") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_and_may_be_missing() {
        let status = Status::parse("Name:\tx\nVmRSS:\t    2048 kB\nVmSwap:\t      12 kB\n");
        assert_eq!(status, Status { resident: Bytes(2 << 20), swapped: Bytes(12 << 10) });
        assert_eq!(Status::parse("Name:\tx\n"), Status::default());
        assert!(Status::of(Pid::me()).unwrap().resident > Bytes(0));
        assert!(matches!(Status::of(Pid(i32::MAX)), Err(SourceError::Ended(_))));
    }
}
