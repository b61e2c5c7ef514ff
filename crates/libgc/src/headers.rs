//! The headers of checked objects (`checked`): where an object was made, and marks that reveal writes just
//! before or behind it.
//!
//! ```text
//! base ─▶ │ mark ^ address │ file │ line │ bytes │ what the program sees … │ mark ^ address │
//!         └─────────────── HEADER ──────────────┘                          └ anywhere, so maybe unaligned
//! ```
//!
//! The marks of an object are checked when it is freed or resized. The marks of all live objects are checked
//! when the program requests a collection. An overwritten mark is reported, and the program continues.
//!
//! Invariants: a checked object has its mark in the first word, a whole header and an end mark. Any other
//! object has the mark by chance with a probability of 2⁻⁶⁴: once checked objects exist, the first word of
//! objects that are not cleared is cleared (`unmarked`).

use crate::{say, vel};
use core::ffi::{c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// See the head of this file.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) mark: usize,
    pub(crate) file: *const c_char,
    pub(crate) line: u64,
    pub(crate) bytes: usize,
}

/// Bytes before what the program sees.
pub(crate) const HEADER: usize = size_of::<Header>();
/// Bytes behind it.
pub(crate) const END: usize = size_of::<usize>();
pub(crate) const MARK: usize = 0x5bd1_e995_7f4a_7c15;
pub(crate) const END_MARK: usize = 0xc2b2_ae35_27d4_eb2f;
const _: () = assert!(HEADER.is_multiple_of(16), "what the program sees is aligned as objects are");

/// Whether there is any such object: the heap is scanned only then.
pub(crate) static ANY: AtomicBool = AtomicBool::new(false);

/// An object that is not cleared, or null, without the mark that may have been left where it lies.
pub(crate) fn unmarked(object: *mut c_void) -> *mut c_void {
    if !object.is_null() {
        // SAFETY: a new object of two words at least.
        unsafe { object.cast::<usize>().write(0) };
    }
    object
}

/// Bytes of an object of which the program sees `bytes`.
pub(crate) fn whole(bytes: usize) -> usize {
    bytes.saturating_add(HEADER + END)
}

/// The header of the object at `base`, if it has one.
pub(crate) fn header(base: *const c_void) -> Option<&'static Header> {
    // SAFETY: the callers pass the start of an object, of two words at least.
    let header = unsafe { base.cast::<Header>().as_ref() }?;
    (header.mark == MARK ^ base.addr()).then_some(header)
}

/// Where the object at `base` was made, and its bytes.
pub(crate) fn place_of(base: *const c_void) -> Option<(*const c_char, u32, usize)> {
    header(base).map(|header| (header.file, header.line as u32, header.bytes))
}

/// What the program sees of the object at `base`.
pub(crate) fn seen_of(base: *mut c_void) -> *mut c_void {
    if header(base).is_some() { base.wrapping_byte_add(HEADER) } else { base }
}

/// Reports an object that was written over; calls nothing of the heap. `room` bytes are there.
pub(crate) fn look(base: *mut c_void, room: usize) {
    let Some(header) = header(base) else { return };
    let end = base.wrapping_byte_add(HEADER).wrapping_byte_add(header.bytes).cast::<usize>();
    let fits = header.bytes.checked_add(HEADER + END).is_some_and(|whole| whole <= room);
    // SAFETY: within the object.
    if fits && unsafe { end.read_unaligned() } == END_MARK ^ base.addr() {
        return;
    }
    let (mut address, mut place) = ([0; 16], [0; 20]);
    say::line(&[
        b"libgc (Vellum): written over: 0x",
        say::hex(base.addr() + HEADER, &mut address),
        b", made at ",
        say::bytes(header.file),
        b":",
        say::decimal(header.line, &mut place),
    ]);
    if fits {
        // Reported once.
        // SAFETY: as above.
        unsafe { end.write_unaligned(END_MARK ^ base.addr()) };
    }
}

pub(crate) fn look_at_all() {
    unsafe extern "C" fn visit(object: *mut c_void, bytes: usize, _: *mut c_void) {
        // Where a thread that has ended since the collection had room left, a header may be that of a larger
        // object which has died there.
        let whole = header(object).filter(|_| bytes >= HEADER + END).map(|header| whole(header.bytes));
        if whole.is_some_and(|whole| whole <= bytes) {
            look(object, bytes);
        }
    }
    if ANY.load(Relaxed) {
        // SAFETY: the function reads objects only.
        unsafe { vel::vel_gc_walk(visit, null_mut()) };
    }
}
