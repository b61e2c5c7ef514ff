//! Page faults answered by the process itself: `userfaultfd`, as a pager needs it.
//!
//! ```text
//! open ──▶ register a range ──▶ wait: who touched which missing page?
//!                                 │
//!            move_in / copy_in / zero ──▶ the page is there, waiting threads go on
//!            move_out / protect        ──▶ the page is ours alone again
//! ```
//!
//! Without privilege only faults of user mode are reported ([`Reach::User`]): a system call that meets a
//! missing page fails with `EFAULT`. With it (`CAP_SYS_PTRACE`, or `vm.unprivileged_userfaultfd=1`) the
//! kernel's own faults wait like everybody's ([`Reach::Kernel`]).
//!
//! Invariant: a range has one owner. [`crate::track`] follows writes in ranges of its own,
//! [`crate::transfer`] holds its ranges for the length of a move; a pager's ranges belong to neither.

use crate::caps::{self, Caps};
use crate::uffd::{
    self, FEATURE_MOVE, FEATURE_PAGEFAULT_FLAG_WP, REGISTER_MODE_MISSING, REGISTER_MODE_WP, Transfer,
    USER_MODE_ONLY, Zeros, ioctl,
};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;

const UFFDIO_WAKE: u64 = 0x8010_aa02;
const UFFDIO_COPY: u64 = 0xc028_aa03;
const UFFDIO_POISON: u64 = 0xc020_aa08;
const EVENT_PAGEFAULT: u64 = 0x12;
const FLAG_WRITE: u64 = 1 << 0;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    event: u64,
    flags: u64,
    address: u64,
    thread: u64,
}

const _: () = assert!(size_of::<Message>() == 32);

/// The most faults told by one call of [`Faults::wait`].
pub const FAULTS_MAX: usize = 32;

/// Whose faults are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of user mode; a system call that meets a missing page fails with `EFAULT`.
    User,
    /// All.
    Kernel,
}

/// The end of a move that nobody reaches but the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ours {
    /// Where the pages are.
    Source,
    /// Where they are going, and nothing is yet.
    Destination,
}

/// The answer for a page that is at neither end of its move.
pub const LOST: Errno = Errno::NOTRECOVERABLE;

/// A thread touched a page that was not there, or wrote to a protected one, and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fault {
    /// The page's first byte.
    pub page: usize,
    /// Whether it wanted to write.
    pub write: bool,
}

/// The descriptor by which faults are reported and answered.
#[derive(Debug)]
pub struct Faults {
    file: OwnedFd,
    reach: Reach,
    moves: bool,
}

impl Faults {
    /// Opens a descriptor with as long a reach and as many features as are to be had, [`Caps::KERNEL_FAULTS`]
    /// and [`Caps::MOVE`] permitting.
    ///
    /// # Errors
    /// The errno with which the kernel refuses even the least: there is no `userfaultfd` here, or a filter
    /// forbids it.
    pub fn open() -> Result<Faults, Errno> {
        let reaches = [(Reach::Kernel, 0, Caps::KERNEL_FAULTS), (Reach::User, USER_MODE_ONLY, Caps::empty())];
        let mut refused = Errno::NOSYS;
        for (reach, mode, needed) in reaches {
            for moves in [true, false] {
                if !caps::has(needed) || moves && !caps::has(Caps::MOVE) {
                    continue;
                }
                let features = FEATURE_PAGEFAULT_FLAG_WP | if moves { FEATURE_MOVE } else { 0 };
                match uffd::open(mode, features) {
                    Ok(file) => return Ok(Faults { file, reach, moves }),
                    Err(errno) => refused = errno,
                }
            }
        }
        Err(refused)
    }

    /// Whether a descriptor opened now would report the kernel's own faults.
    pub fn would_reach_kernel() -> bool {
        caps::has(Caps::KERNEL_FAULTS) && uffd::open(0, FEATURE_PAGEFAULT_FLAG_WP).is_ok()
    }

    /// Whose faults are reported.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Whether pages can be moved, and not only copied.
    pub fn moves(&self) -> bool {
        self.moves
    }

    /// Makes `len` bytes from `start`, mapped, private and anonymous, this descriptor's. If `told`, touches
    /// of missing pages there are reported from now on; otherwise pages can only be moved there.
    ///
    /// # Errors
    /// `BUSY` if they are another descriptor's.
    pub fn register(&self, start: usize, len: usize, told: bool) -> Result<(), Errno> {
        let mode = REGISTER_MODE_WP | if told { REGISTER_MODE_MISSING } else { 0 };
        uffd::register(&self.file, start, len, mode)
    }

    /// Waits for faults, and returns how many are in `out` now (none if a signal came).
    ///
    /// # Errors
    /// The kernel's errno, as when somebody closed the descriptor.
    pub fn wait(&self, out: &mut [Fault; FAULTS_MAX]) -> Result<usize, Errno> {
        let mut messages = [Message::default(); FAULTS_MAX];
        let into = messages.as_mut_ptr() as usize;
        let args = [self.file.as_raw_fd() as usize, into, size_of_val(&messages), 0, 0, 0];
        // SAFETY: the kernel writes whole messages, at most as many bytes as the array has.
        let bytes = match unsafe { crate::raw::syscall(libc::SYS_read, args) } {
            Err(Errno::INTR | Errno::AGAIN) => 0,
            other => other?,
        };
        let mut found = 0;
        for message in &messages[..bytes / size_of::<Message>()] {
            if message.event & 0xff == EVENT_PAGEFAULT {
                let page = crate::round_down(message.address as usize, crate::PAGE);
                out[found] = Fault { page, write: message.flags & FLAG_WRITE != 0 };
                found += 1;
            }
        }
        Ok(found)
    }

