//! Finds the line of Python that caused an operation, on a stack of CPython.
//!
//! An operation of CPython, or of a library that it calls, is recorded under the Python line that runs. The
//! walk up the stack ends where it reaches the interpreter. It continues along the interpreter's own frames
//! ([`vellum_unwind::Interpreter`]), to the first line outside libraries.
//!
//! ```text
//! malloc's caller ─ list_resize (interpreter)      decode (json/decoder.py:355) ─ load (job.py:12)
//!                                    └─────────────────▶       the recorded line: ▲
//! ```
//!
//! A line's **key** is made of its code, its instruction and the objects that the code refers to. The key
//! identifies the line in a stack's hash, and in the log.
//!
//! Frames and code are read directly, without the kernel, because they are read at each operation. Before
//! that, one stack is read through the kernel, and code must be where the expected layout has it. Until then,
//! or if a stack has another layout, no lines are recorded.

use crate::{next, process};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vellum_stacks::{Facts, by_kernel};
use vellum_unwind::{Interpreter, Line, Python, Read};
use vellum_wire::log::{Entry, EntryKind, LINE_BIT};
use vellum_wire::script::{SCRIPT_FRAMES_MAX, is_users};

/// The words in [`LINES`].
const LIBRARYS: u64 = 1;
const USERS: u64 = 2;
/// The line cannot be read.
const NONE: u64 = 3;

/// The check that a stack has the expected layout: not done yet, passed, failed.
const UNSEEN: u32 = 0;
const HOLDS: u32 = 1;
const FAILS: u32 = 2;

static INTERPRETER: Interpreter = Interpreter::none();
static LAYOUT: AtomicU32 = AtomicU32::new(UNSEEN);
/// By key: whether the line is a library's or the user's.
static LINES: Facts<{ 1 << 17 }> = Facts::new();

/// Searches for an interpreter in the program. Called from the library's initializer, when no other thread
/// can hold the loader's lock.
pub(crate) fn look() {
    // If the kernel may not be used to read memory, the layout can never be checked.
    if by_kernel((&raw const LAYOUT) as u64, &mut [0; size_of::<u32>()]) {
        INTERPRETER.look(next::first, by_kernel);
    }
}

pub(crate) fn is_there() -> bool {
    INTERPRETER.get().is_some()
}

/// Passes the keys of this thread's Python lines to `take`, innermost first: all lines, or those up to the
/// first line of the user's. Returns whether there were any lines; `None` if only [`all`] can determine it.
#[inline(always)]
pub(crate) fn known(is_whole: bool, take: impl FnMut(u64)) -> Option<bool> {
    each(directly, is_whole, |_, key| LINES.known(key), take)
}

/// Like [`known`], but lines seen for the first time are entered in the log.
#[cold]
pub(crate) fn all(is_whole: bool, take: impl FnMut(u64)) -> bool {
    if LAYOUT.load(Relaxed) == UNSEEN
        && let Some(python) = INTERPRETER.get()
        && let Some(holds) = holds(python)
    {
        LAYOUT.store(if holds { HOLDS } else { FAILS }, Relaxed);
    }
    let whose = |line: &Line<_>, key| Some(LINES.of(key, || process::keeping_errno(|| describe(line, key))));
    each(directly, is_whole, whose, take) == Some(true)
}

#[inline(always)]
fn each<R: Read>(
    read: R,
    is_whole: bool,
    whose: impl Fn(&Line<R>, u64) -> Option<u64>,
    mut take: impl FnMut(u64),
) -> Option<bool> {
    let Some(python) = INTERPRETER.get().filter(Python::is_alive) else { return Some(false) };
    match LAYOUT.load(Relaxed) {
        HOLDS => {}
        UNSEEN => return None,
        _ => return Some(false),
    }
    let (mut count, mut is_known) = (0, true);
    python.each_line(read, |line| {
        let Some(line) = line else { return false };
        let key = line.key() | LINE_BIT;
        let Some(whose) = whose(&line, key) else {
            is_known = false;
            return false;
        };
        if whose == NONE {
            return true;
        }
        take(key);
        count += 1;
        count < SCRIPT_FRAMES_MAX && (whose != USERS || is_whole)
    });
    is_known.then_some(count > 0)
}

/// Checks that this thread's stack has the expected layout; `None` if it has no Python frames.
fn holds(python: Python) -> Option<bool> {
    let mut holds = None;
    python.each_line(by_kernel, |line| *holds.insert(line.is_some()));
    holds
}

/// Enters a line in the log. Returns whose it is; [`NONE`] if it cannot be read.
fn describe(line: &Line<impl Read>, key: u64) -> u64 {
    let entered = line.describe(|line, name, file| {
        let words = [key, line.into(), name.len() as u64];
        process::log(&Entry { kind: EntryKind::Line, words: &words, texts: [name, file] })?;
        Some(if is_users(core::str::from_utf8(file).unwrap_or_default()) { USERS } else { LIBRARYS })
    });
    entered.flatten().unwrap_or(NONE)
}

#[inline(always)]
fn directly(at: u64, into: &mut [u8]) -> bool {
    // SAFETY: only the calling thread's frames, their code and its names are read here, after `holds` has
    // found the interpreter's layout as its version defines it. They exist as long as the thread runs them.
    unsafe { into.as_mut_ptr().copy_from_nonoverlapping(at as *const u8, into.len()) };
    true
}
