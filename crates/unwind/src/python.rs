//! The lines of Python code on a stack, for CPython 3.11 to 3.13.
//!
//! The interpreter's own frames are a list, innermost first, that begins in the state of the thread:
//!
//! ```text
//! thread state ─▶ frame ─▶ frame ─▶ ...          each: code, instruction
//!                                                 code: file, name, first line, table of lines
//! ```
//!
//! A thread reads only its own list, which no other thread changes. The offsets of the fields depend on the
//! version ([`Layout`]; CPython's `Include/internal/pycore_frame.h` and `Include/cpython/code.h`). PEP 626
//! introduced the table of lines; `Objects/locations.md` describes its format. Interpreters without a global
//! lock, of another version, or loaded by `dlopen` show no lines.
//!
//! The caller provides the function that reads memory ([`Read`]): through the kernel, which reports
//! unreadable addresses, or directly, once the layout has proved right. Code objects must have the type of
//! code objects. If the layout is wrong, lines are missing, but the program does not crash.

use crate::{SPREAD, mixed};
use core::ffi::{CStr, c_int, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The most bytes of the name of a file or function; the last bytes are read.
const NAME_MAX: usize = 512;
/// The most frames in a walk, including frames of C code.
const STEPS_MAX: usize = 128;
/// Bytes of the table of lines that are read at a time.
const CHUNK: usize = 512;

/// The words read of a frame, and of a code object.
const FRAME_WORDS: usize = 10;
const CODE_WORDS: usize = 18;
/// Offsets in a code object: the same from 3.11 to 3.13.
const TYPE: usize = 8;
const FILE: usize = 112;
const NAME: usize = 128;
const LINES: usize = 136;
/// Offsets in a `bytes` object, and in a text object.
const LENGTH: usize = 16;
const BYTES: usize = 32;
const FORM: usize = 32;
/// The owner of frames that C code put on the list; they have no function.
const OWNED_BY_C: u8 = 3;

/// Fills a buffer from an address; false if the memory cannot be read.
pub trait Read: Fn(u64, &mut [u8]) -> bool + Copy {}

impl<R: Fn(u64, &mut [u8]) -> bool + Copy> Read for R {}

/// The offsets of fields, in bytes.
#[derive(Debug)]
struct Layout {
    version: c_ulong,
    /// From the thread's state to the innermost frame: the fields to follow.
    innermost: &'static [usize],
    code: usize,
    previous: usize,
    owner: usize,
    first_line: usize,
    /// The instructions in a code object.
    instructions: usize,
    /// The characters of ASCII text, and of other text.
    ascii: usize,
    other: usize,
}

/// The instruction of a frame: the same offset from 3.11 to 3.13.
const INSTRUCTION: usize = 56;

const LAYOUT_12: Layout = Layout {
    version: 0x030c,
    innermost: &[56, 0],
    code: 0,
    previous: 8,
    owner: 70,
    first_line: 68,
    instructions: 192,
    ascii: 40,
    other: 56,
};

static LAYOUTS: [Layout; 3] = [
    Layout {
        version: 0x030b,
        innermost: &[56, 8],
        code: 32,
        previous: 48,
        owner: 69,
        first_line: 72,
        instructions: 184,
        ascii: 48,
        other: 72,
    },
    LAYOUT_12,
    Layout { version: 0x030d, innermost: &[72], instructions: 200, ..LAYOUT_12 },
];

/// The interpreter of this process, if it was found.
#[derive(Debug)]
pub struct Interpreter {
    /// The number of the layout, from 1; 0 without a supported Python.
    layout: AtomicUsize,
    /// [`SYMBOLS`].
    symbols: [AtomicPtr<c_void>; 3],
}

/// The symbols of the interpreter that are used.
const SYMBOLS: [&CStr; 3] = [c"Py_IsInitialized", c"PyGILState_GetThisThreadState", c"PyCode_Type"];

/// A Python of a supported version.
#[derive(Clone, Copy, Debug)]
pub struct Python {
    layout: &'static Layout,
    lives: *const c_void,
    own: *const c_void,
    code: u64,
}

/// A running function: the addresses of its code object and of the instruction. Before the first instruction
/// that address lies outside the code.
#[derive(Clone, Copy, Debug)]
struct Running {
    code: u64,
    instruction: u64,
}

/// The objects that the code of a [`Running`] refers to. Other code may later lie at its address, and refer
/// to other objects.
#[derive(Clone, Copy, Debug)]
struct Code {
    /// The addresses of the file's and the function's name, and of the table of lines.
    file: u64,
    name: u64,
    lines: u64,
    first_line: u32,
}

/// A line of Python that the calling thread runs.
#[derive(Clone, Copy, Debug)]
pub struct Line<R> {
    layout: &'static Layout,
    running: Running,
    code: Code,
    read: R,
}

impl Interpreter {
    /// No interpreter.
    pub const fn none() -> Interpreter {
        Interpreter {
            layout: AtomicUsize::new(0),
            symbols: [const { AtomicPtr::new(null_mut()) }; SYMBOLS.len()],
        }
    }

    /// Searches for an interpreter in the program. `find` returns the address of a symbol of the program, or
    /// null.
    pub fn look(&self, find: impl Fn(&CStr) -> *const c_void, read: impl Read) {
        // SAFETY: `find` returns null or the address of the interpreter's `Py_Version`, a static number that
        // never changes.
        let Some(version) = (unsafe { find(c"Py_Version").cast::<c_ulong>().as_ref() }) else { return };
        let Some(number) = LAYOUTS.iter().position(|layout| layout.version == version >> 16) else { return };
        let mut free_threaded = [0; 8];
        // From 3.13 on, the runtime begins with the offsets of its fields: 8 letters, its version, and
        // whether there is no global lock.
        let runtime = find(c"_PyRuntime");
        if number == 2 && !(read(runtime as u64 + 16, &mut free_threaded) && free_threaded == [0; 8]) {
            return;
        }
        let found = SYMBOLS.map(find);
        if found.iter().any(|symbol| symbol.is_null()) {
            return;
        }
        for (place, symbol) in self.symbols.iter().zip(found) {
            place.store(symbol.cast_mut(), Relaxed);
        }
        self.layout.store(number + 1, Release);
    }

    /// The interpreter, if one was found.
    #[inline]
    pub fn get(&self) -> Option<Python> {
        let layout = LAYOUTS.get(self.layout.load(Acquire).wrapping_sub(1))?;
        let [lives, own, code] = self.symbols.each_ref().map(|place| place.load(Relaxed).cast_const());
        Some(Python { layout, lives, own, code: code as u64 })
    }
}

impl Python {
    /// Passes the lines that the calling thread runs to `take`, innermost first, until it returns false;
    /// `None` for one whose code is not a code object. There are none if Python has no state for the thread.
    #[inline(always)]
    pub fn each_line<R: Read>(self, read: R, mut take: impl FnMut(Option<Line<R>>) -> bool) {
        let layout = self.layout;
        let follow = |at: u64, &offset: &usize| Some(word(at + offset as u64, read)?).filter(|&at| at != 0);
        let first = self.thread().and_then(|thread| layout.innermost.iter().try_fold(thread, follow));
        let mut at = first.unwrap_or(0);
        for _ in 0..STEPS_MAX {
            let frame: Option<[u64; FRAME_WORDS]> = (at != 0).then(|| words(at, read)).flatten();
            let Some(frame) = frame else { return };
            at = frame[layout.previous / 8];
            let owner = frame[layout.owner / 8].to_ne_bytes()[layout.owner % 8];
            let running = Running { code: frame[layout.code / 8], instruction: frame[INSTRUCTION / 8] };
            let line = || Some(Line { layout, running, code: self.code(running, read)?, read });
            if owner != OWNED_BY_C && !take(line()) {
                return;
            }
        }
    }

    /// The code of a running function, if the object is a code object.
    #[inline]
    fn code(&self, running: Running, read: impl Read) -> Option<Code> {
        let words: [u64; CODE_WORDS] = words(running.code, read)?;
        let [file, name, lines] = [FILE, NAME, LINES].map(|offset| words[offset / 8]);
        let first = self.layout.first_line;
        let first_line = (words[first / 8] >> (first % 8 * 8)) as u32;
        (words[TYPE / 8] == self.code).then_some(Code { file, name, lines, first_line })
    }

    /// True if the interpreter has begun and not ended. After its end, daemon threads still refer to freed
    /// states, which only the kernel can read safely.
    #[inline]
    pub fn is_alive(&self) -> bool {
        // SAFETY: `lives` is the address of `Py_IsInitialized`, which takes no argument and returns an int.
        let lives: extern "C" fn() -> c_int = unsafe { core::mem::transmute(self.lives) };
        lives() != 0
    }

    /// This thread's state, if Python has one for it.
    #[inline]
    fn thread(&self) -> Option<u64> {
        // SAFETY: `own` is the address of `PyGILState_GetThisThreadState`. In all supported versions it takes
        // no argument and returns a pointer from the thread's own storage.
        let own: extern "C" fn() -> *mut c_void = unsafe { core::mem::transmute(self.own) };
        Some(own() as u64).filter(|&own| own != 0)
    }
}

impl<R: Read> Line<R> {
    /// A hash of the line's code, its instruction and the objects that the code refers to.
    #[inline(always)]
    pub fn key(&self) -> u64 {
        let Code { file, name, lines, first_line } = self.code;
        let words = [self.running.code, self.running.instruction, file, name, lines, first_line.into()];
        words.into_iter().fold(SPREAD, mixed)
    }

    /// Passes the line's number, from 1, to `take`, and the names of its function (qualified by classes and
    /// functions) and its file, in UTF-8. Only the last bytes of a long name are read. `None` if a name
    /// cannot be read.
    pub fn describe<T>(&self, take: impl FnOnce(u32, &[u8], &[u8]) -> T) -> Option<T> {
        let Line { layout, running, code, read } = *self;
        let instructions = running.code + layout.instructions as u64;
        // Instructions have two bytes. An address before the first one stands for the function's beginning.
        let index = running.instruction.checked_sub(instructions).map_or(0, |bytes| bytes / 2);
        let line = line_of(code.lines, code.first_line, index, read).unwrap_or(code.first_line);
        let (mut file, mut name) = ([0; NAME_MAX], [0; NAME_MAX]);
        let file = text(layout, code.file, &mut file, read)?;
        let name = text(layout, code.name, &mut name, read)?;
        Some(take(line, name, file))
    }
}

#[inline]
fn words<const N: usize>(at: u64, read: impl Read) -> Option<[u64; N]> {
    let mut words = [0u64; N];
    // SAFETY: the slice covers the local array exactly; every byte value is valid for u64.
    let bytes = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(&words)) };
    read(at, bytes).then_some(words)
}

