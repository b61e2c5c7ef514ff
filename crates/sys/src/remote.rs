//! Pages out the memory of other processes (`process_madvise`, Linux 5.10).
//!
//! The call names the process by a descriptor, which never refers to a later process with the same id. It
//! needs `CAP_SYS_NICE` and the right to read the other process's memory.

use crate::{Span, raw};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags};

/// A descriptor of the process `pid`.
///
/// # Errors
/// The kernel's errno: `SRCH` if there is no such process.
pub fn open(pid: i32) -> Result<OwnedFd, Errno> {
    let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    rustix::process::pidfd_open(pid, PidfdFlags::empty())
}

/// Has the kernel page out the pages of `span` in `process`, while there is room for them.
///
/// # Errors
/// `PERM` without the privilege; `NOSYS` before Linux 5.10; `INVAL` for unpageable memory; `SRCH`.
pub fn page_out(process: impl AsFd, span: Span) -> Result<(), Errno> {
    let range = libc::iovec { iov_base: span.start.ptr(), iov_len: span.bytes };
    let fd = process.as_fd().as_raw_fd() as usize;
    let block = [fd, &raw const range as usize, 1, libc::MADV_PAGEOUT as usize, 0, 0];
    // SAFETY: the kernel reads one range that lives here; paging out changes no content of anybody's memory.
    unsafe { raw::syscall(libc::SYS_process_madvise, block) }.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Addr, PAGE};

    #[test]
    fn a_process_that_is_not_there_is_said() {
        assert_eq!(open(0).unwrap_err(), Errno::SRCH);
        assert_eq!(open(i32::MAX).unwrap_err(), Errno::SRCH);
    }

    #[test]
    fn paging_out_keeps_the_content() {
        let memory = vec![7u8; 1 << 20];
        let own = open(rustix::process::getpid().as_raw_nonzero().get()).expect("our own process");
        let span = Span::new(Addr::of(memory.as_ptr()), memory.len()).whole(PAGE);
        match page_out(&own, span) {
            Ok(()) | Err(Errno::PERM) => {}
            Err(Errno::NOSYS) => vellum_skip::skip("this kernel has no process_madvise"),
            Err(other) => panic!("{other}"),
        }
        assert!(memory.iter().all(|byte| *byte == 7));
    }
}
