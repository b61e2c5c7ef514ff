//! Prints the stack that led to a misuse of memory, without allocating: one line for each stack frame.
//!
//! ```text
//!   at libfoo.so+0x1234
//!   at program+0x5678
//! ```
//!
//! `addr2line -e FILE 0x1234` prints function and line. The walk uses the tables of C++ exceptions
//! (`.eh_frame`, read by [`vellum_unwind`], found by [`vellum_sys::loader`]), not frame pointers. Frames of
//! this library at the top are omitted: the first line is the program's call. A word of the stack is read
//! only after a check that it is readable, as the misuse may have overwritten the stack.

use crate::arch::here;
use crate::modules::rule;
use core::ffi::{CStr, c_char};
use vellum_sys::loader::{Module, module};
use vellum_sys::{Addr, Line, Span, stack};

const SHOWN_MAX: u32 = 16;
/// Steps that are taken: frames of this library come on top.
const STEPS_MAX: u32 = 48;
const WORD: u64 = 8;

#[cold]
#[inline(never)]
pub(crate) fn write() {
    let mut frame = here();
    let own = module(frame.pc).map_or(0, |module| module.start);
    let (mut shown, mut inside) = (0, true);
    for _ in 0..STEPS_MAX {
        let Some(module) = module(frame.pc - 1) else { return };
        inside &= module.start == own;
        if !inside {
            describe(&module, frame.pc);
            shown += 1;
        }
        let Some(caller) = rule(&module, frame.pc - 1).and_then(|rule| frame.caller(rule, word)) else {
            return;
        };
        if shown == SHOWN_MAX {
            return;
        }
        frame = caller;
    }
}

fn word(at: u64) -> Option<u64> {
    let word = Span::new(Addr::new(at as usize), WORD as usize);
    // SAFETY: the kernel has read that page a moment ago, and the stack is this thread's.
    (stack::readable_from(word) == word.start).then(|| unsafe { (at as *const u64).read_unaligned() })
}

/// Writes one line: the module's file name, and the instruction's address in it.
fn describe(module: &Module, pc: u64) {
    let mut line = Line::new();
    line.text("  at ");
    let name = module.name().to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if name.is_empty() {
        line.raw(program_name());
    } else {
        line.raw(name);
    }
    line.text("+0x").hex((pc - module.bias) as usize).text("\n").write();
}

fn program_name() -> &'static [u8] {
    // SAFETY: `getauxval` has no preconditions.
    let path = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
    if path.is_null() {
        return b"program";
    }
    // SAFETY: a C string that the kernel put on the first stack.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}
