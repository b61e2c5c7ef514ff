//! Lines of Python on the stack of a sampled block, for CPython 3.11 to 3.13.
//!
//! The interpreter's own frames are a list, innermost first, that begins in the state of the thread:
//!
//! ```text
//! thread state ─▶ frame ─▶ frame ─▶ ...          each: code, instruction
//!                                                 code: file, name, first line, table of lines
//! ```
//!
//! A thread reads its own, which nobody else changes. Which field is
//! where is a matter of the version ([`Layout`]; CPython's `Include/internal/pycore_frame.h` and
//! `Include/cpython/code.h`); the table of lines is that of PEP 626 in the form of
//! `Objects/locations.md`. An interpreter without a global lock, of another version, or loaded by `dlopen`
//! shows no lines.
//!
//! The kernel does all the reading, and what is taken for code must be of the type of code: an interpreter
//! that is not laid out as its version says costs lines, not the program.
//!
//! A line is entered in the part once ([`EntryKind::Line`](vellum_wire::held::EntryKind)).

use super::part::Part;
use super::walk::{SPREAD, Stack, mixed};
use core::ffi::{CStr, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use vellum_sys::{Caps, caps, map};
use vellum_wire::held::{PYTHON, SCRIPT_FRAMES_MAX, frame as packed};

/// Code and instruction whose lines are remembered.
const KNOWN: usize = 1 << 12;
/// Lines of which it is remembered where they are entered; twice what is used, at most.
const ENTERED: usize = 1 << 14;
/// Probes for one of these.
const PROBES_MAX: usize = 32;
/// Bytes of a file's or function's name that are kept, its last ones.
const NAME_MAX: usize = 512;
/// Frames that are looked at, those without lines among them.
const STEPS_MAX: usize = 2 * SCRIPT_FRAMES_MAX;
/// Bytes of the table of lines that are read at a time.
const CHUNK: usize = 512;

/// Words of a frame, and of code, that are read.
const FRAME_WORDS: usize = 10;
const CODE_WORDS: usize = 18;
/// Offsets in code: the same from 3.11 to 3.13.
const TYPE: usize = 8;
const FILE: usize = 112;
const NAME: usize = 128;
const LINES: usize = 136;
/// Offsets in a `bytes` object, and in text.
const LENGTH: usize = 16;
const BYTES: usize = 32;
const FORM: usize = 32;
/// The frame is one that C code put on the list, of no function.
const OWNED_BY_C: u8 = 3;

/// Which field is where, in bytes.
#[derive(Debug)]
struct Layout {
    version: c_ulong,
    /// From the thread's state to the innermost frame: fields to be followed.
    innermost: &'static [usize],
    code: usize,
    previous: usize,
    owner: usize,
    first_line: usize,
    /// Instructions, in the code.
    instructions: usize,
    /// Text of ASCII alone, and other text.
    ascii: usize,
    other: usize,
}

/// The frame's instruction: the same from 3.11 to 3.13.
const INSTRUCTION: usize = 56;

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
    Layout {
        version: 0x030c,
        innermost: &[56, 0],
        code: 0,
        previous: 8,
        owner: 70,
        first_line: 68,
        instructions: 192,
        ascii: 40,
        other: 56,
    },
    Layout {
        version: 0x030d,
        innermost: &[72],
        code: 0,
        previous: 8,
        owner: 70,
        first_line: 68,
        instructions: 200,
        ascii: 40,
        other: 56,
    },
];

/// Finds a symbol of the program's, or null.
type Find = fn(&CStr) -> *const c_void;

/// A [`Find`], or null.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The number of the layout, from 1; 0: there is no Python that is known.
static LAYOUT: AtomicUsize = AtomicUsize::new(0);
/// `PyGILState_GetThisThreadState`: this thread's state, or null.
static OWN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// `PyCode_Type`.
static CODE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Has `find` find the interpreter, when it is looked for.
pub(super) fn prepare(find: Find) {
    FIND.store(find as *mut c_void, Relaxed);
}

/// Looks for an interpreter in the program.
pub(super) fn look() {
    // SAFETY: null, or a function of this type: null is what a function's `None` is.
    let find = unsafe { core::mem::transmute::<*mut c_void, Option<Find>>(FIND.load(Relaxed)) };
    let Some(find) = find else { return };
    // SAFETY: where the symbol is, it is a number, which never changes.
    let Some(version) = (unsafe { find(c"Py_Version").cast::<c_ulong>().as_ref() }) else { return };
    let Some(number) = LAYOUTS.iter().position(|layout| layout.version == version >> 16) else { return };
    let mut free_threaded = [0; 1];
    // Of 3.13, tables of its layout begin with 8 letters, its version, and whether there is no lock.
    let runtime = find(c"_PyRuntime");
    if number == 2 && !(read(runtime as u64 + 16, &mut free_threaded) && free_threaded[0] == 0) {
        return;
    }
    let found = [c"PyGILState_GetThisThreadState", c"PyCode_Type"].map(find);
    if found.iter().any(|symbol| symbol.is_null()) {
        return;
    }
    for (place, symbol) in [&OWN, &CODE].into_iter().zip(found) {
        place.store(symbol.cast_mut(), Relaxed);
    }
    LAYOUT.store(number + 1, Relaxed);
}

