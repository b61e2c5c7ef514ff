//! Flushes the TLB after accessed bits are cleared: stale TLB entries would hide references.
//!
//! A processor sets a page's accessed bit when it loads the page's translation into its TLB, not when it uses
//! a loaded translation. Writing 1 to `clear_refs` leaves the TLB unchanged. So do context switches, because
//! entries are tagged by address space. On a quiet machine thousands of pages in use then count as idle: of
//! 1,000 pages touched again after a clearing, between none and all were counted.
//!
//! Writing 4 to `clear_refs` clears soft-dirty bits *and flushes* the translations of the process on every
//! processor:
//! - On kernels without soft-dirty bits (`CONFIG_MEM_SOFT_DIRTY`) this is only a walk over the page tables,
//!   some 3 ns per page, and the flush, 16 to 50 µs of our time. All of 1,000 pages are then counted.
//!   [`REARM`] includes the process's cost of loading its translations again.
//! - On kernels with soft-dirty bits this would clear the bits for their users (checkpointing; collectors,
//!   which would lose objects), and cost a fault for each written page. The TLB is not flushed there.
//!
//! Two other ways were rejected, because TLB entries remain. One touches as many pages of our own as a TLB
//! holds, on the processor of the process (up to a sixth remain). The other moves the process to another
//! processor and back. Writing 1 twice, or 5, has no effect.
//!
//! [`REARM`]: crate::source::REARM

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// In an entry of `/proc/PID/pagemap`: the page was written since the bit was last cleared.
const SOFT_DIRTY: u64 = 1 << 55;
const ENTRY: u64 = 8;

/// The caveat on counts where translations stay.
pub(super) const LEFT: &str = "windows below 0.4 s may be up to 3,000 pages too small: with soft-dirty bits this kernel does not flush the processor's TLB";

/// The caveat on counts by sources that clear bits in the kernel, which flushes nothing.
pub(super) const LEFT_BY_OTHERS: &str = "windows below 0.4 s may be up to 3,000 pages too small: the kernel clears accessed bits without flushing the processor's TLB";

/// True if a page that has just been written has the bit in `/proc/self/pagemap`.
pub fn has_soft_dirty() -> io::Result<bool> {
    const PAGE: usize = vellum_sys::PAGE;
    let mut memory = vec![0u8; 2 * PAGE];
    // A real write, for the kernel to see; `black_box` keeps the optimiser from removing it.
    std::hint::black_box(&mut memory).fill(1);
    let address = std::hint::black_box(&memory).as_ptr() as usize + PAGE;
    let mut entry = [0; ENTRY as usize];
    File::open("/proc/self/pagemap")?.read_exact_at(&mut entry, (address / PAGE) as u64 * ENTRY)?;
    drop(memory);
    Ok(u64::from_ne_bytes(entry) & SOFT_DIRTY != 0)
}
