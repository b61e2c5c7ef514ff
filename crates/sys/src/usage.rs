//! The usage of this process: page faults, pages read from devices, resident pages, pages paged out.
//!
//! A process whose seccomp filter forbids these reads gets 0.

use crate::caps::{self, Caps};
use crate::{PAGE, text};
use core::ffi::CStr;

/// The totals met so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Page faults that had to have a page brought.
    pub faults: u64,
    /// Times a thread gave up its processor to wait for something.
    pub waits: u64,
}

impl Met {
    /// The difference since `before`.
    #[must_use]
    pub fn since(self, before: Met) -> Met {
        Met {
            faults: self.faults.saturating_sub(before.faults),
            waits: self.waits.saturating_sub(before.waits),
        }
    }
}

/// The usage of this process.
pub fn met() -> Met {
    met_by(libc::RUSAGE_SELF)
}

/// The usage of the calling thread.
pub fn thread_met() -> Met {
    met_by(libc::RUSAGE_THREAD)
}

/// Page faults of this process that had to have a page brought, for a helper: whatever system calls the
/// program has forbidden itself. Returns 0 if the kernel refuses.
pub fn major_faults() -> u64 {
    u64::try_from(usage_of(libc::RUSAGE_SELF).ru_majflt).unwrap_or(0)
}

fn met_by(who: libc::c_int) -> Met {
    if !caps::has(Caps::CGROUP) {
        return Met::default();
    }
    let usage = usage_of(who);
    Met {
        faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
        waits: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
    }
}

fn usage_of(who: libc::c_int) -> libc::rusage {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    let args = [who as usize, usage.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes one structure; all zeros are a valid one should it not.
    unsafe {
        let _ = crate::raw::syscall(libc::SYS_getrusage, args);
        usage.assume_init()
    }
}

/// Bytes read from devices, in pages. Unlike a major fault, a page that is new in a file does not count.
pub fn read_pages() -> u64 {
    read_pages_by(c"/proc/self/io")
}

/// The same for the calling thread.
pub fn thread_read_pages() -> u64 {
    read_pages_by(c"/proc/thread-self/io")
}

fn read_pages_by(path: &CStr) -> u64 {
    if !caps::has(Caps::CGROUP) {
        return 0;
    }
    let mut buffer = [0u8; 512];
    text::read(path, &mut buffer).map_or(0, read_pages_in)
}

/// The same, by the file's text.
fn read_pages_in(io: &[u8]) -> u64 {
    text::line_after(io, b"read_bytes:").and_then(text::number).map_or(0, |bytes| bytes / PAGE as u64)
}

/// Resident pages of this process, files' among them; `None` if the kernel refuses. By `/proc/self/statm`,
/// which takes two microseconds; the count may be off by some dozens of pages a processor.
pub fn resident() -> Option<u64> {
    let mut buffer = [0u8; 128];
    resident_in(text::read(c"/proc/self/statm", &mut buffer)?)
}

/// The same, by the file's text: its second number.
fn resident_in(statm: &[u8]) -> Option<u64> {
    let blank = statm.iter().position(|&byte| byte == b' ')?;
    text::number(&statm[blank..])
}

/// Bytes of this process that are paged out; 0 if the kernel refuses.
pub fn swapped() -> u64 {
    if !caps::has(Caps::CGROUP) {
        return 0;
    }
    let mut buffer = [0u8; STATUS_MAX];
    text::read(c"/proc/self/status", &mut buffer).map_or(0, swapped_in)
}

/// Bytes read at a time of `/proc/self/status`: a line of groups, perhaps long, comes before the wanted one.
const STATUS_MAX: usize = 16 << 10;

/// The same, by the file's text.
pub(crate) fn swapped_in(status: &[u8]) -> u64 {
    text::line_after(status, b"VmSwap:").and_then(text::number).map_or(0, |kib| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_met_at_least_what_its_thread_has() {
        let own = thread_met();
        let all = met();
        assert!(own.faults <= all.faults && own.waits <= all.waits, "{own:?} of {all:?}");
        assert_eq!(all.since(all), Met::default());
    }

    #[test]
    fn pages_read_are_bytes_read_from_devices() {
        let io = b"rchar: 900000\nwchar: 5\nsyscr: 7\nsyscw: 1\nread_bytes: 45056\nwrite_bytes: 8192\n";
        assert_eq!((read_pages_in(io), read_pages_in(b"rchar: 4096\n")), (11, 0));
        let own = thread_read_pages();
        assert!(own <= read_pages(), "{own}");
    }

    #[test]
    fn resident_pages_are_counted_by_the_second_number() {
        assert_eq!(resident_in(b"4242 707 300 12 0 99 0\n"), Some(707));
        assert_eq!((resident_in(b"4242"), resident_in(b"4242 x")), (None, None));
        if let Some(pages) = resident() {
            assert!((64..1 << 35).contains(&pages), "{pages} pages");
        }
    }

    #[test]
    fn what_is_paged_out_is_found_behind_many_groups() {
        let groups = "4294967294 ".repeat(1000);
        let status = std::format!(
            "Name:\tprog\nGroups:\t{groups}\nVmRSS:\t    2048 kB\nVmSwap:\t      12 kB\nThreads:\t1\n"
        );
        assert_eq!(swapped_in(status.as_bytes()), 12 << 10);
        assert_eq!(swapped_in(b"Name:\tprog\nVmRSS:\t    2048 kB\n"), 0, "a kernel without swap");
        // This process's file has the line, if the kernel has swap, with at most the address space.
        assert!(swapped() < 1 << 47);
    }
}
