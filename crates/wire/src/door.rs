//! The door: the memory in which `vellum heap PID` requests samples from a running process.
//!
//! The runtime exports one symbol that points to the door. A process that may write to this one's memory
//! (often one of the same user) writes a path there, and then one byte. This byte is the upper half of a word
//! that the slow paths of `malloc` read in any case, so a process without requests pays nothing. The
//! process's helper thread serves the request, writes an answer, and clears the byte. No signal is sent, no
//! thread is stopped, and the process calls only functions that it would call anyway.
//!
//! ```text
//! vellum heap ── path, answer ← 0, asked ← byte ──▶ door ◀── slow path: a request: wake the helper
//!             ◀───── answer ≠ 0 ──────────────────       ◀── helper: serves it; answer; asked ← 0
//! ```

use crate::board::MAGIC;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering::Acquire, Ordering::Release};

/// The name of the symbol that points to the door.
pub const DOOR_SYMBOL: &str = "vellum_heap_door";
/// The layout's version.
pub const DOOR_VERSION: u32 = 1;
/// Bytes of a path, with the zero at its end.
pub const DOOR_PATH_MAX: usize = 512;
/// The answer for success; others are an error's number, times two.
pub const DONE: u32 = 1;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ask {
    /// Start sampling, into the file at the path.
    Begin = 1,
    /// Stop sampling, and close the file.
    End = 2,
    /// Write the account of the resident memory to the file.
    Account = 3,
}

impl Ask {
    /// The request with this number.
    pub const fn from_u8(byte: u8) -> Option<Ask> {
        match byte {
            1 => Some(Ask::Begin),
            2 => Some(Ask::End),
            3 => Some(Ask::Account),
            _ => None,
        }
    }
}

/// The low bits of the word, which have the process's mode; the request is above them.
pub const MODE_BITS: u32 = 8;
/// The process is in its usual mode.
pub const USUAL: u16 = 0;
/// The process is hardened, and takes no samples.
pub const HARDENED: u16 = 1;
/// The process takes samples, or has done so.
pub const PROFILED: u16 = 2;

/// The door; see the head of this file.
#[repr(C)]
#[derive(Debug)]
pub struct HeapDoor {
    magic: u64,
    version: u32,
    answer: AtomicU32,
    /// The mode, and in the upper half the request.
    pub now: AtomicU16,
    path: UnsafeCell<[u8; DOOR_PATH_MAX]>,
}

// SAFETY: only the requesting process writes the path, and only before its request; all other fields are
// atomic or constant.
unsafe impl Sync for HeapDoor {}

/// The offsets of a door's fields, for a process that writes to another's memory.
impl HeapDoor {
    /// The answer, four bytes.
    pub const ANSWER_AT: usize = offset_of!(HeapDoor, answer);
    /// The mode, a byte.
    pub const MODE_AT: usize = offset_of!(HeapDoor, now);
    /// The request, a byte.
    pub const ASK_AT: usize = offset_of!(HeapDoor, now) + 1;
    /// The path, with a zero at its end.
    pub const PATH_AT: usize = offset_of!(HeapDoor, path);

    /// A door without a request.
    pub const fn new() -> HeapDoor {
        HeapDoor {
            magic: MAGIC,
            version: DOOR_VERSION,
            answer: AtomicU32::new(0),
            now: AtomicU16::new(USUAL),
            path: UnsafeCell::new([0; DOOR_PATH_MAX]),
        }
    }

    /// True if `bytes` are the first bytes of a door that this version supports.
    pub fn is_known(bytes: &[u8]) -> bool {
        bytes.len() >= 12 && bytes[..8] == MAGIC.to_ne_bytes() && bytes[8..12] == DOOR_VERSION.to_ne_bytes()
    }

    /// The request, if there is one.
    pub fn asked(&self) -> Option<Ask> {
        Ask::from_u8((self.now.load(Acquire) >> MODE_BITS) as u8)
    }

    /// The path of the request. It may change when there is no request: read it before the answer.
    pub fn path(&'static self) -> Option<&'static CStr> {
        // SAFETY: the requesting process writes the path before its request, and not again before the answer.
        // Any process that could break this rule could also change all other memory of this process.
        CStr::from_bytes_until_nul(unsafe { &*self.path.get() }).ok()
    }

    /// Answers with an error's number, or 0 for success, and clears the request.
    pub fn answer(&self, errno: u32) {
        self.answer.store(if errno == 0 { DONE } else { errno << 1 }, Release);
        self.now.fetch_and((1 << MODE_BITS) - 1, Release);
    }
}

impl Default for HeapDoor {
    fn default() -> Self {
        HeapDoor::new()
    }
}

const _: () = assert!(cfg!(target_endian = "little"), "the upper half is the second byte");

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering::Relaxed;

    #[test]
    fn an_answer_clears_the_request() {
        static DOOR: HeapDoor = HeapDoor::new();
        assert_eq!((DOOR.asked(), DOOR.path()), (None, Some(c"")));
        DOOR.now.store(PROFILED | (Ask::Begin as u16) << MODE_BITS, Relaxed);
        assert_eq!(DOOR.asked(), Some(Ask::Begin));
        DOOR.answer(13);
        assert_eq!((DOOR.asked(), DOOR.now.load(Relaxed), DOOR.answer.load(Relaxed)), (None, PROFILED, 26));
        DOOR.now.store(9 << MODE_BITS, Relaxed);
        assert_eq!(DOOR.asked(), None, "a byte that means nothing");
    }

    #[test]
    fn the_first_bytes_identify_a_door() {
        let door = HeapDoor::new();
        // SAFETY: the structure's first twelve bytes are initialised.
        let mut bytes = unsafe { *core::ptr::from_ref(&door).cast::<[u8; 12]>() };
        assert!(HeapDoor::is_known(&bytes) && !HeapDoor::is_known(&bytes[..11]));
        bytes[8] += 1;
        assert!(!HeapDoor::is_known(&bytes));
    }
}
