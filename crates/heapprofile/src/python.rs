//! Lines of Python on the stack of a sampled block.
//!
//! The frames are the interpreter's ([`vellum_unwind::Interpreter`]). The kernel does all reads: an
//! interpreter whose layout does not match its version costs lines, and does not end the program.
//!
//! A line is entered in the part once ([`EntryKind::Line`](vellum_wire::held::EntryKind)).

use super::part::Part;
use super::walk::{SPREAD, Stack, mixed};
use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use vellum_sys::{Addr, Caps, caps, map};
use vellum_unwind::{Interpreter, NAME_MAX, Python, Running};
use vellum_wire::held::{PYTHON, frame as packed};
use vellum_wire::script::SCRIPT_FRAMES_MAX;

/// Code and instruction whose lines are remembered.
const KNOWN: usize = 1 << 12;
/// Places for entered lines; at most half of them are used.
const ENTERED: usize = 1 << 14;
/// Probes for one of these.
const PROBES_MAX: usize = 32;

/// Finds a symbol of the program, or null.
type Find = fn(&CStr) -> *const c_void;

/// The program's interpreter, if it has one.
pub(super) struct Finder {
    /// A [`Find`], or null.
    find: AtomicPtr<c_void>,
    interpreter: Interpreter,
}

impl Finder {
    pub(super) const fn new() -> Finder {
        Finder { find: AtomicPtr::new(null_mut()), interpreter: Interpreter::none() }
    }

    pub(super) fn set(&self, find: Find) {
        self.find.store(find as *mut c_void, Relaxed);
    }

    pub(super) fn find_interpreter(&self) {
        // SAFETY: null, which is `None` of a function's type, or such a function, by `set`.
        let find = unsafe { core::mem::transmute::<*mut c_void, Option<Find>>(self.find.load(Relaxed)) };
        if let Some(find) = find {
            self.interpreter.look(find, read);
        }
    }
}

fn read(at: u64, into: &mut [u8]) -> bool {
    map::copy_from(Addr::new(at as usize), into) == into.len()
}

/// A line that is remembered by its code and instruction. All zero: none.
#[derive(Clone, Copy, Debug)]
struct Known {
    code: u64,
    instruction: u64,
    /// A hash of the words that the code refers to, as other code may lie there later.
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
    pub(super) fn add(&mut self, stack: &mut Stack, part: &mut Part, finder: &Finder) {
        let Some(python) = finder.interpreter.get().filter(|_| caps::has(Caps::HELPER)) else { return };
        let lines = python.running(read).filter_map(|running| self.line(&python, running, part));
        lines.take(SCRIPT_FRAMES_MAX).for_each(|entry| stack.push(packed(PYTHON, entry.into())));
    }

    /// The entry of the line of an instruction of code.
    fn line(&mut self, python: &Python, running: Running, part: &mut Part) -> Option<u32> {
        let code = python.code(running, read)?;
        let check = code.words().into_iter().fold(SPREAD, mixed);
        let slot = (mixed(mixed(SPREAD, running.code), running.instruction) >> 20) as usize % KNOWN;
        let known = self.known[slot];
        if (known.code, known.instruction, known.check) == (running.code, running.instruction, check) {
            return Some(known.entry);
        }
        let line = python.line(running, code, read);
        let (mut file, mut name) = ([0; NAME_MAX], [0; NAME_MAX]);
        let file = python.file(code, &mut file, read)?;
        let name = python.name(code, &mut name, read)?;
        let entry = self.enter(line, name, file, part)?;
        self.known[slot] = Known { code: running.code, instruction: running.instruction, check, entry };
        Some(entry)
    }

    /// The entry of a line, which this adds if the part has none.
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
