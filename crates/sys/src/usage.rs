//! What this process has met and has been given: page faults that waited for a device, and pages that are paged out.
//!
//! A process that has forbidden itself most system calls has lost the capability to look, and is told 0.

use crate::caps::{self, Caps};
use crate::text;

/// Page faults of this process so far that had to wait for a device.
pub fn major_faults() -> u64 {
    faults(libc::RUSAGE_SELF)
}

/// The same of the calling thread.
pub fn thread_major_faults() -> u64 {
    faults(libc::RUSAGE_THREAD)
}

fn faults(of: libc::c_int) -> u64 {
    if !caps::has(Caps::CGROUP) {
        return 0;
    }
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: writes one structure; all zeros are a valid one should it not.
    let usage = unsafe {
        libc::getrusage(of, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_majflt).unwrap_or(0)
}

/// Bytes of this process that are paged out; 0 where the kernel does not tell.
pub fn swapped() -> u64 {
    if !caps::has(Caps::CGROUP) {
        return 0;
    }
    // `VmSwap` is the 21st line.
    let mut buffer = [0u8; 2048];
    text::read(c"/proc/self/status", &mut buffer)
        .and_then(|status| text::line_after(status, b"VmSwap:"))
        .and_then(text::number)
        .map_or(0, |kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_met_at_least_what_its_thread_has() {
        let own = thread_major_faults();
        assert!(own <= major_faults());
        // The kernel may page out anything at any time, but never more than there is.
        assert!(swapped() < 1 << 40);
    }
}