#[inline]
fn word(at: u64, read: impl Read) -> Option<u64> {
    words::<1>(at, read).map(|[word]| word)
}

/// A text in UTF-8, or its last bytes.
fn text<'a>(layout: &Layout, at: u64, into: &'a mut [u8; NAME_MAX], read: impl Read) -> Option<&'a [u8]> {
    let length = usize::try_from(word(at + LENGTH as u64, read)?).ok()?;
    let form = word(at + FORM as u64, read)? as u32;
    let (width, is_compact, is_ascii) = ((form >> 2 & 7) as usize, form & 1 << 5 != 0, form & 1 << 6 != 0);
    if !is_compact || !matches!(width, 1 | 2 | 4) || (is_ascii && width != 1) {
        return None;
    }
    let start = at as usize + if is_ascii { layout.ascii } else { layout.other };
    // A character takes at most three bytes more in UTF-8 than in the object.
    let kept = length.min(if is_ascii { NAME_MAX } else { NAME_MAX / 4 });
    let mut raw = [0; NAME_MAX];
    let raw = &mut raw[..kept * width];
    if !read((start + (length - kept) * width) as u64, raw) {
        return None;
    }
    if is_ascii && !raw.is_ascii() {
        return None;
    }
    let mut used = 0;
    for letter in raw.chunks_exact(width) {
        let number = letter.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
        let letter = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
        used += letter.encode_utf8(&mut into[used..]).len();
    }
    Some(&into[..used])
}