/// A line that is remembered by its code and instruction. All zero: none.
#[derive(Clone, Copy, Debug)]
struct Known {
    code: u64,
    instruction: u64,
    /// Of what the code refers to: other code may lie there later.
    check: u64,
    entry: u32,
}

/// A line that is entered: the hash of its names, and its entry's first word plus one.
#[derive(Clone, Copy, Debug)]
struct Entered {
    hash: u64,
    entry: u32,
}

/// Lines that are remembered. All zero: none.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Lines {
    known: [Known; KNOWN],
    entered: [Entered; ENTERED],
}

impl Lines {
    /// Adds this thread's lines of Python to its stack, if it runs some.
    pub(super) fn add(&mut self, stack: &mut Stack, part: &mut Part) {
        let Some(layout) = LAYOUTS.get(LAYOUT.load(Relaxed).wrapping_sub(1)) else { return };
        let Some(thread) = state().filter(|_| caps::has(Caps::HELPER)) else { return };
        let follow = |at: u64, &offset: &usize| Some(word(at + offset as u64)?).filter(|&at| at != 0);
        let Some(mut at) = layout.innermost.iter().try_fold(thread, follow) else { return };
        let mut left = SCRIPT_FRAMES_MAX;
        for _ in 0..STEPS_MAX {
            let mut frame = [0; FRAME_WORDS];
            if at == 0 || left == 0 || !read(at, &mut frame) {
                return;
            }
            let owner = frame[layout.owner / 8].to_ne_bytes()[layout.owner % 8];
            if owner != OWNED_BY_C {
                let entry = self.line(layout, frame[layout.code / 8], frame[INSTRUCTION / 8], part);
                if let Some(entry) = entry {
                    stack.push(packed(PYTHON, entry.into()));
                    left -= 1;
                }
            }
            at = frame[layout.previous / 8];
        }
    }

    /// The entry of the line of an instruction of code.
    fn line(&mut self, layout: &Layout, code: u64, instruction: u64, part: &mut Part) -> Option<u32> {
        let mut words = [0; CODE_WORDS];
        if !read(code, &mut words) || words[TYPE / 8] != CODE.load(Relaxed) as u64 {
            return None;
        }
        let first = half(&words, layout.first_line);
        let [file, name, lines] = [FILE, NAME, LINES].map(|offset| words[offset / 8]);
        let check = [file, name, lines, first.into()].into_iter().fold(SPREAD, mixed);
        let slot = (mixed(mixed(SPREAD, code), instruction) >> 20) as usize % KNOWN;
        let known = self.known[slot];
        if (known.code, known.instruction, known.check) == (code, instruction, check) {
            return Some(known.entry);
        }
        let instructions = code + layout.instructions as u64;
        // Two bytes each. Before the first there is the function's beginning.
        let index = instruction.checked_sub(instructions).map_or(0, |bytes| bytes / 2);
        let line = line_of(lines, first, index).unwrap_or(first);
        let (mut file_text, mut name_text) = ([0; NAME_MAX], [0; NAME_MAX]);
        let file = text(layout, file, &mut file_text)?;
        let name = text(layout, name, &mut name_text)?;
        let entry = self.enter(line, name, file, part)?;
        self.known[slot] = Known { code, instruction, check, entry };
        Some(entry)
    }

    /// The entry of a line, made if there is none.
    fn enter(&mut self, line: u32, name: &[u8], file: &[u8], part: &mut Part) -> Option<u32> {
        let letters = |hash, text: &[u8]| text.iter().fold(hash, |hash, &byte| mixed(hash, u64::from(byte)));
        let hash = letters(letters(mixed(SPREAD, line.into()), name), file);
        for probe in 0..PROBES_MAX {
            let slot = &mut self.entered[((hash >> 20) as usize).wrapping_add(probe) % ENTERED];
            if slot.entry == 0 {
                let entry = part.add_line(line, name, file)?;
                *slot = Entered { hash, entry: entry + 1 };
                return Some(entry);
            }
            if slot.hash == hash {
                return Some(slot.entry - 1);
            }
        }
        None
    }
}

