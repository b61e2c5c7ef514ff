//! The kernel's event rings: memory that `perf_event_open` writes and we read.
//!
//! ```text
//! page 0               pages 1 .. 2^n
//! head, tail, …        ┌──────┬───────┬──────┐
//!                      │ old  │ unread│ old  │    the kernel writes at head, we read from tail to head
//!                      └──────┴───────┴──────┘
//!                             tail    head         both count bytes for ever; the place is their remainder
//! ```
//!
//! Invariants: bytes from `tail` to `head` are whole records and are not written until `tail` has passed
//! them.
//!
//! Source: perf_event_open(2) and the kernel's `linux/perf_event.h`.

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Bytes of a record's head: kind, flags, length.
pub const HEAD_BYTES: usize = 8;
/// Offset in a ring's first page of the kernel's write position; our read position follows it.
const HEAD_AT: usize = 1024;
/// Pages of a ring that is made of bytes.
const PAGES_OF_BYTES: usize = 8;
/// Close the descriptor when another program is executed.
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Redirects an event to another's ring.
const SET_OUTPUT: libc::c_ulong = 0x2405;
/// Starts an event.
const ENABLE: libc::c_ulong = 0x2400;
/// Asks for its number, which its records bear.
const ID: libc::c_ulong = 0x8008_2407;
const DISABLE: libc::c_ulong = 0x2401;

/// `struct perf_event_attr`, version 5 of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the kernel's names")]
pub struct Attributes {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    pub period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clock: i32,
    pub sample_regs_intr: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == 112);

/// The kernel's numbers for what events, records and their parts are (`linux/perf_event.h`).
#[allow(missing_docs, reason = "the kernel's names")]
pub mod kernel {
    pub const TYPE_HARDWARE: u32 = 0;
    pub const TYPE_SOFTWARE: u32 = 1;

    pub const HARDWARE_INSTRUCTIONS: u64 = 1;
    pub const SOFTWARE_PAGE_FAULTS: u64 = 2;

    pub const FORMAT_TIME_ENABLED: u64 = 1;
    pub const FORMAT_TIME_RUNNING: u64 = 1 << 1;

    pub const DISABLED: u64 = 1;
    pub const INHERIT: u64 = 1 << 1;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub const MMAP: u64 = 1 << 8;
    pub const COMM: u64 = 1 << 9;
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub const TASK: u64 = 1 << 13;
    pub const WATERMARK: u64 = 1 << 14;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const MMAP2: u64 = 1 << 23;
    pub const COMM_EXEC: u64 = 1 << 24;

    pub const SAMPLE_IP: u64 = 1;
    pub const SAMPLE_TID: u64 = 1 << 1;
    pub const SAMPLE_TIME: u64 = 1 << 2;
    pub const SAMPLE_REGISTERS: u64 = 1 << 12;
    pub const SAMPLE_STACK: u64 = 1 << 13;
    pub const SAMPLE_IDENTIFIER: u64 = 1 << 16;

    pub const RECORD_LOST: u32 = 2;
    pub const RECORD_COMM: u32 = 3;
    pub const RECORD_THROTTLE: u32 = 5;
    pub const RECORD_FORK: u32 = 7;
    pub const RECORD_SAMPLE: u32 = 9;
    pub const RECORD_MMAP2: u32 = 10;
}

/// Where the kernel lists its processors.
pub const PROCESSORS: &str = "/sys/devices/system/cpu/online";
/// The most processors; no kernel is built for more.
const PROCESSORS_MAX: usize = 1 << 14;

/// The processors there are.
pub fn processors() -> io::Result<Vec<i32>> {
    std::fs::read_to_string(PROCESSORS).map(|text| numbers(&text))
}

/// The numbers in a list such as `0-3,8`.
pub fn numbers(text: &str) -> Vec<i32> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    };
    text.trim().split(',').filter_map(part).flatten().take(PROCESSORS_MAX).collect()
}

/// What an event counted, itself and what inherited it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// How often it happened while there was a counter for it.
    pub value: u64,
    /// For how long it was enabled, nanoseconds …
    pub enabled_ns: u64,
    /// … and for how long of that there was a counter.
    pub running_ns: u64,
}

/// An event that can be switched on and off.
#[derive(Debug)]
pub struct Event(File);