/// The line of the instruction with this index, by a table of lines: `Objects/locations.md` of CPython 3.11.
fn line_of(table: u64, first: u32, index: u64, read: impl Read) -> Option<u32> {
    let length = word(table + LENGTH as u64, read)?;
    let mut bytes = Bytes { at: table + BYTES as u64, left: length, chunk: [0; CHUNK], from: 0, to: 0, read };
    let (mut line, mut passed) = (i64::from(first), 0);
    loop {
        let head = bytes.next()?;
        passed += u64::from(head & 7) + 1;
        let code = head >> 3 & 15;
        let (delta, more) = match code {
            15 => (None, 0),
            14 => (Some(bytes.signed()?), 3),
            13 => (Some(bytes.signed()?), 0),
            10..=12 => (Some(i64::from(code) - 10), 2),
            _ => (Some(0), 1),
        };
        for _ in 0..more {
            // Columns, and the last line: numbers in the long form, otherwise bytes.
            if code == 14 { bytes.number().map(|_| ())? } else { bytes.next().map(|_| ())? }
        }
        line += delta.unwrap_or(0);
        if index < passed {
            return delta.and_then(|_| u32::try_from(line).ok());
        }
    }
}

/// Bytes of the program's memory, one after the other.
struct Bytes<R> {
    at: u64,
    left: u64,
    chunk: [u8; CHUNK],
    from: usize,
    to: usize,
    read: R,
}

