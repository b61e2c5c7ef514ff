//! The headers of checked objects (`checked`): where an object was made, and *marks* (constants XOR the
//! object's address) that reveal writes just before or behind it.
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
//! object has the mark with a probability of 2⁻⁶⁴. For this, once checked objects exist, `unmarked` clears
//! the first word of new objects whose memory is not cleared.

use crate::{say, vel};
use core::ffi::{c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The header before the program's part of a checked object.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) mark: usize,
    pub(crate) file: *const c_char,
    pub(crate) line: u64,
    pub(crate) bytes: usize,
}

/// Bytes before the program's part.
pub(crate) const HEADER: usize = size_of::<Header>();
/// Bytes behind it.
pub(crate) const END: usize = size_of::<usize>();
pub(crate) const MARK: usize = 0x5bd1_e995_7f4a_7c15;
pub(crate) const END_MARK: usize = 0xc2b2_ae35_27d4_eb2f;
const _: () = assert!(HEADER.is_multiple_of(16), "what the program sees is aligned as objects are");

/// True once a checked object exists: only then is the heap scanned for them.
pub(crate) static ANY: AtomicBool = AtomicBool::new(false);

/// Clears the first word of a new object, which may hold an old mark; accepts null.
pub(crate) fn unmarked(object: *mut c_void) -> *mut c_void {
    if !object.is_null() {
        // SAFETY: the object is new and has at least two words.
        unsafe { object.cast::<usize>().write(0) };
    }
    object
}

/// The size of a checked object whose program's part has `bytes` bytes.
pub(crate) fn whole(bytes: usize) -> usize {
    bytes.saturating_add(HEADER + END)
}

/// The header of the object at `base`, if it is checked.
pub(crate) fn header(base: *const c_void) -> Option<&'static Header> {
    // SAFETY: the callers pass null or the start of a live object, which has at least two words.
    let header = unsafe { base.cast::<Header>().as_ref() }?;
    (header.mark == MARK ^ base.addr()).then_some(header)
}

/// The file and line where the object at `base` was made, and its bytes.
pub(crate) fn place_of(base: *const c_void) -> Option<(*const c_char, u32, usize)> {
    header(base).map(|header| (header.file, header.line as u32, header.bytes))
}

/// The program's pointer to the object at `base`.
pub(crate) fn seen_of(base: *mut c_void) -> *mut c_void {
    if header(base).is_some() { base.wrapping_byte_add(HEADER) } else { base }
}

/// Reports an overwritten object; calls nothing of the heap. The object has `room` bytes.
pub(crate) fn look(base: *mut c_void, room: usize) {
    let Some(header) = header(base) else { return };
    let end = base.wrapping_byte_add(HEADER).wrapping_byte_add(header.bytes).cast::<usize>();
    let fits = header.bytes.checked_add(HEADER + END).is_some_and(|whole| whole <= room);
    // SAFETY: `fits` shows that the end mark lies within the object.
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
        // Repaired, so that it is reported once.
        // SAFETY: `fits` shows that the end mark lies within the object.
        unsafe { end.write_unaligned(END_MARK ^ base.addr()) };
    }
}

pub(crate) fn look_at_all() {
    unsafe extern "C" fn visit(object: *mut c_void, bytes: usize, _: *mut c_void) {
        // Free memory of a thread that has ended since the collection may hold the header of a larger, dead
        // object.
        let whole = header(object).filter(|_| bytes >= HEADER + END).map(|header| whole(header.bytes));
        if whole.is_some_and(|whole| whole <= bytes) {
            look(object, bytes);
        }
    }
    if ANY.load(Relaxed) {
        // SAFETY: `visit` only accesses the object that it receives.
        unsafe { vel::vel_gc_walk(visit, null_mut()) };
    }
}
