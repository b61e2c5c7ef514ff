//! What the writing thread compresses pages with: tables of the compressor, and room for its results.
//!
//! The compressor is LZ4's block format by `lz4_flex`, without its standard library and without allocation:
//! it works in memory that it is handed. Pages are compressed here while faults are answered, and only copied
//! to the log with the lock held.

use super::log::{SEGMENT, size_of_entry};
use crate::units::PAGE;
use core::ptr::NonNull;
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use rustix::io::Errno;
use vellum_sys::{map, round_up};

/// The longest that a compressed page may be: three quarters of a page.
pub(super) const LEN_MAX: usize = PAGE / 4 * 3;
/// Pages compressed in one go.
pub(crate) const ROUND: usize = 64;
/// Compressed bytes after which no page more is begun in it.
const PACKED: usize = 24 << 10;
/// Pages written behind in one call.
pub(crate) const PIECE: usize = 32;

// The results of one go fit an empty segment.
const _: () = assert!(PACKED + LEN_MAX + ROUND * size_of_entry(0) * 2 <= SEGMENT);

/// The room.
#[repr(C, align(4096))]
pub(crate) struct Bench {
    pages: [u8; PIECE * PAGE],
    table: CompressTable,
    packed: [u8; PACKED + get_maximum_output_size(PAGE)],
    lens: [u16; ROUND],
    filled: usize,
}

const BYTES: usize = round_up(size_of::<Bench>(), PAGE);

impl Bench {
    /// A bench in a mapping of its own.
    pub(super) fn new() -> Result<NonNull<Bench>, Errno> {
        let start = map::reserve_writable(BYTES)?;
        let bench = start as *mut Bench;
        // SAFETY: zeros reserved a moment ago, long and aligned enough; all fields but the table may be zero.
        unsafe { (&raw mut (*bench).table).write(CompressTable::small()) };
        NonNull::new(bench).ok_or(Errno::NOMEM)
    }

    /// Gives its mapping back.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub(super) unsafe fn end(bench: NonNull<Bench>) {
        // SAFETY: by this function's condition.
        let _ = unsafe { map::release(bench.as_ptr() as usize, BYTES) };
    }

    /// Compresses the pages at `frames`, as far as there is room; how many it has dealt with.
    ///
    /// # Safety
    /// Pages of readable memory start there, which nobody writes to meanwhile.
    pub(crate) unsafe fn pack(&mut self, frames: &[usize]) -> usize {
        (self.filled, self.lens) = (0, [0; ROUND]);
        for (index, &frame) in frames.iter().take(ROUND).enumerate() {
            if self.filled >= PACKED {
                return index;
            }
            // SAFETY: by this function's condition.
            let page = unsafe { core::slice::from_raw_parts(frame as *const u8, PAGE) };
            let into = &mut self.packed[self.filled..];
            let len = compress_into_with_table(page, into, &mut self.table).unwrap_or(PAGE);
            if len <= LEN_MAX {
                self.lens[index] = len as u16;
                self.filled += len;
            }
        }
        frames.len().min(ROUND)
    }

    /// The pages compressed last, in order; empty where a page is not shorter.
    pub(crate) fn packed(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        self.lens.iter().map(move |&len| {
            let from = at;
            at += usize::from(len);
            &self.packed[from..at]
        })
    }

    /// The page of [`PIECE`] pages at `index`.
    pub(crate) fn page(&mut self, index: usize) -> &mut [u8] {
        &mut self.pages[index * PAGE..(index + 1) * PAGE]
    }
}

/// Decompresses what is at `bytes` into a page. Whether it is one.
pub(super) fn unpack(bytes: &[u8], page: &mut [u8]) -> bool {
    decompress_into(bytes, page).is_ok_and(|len| len == PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[repr(align(4096))]
    struct Page([u8; PAGE]);

    proptest! {
        /// Whatever is compressed comes back as it was, and what is not shorter is refused.
        #[test]
        fn pages_come_back(kinds in proptest::collection::vec((0u8..4, any::<u64>()), 1..ROUND)) {
            let mut random = vellum_random::Rng::new(kinds[0].1);
            let pages: Vec<Box<Page>> = kinds.iter().map(|&(kind, seed)| {
                let mut page = Box::new(Page([0; PAGE]));
                for (index, byte) in page.0.iter_mut().enumerate() {
                    *byte = match kind {
                        0 => random.next_u64() as u8,
                        1 => ((index as u64 / 7) ^ seed) as u8,
                        2 if index % 8 < 5 => random.next_u64() as u8,
                        2 => 0,
                        _ => seed as u8,
                    };
                }
                page
            }).collect();
            let frames: Vec<usize> = pages.iter().map(|page| page.0.as_ptr() as usize).collect();
            let bench = Bench::new().expect("memory");
            // SAFETY: the test's own.
            let room = unsafe { &mut *bench.as_ptr() };
            let mut rest = &frames[..];
            let mut at = 0;
            while !rest.is_empty() {
                // SAFETY: the pages live on.
                let done = unsafe { room.pack(rest) };
                prop_assert!(done > 0);
                for (page, bytes) in pages[at..at + done].iter().zip(room.packed()) {
                    let mut back = [1; PAGE];
                    prop_assert!(bytes.is_empty() || unpack(bytes, &mut back) && back == page.0);
                    prop_assert!(bytes.len() <= LEN_MAX);
                }
                for (&(kind, _), bytes) in kinds[at..at + done].iter().zip(room.packed()) {
                    prop_assert!(kind == 2 || bytes.is_empty() == (kind == 0), "{}", kind);
                }
                at += done;
                rest = &rest[done..];
            }
            // SAFETY: used no more.
            unsafe { Bench::end(bench) };
        }
    }

    #[test]
    fn what_is_no_compressed_page_is_none() {
        let mut page = [0; PAGE];
        for wrong in [&[][..], &[0xff; 9], &[0x10, 1], &[0; 64]] {
            assert!(!unpack(wrong, &mut page), "{wrong:?}");
        }
    }
}
