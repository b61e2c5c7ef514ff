//! Entries of the logs in which processes describe their stacks: modules, stacks, lines of an interpreted
//! program. The ledger ([`crate::cost`]) and the file for `vellum heap` ([`crate::held`]) have such logs.
//!
//! ```text
//! entry:  head (kind, bytes) · words · texts      whole words, the last one padded with zeros
//! ```
//!
//! Invariant: the head is written last, so an entry without a head is not complete.

use crate::script::SCRIPT_FRAMES_MAX;
use core::sync::atomic::{AtomicU64, Ordering::Release};

/// The kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EntryKind {
    /// A mapped file: words `epoch, start, end, bias`, then its path.
    Module = 1,
    /// A stack: its hash, further words of the recorder's own, then the frames of machine code, innermost
    /// first, then the keys of lines of an interpreted program, innermost first.
    Stack = 2,
    /// A line of an interpreted program: words `key, line, bytes of the function's name`, then that name,
    /// then the file's.
    Line = 3,
}

/// Words before the path of a module's entry.
pub const MODULE_WORDS: usize = 5;
/// Words before the names of a line's entry.
pub const LINE_WORDS: usize = 4;
/// Set in the key of a line of an interpreted program, and in no frame of machine code.
pub const LINE_BIT: u64 = 1 << 63;
/// The most frames of machine code in a recorded stack.
pub const FRAMES_MAX: usize = 128;
/// The most frames of a stack, including lines.
pub const STACK_FRAMES_MAX: usize = FRAMES_MAX + SCRIPT_FRAMES_MAX;

/// An entry to be written.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The kind.
    pub kind: EntryKind,
    /// The words after the head.
    pub words: &'a [u64],
    /// The texts after the words.
    pub texts: [&'a [u8]; 2],
}

impl Entry<'_> {
    /// The entry's length, including its head.
    pub fn words(&self) -> usize {
        1 + self.body_bytes().div_ceil(8)
    }

    /// The first word: the kind, and in the high half the number of bytes after that word.
    pub fn head(&self) -> u64 {
        self.kind as u64 | (self.body_bytes() as u64) << 32
    }

    fn body_bytes(&self) -> usize {
        size_of_val(self.words) + self.texts[0].len() + self.texts[1].len()
    }

    /// Writes the entry from `to` on.
    ///
    /// # Safety
    /// [`Entry::words`] zeroed words are there, aligned, which no other thread writes.
    pub unsafe fn write(&self, to: *mut u64) {
        // SAFETY: by `# Safety`, the entry's words are there, and the head is one of them.
        unsafe {
            let mut at = to.add(1);
            at.copy_from_nonoverlapping(self.words.as_ptr(), self.words.len());
            at = at.add(self.words.len());
            at.cast::<u8>().copy_from_nonoverlapping(self.texts[0].as_ptr(), self.texts[0].len());
            let at = at.cast::<u8>().add(self.texts[0].len());
            at.copy_from_nonoverlapping(self.texts[1].as_ptr(), self.texts[1].len());
            (*to.cast::<AtomicU64>()).store(self.head(), Release);
        }
    }
}