impl<R: Read> Bytes<R> {
    fn next(&mut self) -> Option<u8> {
        if self.from == self.to {
            let count = (CHUNK as u64).min(self.left) as usize;
            if count == 0 || !(self.read)(self.at, &mut self.chunk[..count]) {
                return None;
            }
            (self.from, self.to) = (0, count);
            self.at += count as u64;
            self.left -= count as u64;
        }
        self.from += 1;
        Some(self.chunk[self.from - 1])
    }

    /// A number of six bits a byte, lowest first; the seventh bit is set if another byte follows.
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.next()?;
            number |= u64::from(byte & 63) << shift;
            shift += 6;
            if byte & 64 == 0 || shift > 58 {
                return Some(number);
            }
        }
    }

    /// The sign is the last bit.
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        let value = (number >> 1) as i64;
        Some(if number & 1 == 0 { value } else { -value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads memory that a test has made.
    fn there(at: u64, into: &mut [u8]) -> bool {
        // SAFETY: the tests pass addresses of their own live objects, and lengths within them.
        into.copy_from_slice(unsafe { core::slice::from_raw_parts(at as *const u8, into.len()) });
        true
    }

    fn nowhere(_: u64, _: &mut [u8]) -> bool {
        false
    }

    /// A `bytes` object with this table.
    fn table(entries: &[u8]) -> Vec<u8> {
        let mut object = vec![0; BYTES];
        object[LENGTH..LENGTH + 8].copy_from_slice(&(entries.len() as u64).to_ne_bytes());
        object.extend(entries);
        object
    }

    #[test]
    fn lines_are_found_by_the_table() {
        let entries = [
            // Two units of the first line, in the short form: one byte of columns.
            0x80 | 1,
            0x11,
            // One unit, two lines on, with two bytes of columns.
            0x80 | 12 << 3,
            4,
            9,
            // Three units without a line.
            0x80 | 15 << 3 | 2,
            // One unit, 50 lines back, without columns.
            0x80 | 13 << 3,
            101 & 63 | 64,
            101 >> 6,
            // Eight units, 3 lines on, the last line 0 on, columns of two bytes and of one.
            0x80 | 14 << 3 | 7,
            6,
            0,
            70 & 63 | 64,
            1,
            5,
        ];
        let object = table(&entries);
        let at = object.as_ptr() as u64;
        let found = |index| line_of(at, 100, index, there);
        assert_eq!([0, 1, 2, 3, 5].map(found), [Some(100), Some(100), Some(102), None, None]);
        assert_eq!([6, 7, 14, 15].map(found), [Some(52), Some(55), Some(55), None]);
    }

    #[test]
    fn tables_of_nonsense_end() {
        let mut state = 0x1234_5678_9abc_def0_u64;
        for _ in 0..200 {
            let bytes: Vec<u8> = (0..900)
                .map(|_| {
                    state = (state ^ 7).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
                    (state >> 40) as u8
                })
                .collect();
            let object = table(&bytes);
            for index in [0, 100, 100_000] {
                let _ = line_of(object.as_ptr() as u64, 1, index, there);
            }
        }
        assert_eq!(line_of(8, 1, 0, nowhere), None, "of memory that is not there");
    }

    #[test]
    fn texts_are_read_in_all_widths() {
        let layout = &LAYOUTS[1];
        let made = |letters: &str, width: usize, is_ascii: bool| {
            let start = if is_ascii { layout.ascii } else { layout.other };
            let mut object = vec![0; start];
            object[LENGTH..LENGTH + 8].copy_from_slice(&(letters.chars().count() as u64).to_ne_bytes());
            object[FORM] = (width << 2 | 1 << 5 | usize::from(is_ascii) << 6) as u8;
            for letter in letters.chars() {
                object.extend(&(letter as u32).to_le_bytes()[..width]);
            }
            object
        };
        let long = "x".repeat(NAME_MAX + 9);
        for (letters, width, is_ascii) in [
            ("plain.py", 1, true),
            ("grün", 1, false),
            ("имя", 2, false),
            ("𝒳y", 4, false),
            (&*long, 1, true),
        ] {
            let object = made(letters, width, is_ascii);
            let mut into = [0; NAME_MAX];
            let read = text(layout, object.as_ptr() as u64, &mut into, there).expect("it is text");
            assert_eq!(
                core::str::from_utf8(read).unwrap(),
                &letters[letters.len().saturating_sub(NAME_MAX)..]
            );
        }
    }
}
