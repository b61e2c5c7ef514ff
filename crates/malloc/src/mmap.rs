//! The program's own anonymous mappings, served from the page layer.
//!
//! Some programs take most of their memory by `mmap` (a compiler's collected heap, an interpreter's arenas). A private,
//! anonymous, readable and writable mapping that asks for no place of its own is a block of zeroed pages like any
//! other: it is served from the cache or from memory that gets huge pages, and `munmap` gives it back there. What else a
//! program may do to such a mapping is done to it by the kernel as ever; where that leaves the mapping with other
//! attributes than fresh memory has, the block is *tainted* and mapped anew before it is used again.
//!
//! The calls the C library makes for itself, and those of programs that go past it (`syscall`), are not seen here. The
//! first concern memory of their own; the second must not name served memory in calls that change its attributes.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use libc::{EINVAL, ENOMEM, c_int};
use vellum_pages::{PAGE, Pages, Request, round_up};
use vellum_wire::Counter;

/// The smallest mapping served: below, a map entry is cheaper than what the page layer would save.
const SERVED_MIN: usize = 64 << 10;
/// The largest mapping served: above, mappings tend to be reservations of which little is touched.
const SERVED_MAX: usize = 256 << 20;
/// Advice that leaves a mapping's attributes as they are.
const HARMLESS: &[c_int] = &[
    libc::MADV_NORMAL,
    libc::MADV_WILLNEED,
    libc::MADV_DONTNEED,
    libc::MADV_FREE,
    libc::MADV_COLD,
    libc::MADV_PAGEOUT,
    libc::MADV_POPULATE_READ,
    libc::MADV_POPULATE_WRITE,
];

static SERVING: AtomicBool = AtomicBool::new(false);

/// Serves mappings from now on, or no longer; what has been served stays so.
pub fn serve_mappings(on: bool) {
    SERVING.store(on, Relaxed);
}

/// A mapping as asked for.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// Where, or null.
    pub addr: *mut u8,
    /// Bytes.
    pub len: usize,
    /// Protection flags.
    pub prot: c_int,
    /// Mapping flags.
    pub flags: c_int,
}

/// Serves `mmap` if the mapping is of the kind that can be; otherwise the kernel is to be asked.
pub fn map(wanted: &Mapping) -> Option<*mut u8> {
    if !wanted.addr.is_null() && is_ours(wanted.addr) {
        // A mapping laid over served memory: what is below is not ours to hand out again as it is.
        Pages::global().taint(wanted.addr, wanted.len);
        return None;
    }
    let plain = wanted.addr.is_null()
        && wanted.prot == libc::PROT_READ | libc::PROT_WRITE
        && wanted.flags == libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    if !plain || !SERVING.load(Relaxed) || !(SERVED_MIN..=SERVED_MAX).contains(&wanted.len) {
        return None;
    }
    let pages = Pages::global();
    let extent = pages.alloc(Request { bytes: wanted.len, align: PAGE, zero: true }).ok()?;
    let slot = pages.slot();
    slot.add(Counter::MmapServed, 1);
    slot.add(Counter::MmapServedBytes, extent.bytes as u64);
    Some(extent.addr.as_ptr())
}

/// Whether an address lies where Vellum's blocks are.
#[inline]
pub fn is_ours(addr: *const u8) -> bool {
    // A process that never took memory from Vellum has no span to look in.
    let (base, bytes) = Pages::global().placed();
    (addr as usize).wrapping_sub(base) < bytes
}

/// Serves `munmap` of memory that [`map`] served; `None` if it is not of that kind.
///
/// # Safety
/// As for `munmap`.
pub unsafe fn unmap(addr: *mut u8, len: usize) -> Option<Result<(), c_int>> {
    if !is_ours(addr) {
        return None;
    }
    if !(addr as usize).is_multiple_of(PAGE) || len == 0 {
        return Some(Err(EINVAL));
    }
    let start = NonNull::new(addr)?;
    // SAFETY: the program gives this memory up.
    Some(unsafe { Pages::global().free_range(start, round_up(len, PAGE)) }.map_err(|_| EINVAL))
}

/// Notes a call that changes attributes of memory from `addr` on, before it is made.
pub fn note_change(addr: *const u8, len: usize) {
    if is_ours(addr) {
        Pages::global().taint(addr, len);
    }
}

/// Notes an `madvise`, before it is made.
pub fn note_advice(addr: *const u8, len: usize, advice: c_int) {
    if !HARMLESS.contains(&advice) {
        note_change(addr, len);
    }
}

/// Serves `mremap` of memory that [`map`] served. `None` asks for the kernel's; then [`moved_away`] must be called with
/// the outcome.
///
/// # Safety
/// As for `mremap`.
pub unsafe fn remap(addr: *mut u8, old: usize, new: usize, flags: c_int) -> Option<Result<*mut u8, c_int>> {
    if !is_ours(addr) || flags & !libc::MREMAP_MAYMOVE != 0 || old == 0 {
        return None;
    }
    let (old, new) = (round_up(old, PAGE), round_up(new, PAGE));
    let pages = Pages::global();
    let whole = pages.extent_at(addr).ok().filter(|extent| extent.bytes == old)?;
    if new == 0 {
        return Some(Err(EINVAL));
    }
    if new <= old {
        // SAFETY: the program gives the tail up.
        let cut = unsafe { pages.resize_in_place(whole.addr, new) };
        return Some(cut.map(|extent| extent.addr.as_ptr()).ok_or(ENOMEM));
    }
    // SAFETY: the block is the program's, which lets it move if it says so.
    let grown = unsafe {
        if flags & libc::MREMAP_MAYMOVE != 0 {
            pages.resize_zeroed(whole.addr, new).ok()
        } else {
            pages.resize_in_place_zeroed(whole.addr, new)
        }
    };
    Some(grown.map(|extent| extent.addr.as_ptr()).ok_or(ENOMEM))
}

/// Follows an `mremap` that the kernel made of served memory, which is now at `to`: the place it left is a hole in an
/// arena, or the arena's mapping with other attributes.
pub fn moved_away(addr: *mut u8, old: usize, to: *mut u8) {
    if !is_ours(addr) || old == 0 || to.is_null() {
        return;
    }
    note_change(addr, old);
    if to != addr
        && let Some(start) = NonNull::new(addr)
    {
        // SAFETY: the pages have left; what is there is mapped anew because of the taint.
        let _ = unsafe { Pages::global().free_range(start, round_up(old, PAGE)) };
    }
}

/// The end of a refused or failed call, as C functions give it: sets `errno`.
pub fn fail<T>(errno: c_int) -> *mut T {
    crate::set_errno(errno);
    // MAP_FAILED.
    null_mut::<T>().wrapping_byte_sub(1)
}
