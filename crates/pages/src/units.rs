//! The sizes that all files share (pages, units, arenas), and the limits of the page layer.

pub use vellum_sys::{HUGE, PAGE, round_up};

/// Bytes of a unit, which `malloc` cuts small blocks from.
pub const UNIT: usize = 64 << 10;
/// Bytes of side metadata kept for each unit, for its owner.
pub const UNIT_SIDE: usize = 128;
pub(crate) const HUGE_PAGES: u32 = (HUGE / PAGE) as u32;
pub(crate) const UNIT_PAGES: u32 = (UNIT / PAGE) as u32;

/// The largest alignment served.
pub const ALIGN_MAX: usize = 1 << 30;
/// The largest block served: a quarter of an arena.
pub const BLOCK_MAX: usize = ARENA_BYTES / 4;
/// Address space at the end of the last arena, kept for a pager (`annex`): for its objects (256 GiB, and one
/// page), units, and a huge page's alignment.
pub const ANNEX_BYTES: usize = (256 << 30) + ANNEX_UNITS + ALIGN_MAX;
/// The part of it, from its start, that has a side table.
pub const ANNEX_UNITS: usize = 32 << 30;
/// Address space of one arena; page numbers fit 32 bits.
pub(crate) const ARENA_BYTES: usize = 1 << 40;
/// From this size a block lives in the arena where blocks have room to grow and their own huge pages.
pub const LARGE_MIN: usize = 2 * HUGE;
/// Below this much memory in use a process gets base pages only, so that small programs stay small.
pub const DENSE_MIN: usize = 12 << 20;
/// Below this size a block that must move is copied, as a warm copy is faster than moving page tables
/// (measured by `vellum papers douglas`: the crossover lay at 256 KiB on every machine tried).
pub const MOVE_MIN: usize = 256 << 10;

pub(crate) const fn bytes_of(pages: u32) -> usize {
    pages as usize * PAGE
}

/// A number of pages that holds `bytes` bytes; `None` beyond [`BLOCK_MAX`].
pub(crate) const fn pages_of(bytes: usize) -> Option<u32> {
    if bytes > BLOCK_MAX {
        return None;
    }
    let pages = bytes.div_ceil(PAGE);
    Some(if pages == 0 { 1 } else { pages as u32 })
}

const _: () = assert!(ANNEX_BYTES <= ARENA_BYTES / 2);
const _: () = assert!(ARENA_BYTES / PAGE < u32::MAX as usize);
const _: () = assert!(UNIT.is_multiple_of(PAGE) && HUGE.is_multiple_of(UNIT));