/// This thread's state, if it is one of Python's.
fn state() -> Option<u64> {
    // SAFETY: the function of this name and form, of the versions that are known: it takes nothing, and
    // returns what the thread keeps for itself.
    let own: extern "C" fn() -> *mut c_void = unsafe { core::mem::transmute(OWN.load(Relaxed)) };
    Some(own() as u64).filter(|&own| own != 0)
}

fn read(at: u64, words: &mut [u64]) -> bool {
    // SAFETY: words are bytes, and all values of those are words.
    let bytes = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) };
    map::copy_from(at as usize, bytes) == bytes.len()
}

fn word(at: u64) -> Option<u64> {
    let mut words = [0];
    read(at, &mut words).then_some(words[0])
}

fn half(words: &[u64], offset: usize) -> u32 {
    (words[offset / 8] >> (offset % 8 * 8)) as u32
}

/// A text in UTF-8, or its last bytes.
fn text<'a>(layout: &Layout, at: u64, into: &'a mut [u8; NAME_MAX]) -> Option<&'a [u8]> {
    let length = usize::try_from(word(at + LENGTH as u64)?).ok()?;
    let form = word(at + FORM as u64)? as u32;
    let (width, is_compact, is_ascii) = ((form >> 2 & 7) as usize, form & 1 << 5 != 0, form & 1 << 6 != 0);
    if !is_compact || !matches!(width, 1 | 2 | 4) {
        return None;
    }
    let start = at as usize + if is_ascii { layout.ascii } else { layout.other };
    // A letter takes at most three bytes more in UTF-8 than it has there.
    let kept = length.min(if is_ascii { NAME_MAX } else { NAME_MAX / 4 });
    let mut raw = [0; NAME_MAX];
    let raw = &mut raw[..kept * width];
    if map::copy_from(start + (length - kept) * width, raw) != raw.len() {
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

/// The line of the instruction of that index, by a table of lines: `Objects/locations.md` of CPython 3.11.
fn line_of(table: u64, first: u32, index: u64) -> Option<u32> {
    let length = word(table + LENGTH as u64)?;
    let mut bytes = Bytes { at: table + BYTES as u64, left: length, chunk: [0; CHUNK], from: 0, to: 0 };
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
            // Columns, and the last line: numbers where the line is one, else bytes.
            if code == 14 { bytes.number().map(|_| ())? } else { bytes.next().map(|_| ())? }
        }
        line += delta.unwrap_or(0);
        if index < passed {
            return delta.and_then(|_| u32::try_from(line).ok());
        }
    }
}

/// Bytes of the program's memory, one after the other.
struct Bytes {
    at: u64,
    left: u64,
    chunk: [u8; CHUNK],
    from: usize,
    to: usize,
}

impl Bytes {
    fn next(&mut self) -> Option<u8> {
        if self.from == self.to {
            let count = (CHUNK as u64).min(self.left) as usize;
            if count == 0 || map::copy_from(self.at as usize, &mut self.chunk[..count]) != count {
                return None;
            }
            (self.from, self.to) = (0, count);
            self.at += count as u64;
            self.left -= count as u64;
        }
        self.from += 1;
        Some(self.chunk[self.from - 1])
    }

    /// Six bits a byte, the least first; a seventh says that there are more.
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

    /// A `bytes` object with that table.
    fn table(entries: &[u8]) -> Vec<u8> {
        let mut object = vec![0; BYTES];
        object[LENGTH..LENGTH + 8].copy_from_slice(&(entries.len() as u64).to_ne_bytes());
        object.extend(entries);
        object
    }

    #[test]
    fn lines_are_found_by_the_table() {
        let entries = [
            // Two units of the first line, a short form: a byte of columns.
            0x80 | 1,
            0x11,
            // One unit, two lines on: two bytes of columns.
            0x80 | 12 << 3,
            4,
            9,
            // Three units of no line.
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
        let found = |index| line_of(at, 100, index);
        assert_eq!([0, 1, 2, 3, 5].map(found), [Some(100), Some(100), Some(102), None, None]);
        assert_eq!([6, 7, 14, 15].map(found), [Some(52), Some(55), Some(55), None]);
    }

    #[test]
    fn tables_of_nonsense_end() {
        let mut state = 0x1234_5678_9abc_def0_u64;
        for _ in 0..200 {
            let bytes: Vec<u8> = (0..900)
                .map(|_| {
                    state = mixed(state, 7);
                    (state >> 40) as u8
                })
                .collect();
            let object = table(&bytes);
            for index in [0, 100, 100_000] {
                let _ = line_of(object.as_ptr() as u64, 1, index);
            }
        }
        assert_eq!(line_of(8, 1, 0), None, "of memory that is not there");
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
            let read = text(layout, object.as_ptr() as u64, &mut into).expect("it is text");
            assert_eq!(
                core::str::from_utf8(read).unwrap(),
                &letters[letters.len().saturating_sub(NAME_MAX)..]
            );
        }
    }
}
