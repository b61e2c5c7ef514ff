//! The kernel's counts for one thread: faults, context switches, and the time it waited for a processor.
//!
//! The counts come from two sources, with different costs. `getrusage(RUSAGE_THREAD)` is one call of a few
//! hundred nanoseconds and returns faults and switches. `/proc/thread-self/schedstat` has the time spent
//! ready but not running, to the nanosecond, and takes three times as long. It is read only if a switch was
//! counted: without a switch the thread cannot have waited.
//!
//! The steal column of `/proc/stat` is too coarse for a single observation (steps of 10 ms, 10 µs to read).

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The most bytes of a schedstat file, which has three numbers.
const SCHEDSTAT_BYTES_MAX: usize = 96;

/// Counts of the calling thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Page faults served without a read from storage.
    pub(crate) minor: u64,
    /// Page faults that waited for a read from storage.
    pub(crate) major: u64,
    /// Switches because the thread waited.
    pub(crate) voluntary: u64,
    /// Switches because the thread was preempted.
    pub(crate) involuntary: u64,
}

impl Counts {
    /// The counts of the calling thread now.
    #[inline]
    pub(crate) fn now() -> Counts {
        // SAFETY: rusage has only numbers, for which zero is valid. The call fills the local, and cannot fail
        // with RUSAGE_THREAD.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        Counts {
            minor: usage.ru_minflt as u64,
            major: usage.ru_majflt as u64,
            voluntary: usage.ru_nvcsw as u64,
            involuntary: usage.ru_nivcsw as u64,
        }
    }

    /// The counts from `earlier` to these.
    #[inline]
    pub(crate) fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            minor: self.minor - earlier.minor,
            major: self.major - earlier.major,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
        }
    }

    /// True if a switch was counted.
    #[inline]
    pub(crate) fn switched(&self) -> bool {
        self.voluntary + self.involuntary > 0
    }
}

/// The time in which a thread was ready and did not run.
#[derive(Debug)]
pub(crate) struct Waited {
    file: Option<File>,
}

impl Waited {
    /// Opens the calling thread's file, if the kernel has it.
    pub(crate) fn open() -> Waited {
        Waited { file: File::open(vellum_kernel::machine::THREAD_SCHEDSTAT).ok() }
    }

    /// The time since the thread's start, in nanoseconds. Allocates nothing.
    pub(crate) fn read_ns(&self) -> Option<u64> {
        let mut text = [0u8; SCHEDSTAT_BYTES_MAX];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        vellum_kernel::machine::waited_in(&text[..length]).map(|waited| waited.as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_never_shrinks() {
        let waited = Waited::open();
        if let (Some(first), Some(second)) = (waited.read_ns(), waited.read_ns()) {
            assert!(second >= first);
        } else {
            vellum_skip::skip("this kernel keeps no schedstat");
        }
    }
}
