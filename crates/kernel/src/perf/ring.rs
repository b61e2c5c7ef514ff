//! The ring buffer of a perf event: the kernel writes records to it, and we read these.
//!
//! ```text
//! page 0               pages 1 .. 2^n
//! head, tail, …        ┌──────┬───────┬──────┐
//!                      │ old  │ unread│ old  │    the kernel writes at head, we read from tail to head
//!                      └──────┴───────┴──────┘
//!                             tail    head         byte counts; the position is the count modulo the size
//! ```
//!
//! Invariant: bytes from `tail` to `head` are whole records, and the kernel does not overwrite them: it
//! reuses only bytes that `tail` has passed.

use super::Event;
use super::record::HEAD_BYTES;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Offset in a ring's first page of the kernel's write position; our read position follows it.
const HEAD_AT: usize = 1024;
const PAGES_OF_BYTES: usize = 8;

/// A ring's mapping.
#[derive(Debug)]
pub struct Ring {
    base: *mut u8,
    pages: usize,
}

// SAFETY: the mapping belongs to the ring alone, and only its owner, on one thread at a time, reads it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of `event` with `pages_max` pages of data, a power of two. The size is halved, down to
    /// `pages_min`, while the kernel allows no more locked memory.
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

    /// A ring of a few pages that no event writes to. The first two words of `bytes` are the positions of
    /// writer and reader; the rest is the data.
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

    fn ends(&self) -> (&AtomicU64, &AtomicU64) {
        // SAFETY: within the mapping's first page, aligned, and shared with the kernel by these very words.
        unsafe {
            let head = &*self.base.add(HEAD_AT).cast::<AtomicU64>();
            (head, &*self.base.add(HEAD_AT + 8).cast::<AtomicU64>())
        }
    }

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
