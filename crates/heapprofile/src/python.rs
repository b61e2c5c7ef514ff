//! Finds the lines of Python on the stack of a sampled block.
//!
//! Lines are read from an interpreter's frames ([`vellum_unwind::Interpreter`]). The kernel does all reads:
//! if the layout does not match the version, lines are missing, but the program does not crash.
//!
//! A line is entered in the file (`part`) once ([`EntryKind::Line`]), under a hash of its number and names.

use super::walk::Stack;
use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use vellum_stacks::{Facts, by_kernel};
use vellum_sys::{Caps, caps};
use vellum_unwind::{Interpreter, SPREAD, mixed};
use vellum_wire::log::{Entry, EntryKind, LINE_BIT};
use vellum_wire::script::SCRIPT_FRAMES_MAX;

/// Lines that are remembered, by their code: the hashes of their texts.
pub(super) type Lines = Facts<{ 1 << 14 }>;

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
            self.interpreter.look(find, by_kernel);
        }
    }

    /// Adds this thread's lines of Python to its stack, if it runs some. `enter` enters a line by its hash.
    pub(super) fn add_lines(
        &self,
        stack: &mut Stack,
        known: &mut Lines,
        mut enter: impl FnMut(u64, &Entry<'_>) -> Option<u32>,
    ) {
        let Some(python) = self.interpreter.get().filter(|_| caps::has(Caps::HELPER)) else { return };
        let mut enter = |number: u32, name: &[u8], file: &[u8]| {
            let letters = name.iter().chain(file).map(|&letter| u64::from(letter));
            let hash = letters.fold(mixed(mixed(SPREAD, number.into()), name.len() as u64), mixed) | LINE_BIT;
            let words = [hash, number.into(), name.len() as u64];
            enter(hash, &Entry { kind: EntryKind::Line, words: &words, texts: [name, file] })
                .map_or(0, |_| hash)
        };
        let mut count = 0;
        python.each_line(by_kernel, |line| {
            let hash = line.map_or(0, |line| {
                known.of_own(line.key() | LINE_BIT, || line.describe(&mut enter).unwrap_or(0))
            });
            if hash != 0 {
                stack.push(hash);
                count += 1;
            }
            count < SCRIPT_FRAMES_MAX
        });
    }
}