    /// Lets threads that wait for pages of the range try again.
    pub fn wake(&self, start: usize, len: usize) {
        let mut request = Zeros { start: start as u64, len: len as u64, mode: 0, done: 0 };
        let _ = ioctl(&self.file, UFFDIO_WAKE, &mut request);
    }

    /// Moves the pages at `from` to the missing pages at `to`, and wakes who waits for them. Returns how many
    /// bytes were moved, all of those and no more, and why not all.
    ///
    /// The kernel may move a page and still answer with an error that does not count it, while it migrates
    /// pages. So after every error the end that `ours` names is looked at, page by page.
    ///
    /// # Safety
    /// Nobody relies on what is at `from`; both ranges are registered here. Memory at the end that `ours`
    /// names is reached by nobody, and is there if it is the source, and missing if it is the destination.
    pub unsafe fn move_pages(
        &self,
        from: usize,
        to: usize,
        len: usize,
        ours: Ours,
    ) -> (usize, Result<(), Errno>) {
        let mut moved = 0;
        while moved < len {
            let mut transfer = Transfer {
                dst: (to + moved) as u64,
                src: (from + moved) as u64,
                len: (len - moved) as u64,
                mode: 0,
                done: 0,
            };
            let result = uffd::move_pages(&self.file, &mut transfer);
            moved += usize::try_from(transfer.done).unwrap_or(0);
            let Err(errno) = result else { continue };
            let counted = moved;
            while moved < len {
                // SAFETY: by this function's condition.
                match unsafe { self.has_moved(from + moved, to + moved, ours) } {
                    Ok(true) => moved += crate::PAGE,
                    Ok(false) => break,
                    Err(errno) => return (moved, Err(errno)),
                }
            }
            if moved > counted {
                // The kernel wakes only for what it has counted.
                self.wake(to + counted, moved - counted);
            }
            match errno {
                // Mappings are being changed: the same again.
                Errno::AGAIN => {}
                Errno::EXIST if moved > counted => {}
                errno if moved < len => return (moved, Err(errno)),
                _ => {}
            }
        }
        (moved, Ok(()))
    }

    /// Whether the page that was to move from `from` to `to` has.
    ///
    /// # Errors
    /// The kernel's errno if this cannot be found out; [`LOST`] if the page is at neither end.
    ///
    /// # Safety
    /// As [`Faults::move_pages`].
    unsafe fn has_moved(&self, from: usize, to: usize, ours: Ours) -> Result<bool, Errno> {
        // SAFETY: by this function's condition nobody reaches that end, nor relies on its being empty.
        let is_there = |page: usize| unsafe { uffd::is_there(&self.file, page) };
        match ours {
            Ours::Destination => is_there(to),
            Ours::Source if is_there(from)? => Ok(false),
            Ours::Source if self.is_hole(to)? => Err(LOST),
            Ours::Source => Ok(true),
        }
    }

    /// Copies `len` bytes of pages at `from` to new pages at `to`, missing so far, and wakes who waits for
    /// them. Returns how many bytes were copied, and why not more.
    ///
    /// # Safety
    /// Nobody writes to what is at `from` meanwhile. If it cannot be read, nothing is copied.
    pub unsafe fn copy_in(&self, from: usize, to: usize, len: usize) -> (usize, Result<(), Errno>) {
        let mut copied = 0;
        while copied < len {
            let mut transfer = Transfer {
                dst: (to + copied) as u64,
                src: (from + copied) as u64,
                len: (len - copied) as u64,
                mode: 0,
                done: 0,
            };
            let result = ioctl(&self.file, UFFDIO_COPY, &mut transfer);
            copied += usize::try_from(transfer.done).unwrap_or(0);
            match result {
                // Mappings are being changed: the same again.
                Ok(_) | Err(Errno::AGAIN) => {}
                Err(errno) => return (copied, Err(errno)),
            }
        }
        (copied, Ok(()))
    }

    /// Puts zeros at `page` if nothing is there, and wakes who waits for it. Returns whether nothing was.
    ///
    /// # Errors
    /// The kernel's errno; who waits goes on waiting.
    pub fn zero(&self, page: usize) -> Result<bool, Errno> {
        uffd::zero(&self.file, page, 0)
    }

    /// Whether nothing is at `page`, where the program should have something: then it is lost, and who waits
    /// for it goes on waiting, while the caller stops the program; a new touch is a SIGBUS (`UFFDIO_POISON`,
    /// Linux 6.6). Older kernels put zeros there instead.
    ///
    /// # Errors
    /// The kernel's errno: it is not known.
    pub fn is_hole(&self, page: usize) -> Result<bool, Errno> {
        loop {
            let mode = uffd::MODE_DONTWAKE;
            let mut request = Zeros { start: page as u64, len: crate::PAGE as u64, mode, done: 0 };
            match ioctl(&self.file, UFFDIO_POISON, &mut request) {
                Ok(_) => return Ok(true),
                Err(Errno::EXIST) => return Ok(false),
                Err(Errno::AGAIN) => {}
                Err(Errno::INVAL) => return uffd::zero(&self.file, page, mode),
                Err(errno) => return Err(errno),
            }
        }
    }

    /// From now on a write to the page waits as a touch of a missing one does.
    ///
    /// # Errors
    /// The kernel's errno; nothing has changed then.
    pub fn protect(&self, page: usize) -> Result<(), Errno> {
        uffd::protect(&self.file, page, crate::PAGE, true)
    }

    /// Undoes [`Faults::protect`], and wakes who waits.
    pub fn unprotect(&self, page: usize) {
        let _ = uffd::protect(&self.file, page, crate::PAGE, false);
    }
}
