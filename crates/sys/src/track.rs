//! Finds the written pages of a range, by asynchronous write-protection (`userfaultfd`, `PAGEMAP_SCAN`, Linux
//! 6.7).
//!
//! ```text
//! cover ──▶ the kernel may track these map entries     (protects nothing yet)
//! arm   ──▶ pages are marked unwritten                 (a write clears the mark)
//! take  ──▶ returns written pages; marks them again
//! drop  ──▶ ends the tracking
//! ```
//!
//! The kernel clears a mark without a signal, also when a system call writes. The marks are bits of
//! page-table entries, so tracking splits no mappings. A write to a marked page costs a fault, about 0.6 µs.
//!
//! Invariants: a tracker belongs to the process that made it. A child's pages are not tracked, and its copies
//! of the descriptors refer to the parent's memory. In a child all operations fail, even without fork
//! handlers (`_Fork`, a direct `clone`), and dropping the tracker does not affect the parent's. If the
//! program closes a tracker's descriptors, tracking fails; files opened later under their numbers are not
//! touched. A range has one tracker: if another descriptor tracks a part of it, [`Tracker::cover`] fails.
//! `UFFDIO_MOVE` moves no pages in a tracked range.

use crate::caps::{self, Caps};
use crate::uffd::{self, FEATURE_PAGEFAULT_FLAG_WP, ioctl};
use crate::{Addr, PAGE, Span};
use core::mem::ManuallyDrop;
use core::ops::Deref;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};

const PAGEMAP_SCAN: u64 = 0xc060_6610;
/// Pages that have no frame yet are tracked too.
const FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
/// Faults are resolved in the kernel.
const FEATURE_WP_ASYNC: u64 = 1 << 15;
const FEATURES: u64 = FEATURE_PAGEFAULT_FLAG_WP | FEATURE_WP_UNPOPULATED | FEATURE_WP_ASYNC;
const PAGE_IS_WRITTEN: u64 = 1 << 1;
const SCAN_PROTECT_MATCHING: u64 = 1;
/// Fails where pages are not tracked, rather than take them for unwritten.
const SCAN_CHECK_TRACKED: u64 = 2;

#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    out: u64,
    out_len: u64,
    pages_max: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

const _: () = assert!(size_of::<Scan>() == 96);

/// Pages from `start` up to `end` that were written to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The first byte.
    pub start: Addr,
    /// The first byte behind it.
    pub end: Addr,
    categories: u64,
}

impl Written {
    /// Pages from `start` up to `end`.
    pub const fn new(start: Addr, end: Addr) -> Written {
        Written { start, end, categories: PAGE_IS_WRITTEN }
    }
}

/// The result of a search for written pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Ranges found.
    pub ranges: usize,
    /// The end of the search, at which the next one goes on.
    pub end: Addr,
}

/// A descriptor that the program did not open, and might close.
#[derive(Debug)]
struct Hidden {
    file: ManuallyDrop<OwnedFd>,
    /// The file's device and inode.
    target: (u64, u64),
}

impl Hidden {
    fn new(file: OwnedFd) -> Result<Hidden, Errno> {
        let target = target(&file)?;
        Ok(Hidden { file: ManuallyDrop::new(high(file)), target })
    }
}

/// The least numbers for such descriptors, the best first: programs expect the low ones for themselves.
const HIGH: [i32; 3] = [900, 200, 50];

/// Moves the descriptor to a high number, if the process may have one.
fn high(file: OwnedFd) -> OwnedFd {
    HIGH.iter().find_map(|&least| rustix::io::fcntl_dupfd_cloexec(&file, least).ok()).unwrap_or(file)
}

impl Deref for Hidden {
    type Target = OwnedFd;