impl Event {
    /// Opens an event on a thread (0: the calling one), on one processor or (-1) wherever it runs.
    pub fn open(attributes: &Attributes, thread: i32, processor: i32) -> io::Result<Event> {
        // SAFETY: the attributes are as long as they say; the call makes a descriptor.
        let fd = unsafe {
            let attributes = std::ptr::from_ref(attributes);
            libc::syscall(libc::SYS_perf_event_open, attributes, thread, processor, -1, CLOSE_ON_EXEC)
        };
        match i32::try_from(fd) {
            // SAFETY: the descriptor was just made and belongs to nobody else.
            Ok(fd) if fd >= 0 => Ok(Event(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Starts it.
    pub fn enable(&self) -> io::Result<()> {
        self.tell(ENABLE, 0)
    }

    /// Stops it, and what inherited it.
    pub fn disable(&self) -> io::Result<()> {
        self.tell(DISABLE, 0)
    }

    /// Lets it write to the ring of `other`, of the same processor.
    pub fn share_ring(&self, other: &Event) -> io::Result<()> {
        self.tell(SET_OUTPUT, other.0.as_raw_fd())
    }

    /// The number that its samples bear.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: this request writes one number of this size.
        let told = unsafe { libc::ioctl(self.0.as_raw_fd(), ID, &raw mut id) };
        if told == 0 { Ok(id) } else { Err(io::Error::last_os_error()) }
    }

    /// What it has counted, itself and what inherited it; 0 where that cannot be read.
    pub fn count(&self) -> u64 {
        let mut value = [0u8; 8];
        (&self.0).read_exact(&mut value).map_or(0, |()| u64::from_ne_bytes(value))
    }

    /// What an event counted that was opened with both times in its `read_format`.
    ///
    /// # Errors
    /// The kernel's, or `UnexpectedEof` of an event that could not count.
    pub fn counted(&self) -> io::Result<Counted> {
        let mut words = [[0u8; 8]; 3];
        (&self.0).read_exact(words.as_flattened_mut())?;
        let [value, enabled_ns, running_ns] = words.map(u64::from_ne_bytes);
        Ok(Counted { value, enabled_ns, running_ns })
    }

    /// The same event, to be switched by somebody else.
    pub fn duplicate(&self) -> io::Result<Event> {
        self.0.try_clone().map(Event)
    }

    /// What to poll for its ring being half full.
    pub fn file(&self) -> &File {
        &self.0
    }

    fn tell(&self, request: libc::c_ulong, value: libc::c_int) -> io::Result<()> {
        // SAFETY: none of these requests touches this process's memory.
        let told = unsafe { libc::ioctl(self.0.as_raw_fd(), request, value) };
        if told == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// A ring's mapping.
#[derive(Debug)]
pub struct Ring {
    base: *mut u8,
    pages: usize,
}

// SAFETY: the mapping belongs to the ring alone, and only its owner, on one thread at a time, reads it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of `event` with `pages_max` pages of data (a power of two), or half of that, and so on
    /// down to `pages_min`, where the kernel allows no more to be locked in memory.
    pub fn map(event: &Event, pages_max: usize, pages_min: usize) -> io::Result<Ring> {
        let mut pages = pages_max;
        loop {
            let (access, bytes) = (ProtFlags::READ | ProtFlags::WRITE, (pages + 1) * page());
            // SAFETY: a new mapping at a place the kernel chooses.
            match unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, event.file(), 0) } {
                Ok(base) => return Ok(Ring { base: base.cast(), pages }),
                Err(rustix::io::Errno::PERM | rustix::io::Errno::NOMEM) if pages > pages_min => pages /= 2,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Pages of data.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// A ring of a few pages that no event writes to: where it is written and read next are the first two
    /// words of `bytes`, and its data begins with the rest.
    pub fn of_bytes(bytes: &[u8]) -> io::Result<Ring> {
        let pages = PAGES_OF_BYTES;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place the kernel chooses.
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), (pages + 1) * page(), access, MapFlags::PRIVATE)? };
        let ring = Ring { base: base.cast(), pages };
        let (ends, data) = bytes.split_at(bytes.len().min(16));
        let data = &data[..data.len().min(pages * page())];
        // SAFETY: both parts fit the mapping made above, which nobody else knows.
        unsafe {
            ring.base.add(HEAD_AT).copy_from_nonoverlapping(ends.as_ptr(), ends.len());
            ring.base.add(page()).copy_from_nonoverlapping(data.as_ptr(), data.len());
        }
        Ok(ring)
    }

    /// Takes out every record, oldest first, and shows each to `read` with its head.
    pub fn drain(&mut self, mut read: impl FnMut(&[u8])) {
        let (head, tail) = self.ends();
        let (end, mut at) = (head.load(Acquire), tail.load(Acquire));
        let mut record = Vec::new();
        // More than the ring holds was never in it.
        if end.wrapping_sub(at) > (self.pages * page()) as u64 {
            at = end;
        }
        while at < end {
            self.copy(at, HEAD_BYTES, &mut record);
            let bytes = usize::from(u16::from_ne_bytes([record[6], record[7]]));
            if bytes < HEAD_BYTES || bytes as u64 > end - at {
                // A malformed record: go on where the kernel writes next.
                at = end;
                break;
            }
            self.copy(at, bytes, &mut record);
            read(&record);
            at += bytes as u64;
        }
        self.ends().1.store(at, Release);
    }

    /// Where the kernel writes next and where we read next.
    fn ends(&self) -> (&AtomicU64, &AtomicU64) {
        // SAFETY: within the mapping's first page, aligned, and shared with the kernel by these very words.
        unsafe {
            let head = &*self.base.add(HEAD_AT).cast::<AtomicU64>();
            (head, &*self.base.add(HEAD_AT + 8).cast::<AtomicU64>())
        }
    }

    /// Copies `bytes` bytes of data from position `at`.
    fn copy(&self, at: u64, bytes: usize, into: &mut Vec<u8>) {
        let size = self.pages * page();
        let start = at as usize % size;
        let first = bytes.min(size - start);
        into.clear();
        // SAFETY: both parts lie within the data, which the kernel does not write before the tail has passed
        // it.
        unsafe {
            let data = self.base.add(page());
            into.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            into.extend_from_slice(std::slice::from_raw_parts(data, bytes - first));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, of this length; nothing of it was handed out.
        let _ = unsafe { munmap(self.base.cast(), (self.pages + 1) * page()) };
    }
}

fn page() -> usize {
    rustix::param::page_size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed() {
        assert_eq!(numbers("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(numbers("0\n"), [0]);
        assert!(numbers("").is_empty());
        assert!(!processors().unwrap().is_empty());
    }
}