    fn deref(&self) -> &OwnedFd {
        &self.file
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if target(&self.file) == Ok(self.target) {
            // SAFETY: dropped once, here. Under a number that leads elsewhere now is the program's own file.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

fn target(file: &OwnedFd) -> Result<(u64, u64), Errno> {
    rustix::fs::fstat(file).map(|stat| (stat.st_dev, stat.st_ino))
}

/// The kernel's account of written pages, until it is dropped. Other processes get `PERM` for every call.
#[derive(Debug)]
pub struct Tracker {
    faults: Hidden,
    pages: Hidden,
    process: Pid,
}

impl Tracker {
    /// A tracker of nothing yet.
    ///
    /// # Errors
    /// The errno with which the kernel refuses; [`Caps::TRACK`] is dropped if it will always.
    pub fn new() -> Result<Tracker, Errno> {
        if !caps::has(Caps::TRACK) {
            return Err(Errno::NOSYS);
        }
        let made = Tracker::open();
        if let Err(errno) = made
            && (caps::means_missing(errno) || errno == Errno::NOENT)
        {
            caps::refuse(Caps::TRACK, errno);
        }
        made
    }

    fn open() -> Result<Tracker, Errno> {
        let faults = Hidden::new(uffd::open(uffd::USER_MODE_ONLY, FEATURES)?)?;
        let pages = rustix::fs::open(c"/proc/self/pagemap", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let pages = Hidden::new(pages)?;
        let tracker = Tracker { faults, pages, process: getpid() };
        // Whether the scan is known: of no pages, so that nothing need be covered.
        tracker.scan(Span::EMPTY, &mut [Written::default()], 0)?;
        Ok(tracker)
    }

    /// The descriptor of faults, in the process that made it.
    fn faults(&self) -> Result<&OwnedFd, Errno> {
        self.owned().map(|()| &*self.faults)
    }

    fn owned(&self) -> Result<(), Errno> {
        if getpid() == self.process { Ok(()) } else { Err(Errno::PERM) }
    }

    /// Lets the pages of `span`, mapped, private and anonymous, be tracked until this is dropped.
    ///
    /// # Errors
    /// `BUSY` if another descriptor tracks any of it; `NOMEM` if no map entry is left for it.
    pub fn cover(&self, span: Span) -> Result<(), Errno> {
        uffd::register(self.faults()?, span, uffd::REGISTER_MODE_WP)
    }

    /// Counts the covered pages of `span` as unwritten from now on.
    ///
    /// # Errors
    /// The kernel's errno: they count as written then. `PERM` if pages there are not covered.
    pub fn arm(&self, span: Span) -> Result<(), Errno> {
        let mut left = span;
        while !left.is_empty() {
            // A scan that reports nothing marks the pages without looking up what else is known of each.
            let scanned = self.scan(left, &mut [], SCAN_CHECK_TRACKED | SCAN_PROTECT_MATCHING)?;
            left = left.from(scanned.end.max(left.start + PAGE));
        }
        Ok(())
    }

    /// Counts the pages of `span` as written, so that writing to them costs no fault.
    ///
    /// # Errors
    /// The kernel's errno; nothing has changed then.
    pub fn disarm(&self, span: Span) -> Result<(), Errno> {
        uffd::unprotect(self.faults()?, span)
    }

    /// Ends the tracking of `span`, all of which is covered.
    ///
    /// # Errors
    /// The kernel's errno; nothing has changed then.
    pub fn uncover(&self, span: Span) -> Result<(), Errno> {
        uffd::unregister(self.faults()?, span)
    }

    /// Finds written pages in `span`, at most as many ranges as `out` holds; then unwritten if `again`.
    ///
    /// # Errors
    /// The kernel's errno; `PERM` if pages there are not covered, as after somebody closed the descriptors.
    pub fn take(&self, span: Span, again: bool, out: &mut [Written]) -> Result<Taken, Errno> {
        let flags = SCAN_CHECK_TRACKED | if again { SCAN_PROTECT_MATCHING } else { 0 };
        self.scan(span, out, flags)
    }

    fn scan(&self, span: Span, out: &mut [Written], flags: u64) -> Result<Taken, Errno> {
        let mut request = Scan {
            size: size_of::<Scan>() as u64,
            flags,
            start: span.start.get() as u64,
            end: span.end().get() as u64,
            walk_end: 0,
            // A list of no room is none.
            out: if out.is_empty() { 0 } else { out.as_mut_ptr() as u64 },
            out_len: out.len() as u64,
            pages_max: 0,
            inverted: 0,
            all_of: PAGE_IS_WRITTEN,
            any_of: 0,
            returned: PAGE_IS_WRITTEN,
        };
        self.owned()?;
        let found = ioctl(&self.pages, PAGEMAP_SCAN, &mut request)?;
        Ok(Taken { ranges: found.min(out.len()), end: Addr::new(request.walk_end as usize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map;
    use rustix::fd::AsRawFd;

    /// A program that closes unknown descriptors, and opens files under their numbers, keeps these files.
    #[test]
    fn numbers_that_lead_elsewhere_are_left_alone() {
        let Ok(tracker) = Tracker::new() else {
            vellum_skip::skip("this kernel or privilege does not track writes");
            return;
        };
        let numbers = [&tracker.faults, &tracker.pages].map(|hidden| hidden.file.as_raw_fd());
        let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY, Mode::empty()).expect("a file");
        for number in numbers {
            // SAFETY: puts another file under the number, as a program might.
            assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), number) }, number);
        }
        assert!(tracker.cover(Span::new(Addr::NULL, PAGE)).is_err());
        drop(tracker);
        for number in numbers {
            // SAFETY: asks whether the number is in use; then closes what was put there.
            unsafe {
                assert_ne!(libc::fcntl(number, libc::F_GETFD), -1, "the program's file was closed");
                libc::close(number);
            }
        }
    }

    const PAGES: usize = 64;

    #[test]
    fn writes_are_seen_and_nothing_else() {
        let tracker = match Tracker::new() {
            Ok(tracker) => tracker,
            Err(errno) => {
                vellum_skip::skip(format_args!("this kernel or privilege does not track writes ({errno:?})"));
                return;
            }
        };
        let span = map::reserve_writable(PAGES * PAGE).expect("memory");
        let at = |page: usize| span.start + page * PAGE;
        // SAFETY: callers name pages of the span, which is mapped and writable.
        let write = |page: usize| unsafe { at(page).ptr::<u8>().write_volatile(1) };
        let nothing = Taken { ranges: 0, end: span.end() };
        (0..PAGES / 2).for_each(write);
        let mut found = [Written::default(); PAGES];
        assert_eq!(tracker.take(span, false, &mut found), Err(Errno::PERM), "not covered yet");
        tracker.cover(span).expect("a private range");
        tracker.arm(span).expect("a covered range");
        assert_eq!(tracker.take(span, true, &mut found), Ok(nothing));
        // The second half has no frames yet.
        for page in [3, 4, 9, PAGES - 2] {
            write(page);
        }
        assert_eq!(tracker.take(span, true, &mut found), Ok(Taken { ranges: 3, ..nothing }));
        let ranges = [(3, 5), (9, 10), (PAGES - 2, PAGES - 1)];
        assert_eq!(found[..3], ranges.map(|(first, end)| Written::new(at(first), at(end))));
        write(9);
        // Room for one range only: the rest is found from where it stopped.
        write(20);
        let one = tracker.take(span, false, &mut found[..1]).expect("a covered range");
        assert_eq!((one.ranges, found[0].start), (1, at(9)));
        assert_eq!(tracker.take(span.from(one.end), false, &mut found).expect("a covered range").ranges, 1);
        tracker.disarm(span).expect("a covered range");
        assert_eq!(tracker.take(span, false, &mut found).expect("a covered range").ranges, 1);
        tracker.uncover(span).expect("a covered range");
        assert_eq!(tracker.take(span, false, &mut found), Err(Errno::PERM), "covered no more");
        drop(tracker);
        // SAFETY: nobody uses the range any more.
        unsafe { map::release(span) }.expect("a mapped range");
    }
}
