//! x86-64: thread-local variables (addressed from `fs`) and the instructions of the fast paths.

use core::arch::asm;
use vellum_unwind::Frame;

/// Reads a variable of the calling thread.
macro_rules! read_variable {
    ($name:literal) => {{
        let value;
        // SAFETY: reads the thread's own variable.
        unsafe {
            core::arch::asm!(
                concat!("mov {value}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
                "mov {value}, qword ptr fs:[{value}]",
                value = out(reg) value,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        value
    }};
}

/// Writes a variable of the calling thread.
macro_rules! write_variable {
    ($name:literal, $value:ident) => {
        // SAFETY: writes the thread's own variable, with what may be there by the caller's condition.
        unsafe {
            core::arch::asm!(
                concat!("mov {offset}, qword ptr [rip + ", $name, "@GOTTPOFF]"),
                "mov qword ptr fs:[{offset}], {value}",
                offset = out(reg) _,
                value = in(reg) $value,
                options(nostack, preserves_flags),
            );
        }
    };
}

/// The address of the hidden symbol of that name.
macro_rules! address {
    ($name:literal) => {{
        let place;
        // SAFETY: computes an address.
        unsafe {
            core::arch::asm!(
                concat!("lea {place}, [rip + ", $name, "]"),
                place = out(reg) place,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        place
    }};
}

pub(super) use {address, read_variable, write_variable};

#[inline(always)]
pub(crate) fn xor_key(mut word: usize) -> usize {
    // SAFETY: reads the key, which does not change once a block has been handed out.
    unsafe {
        asm!("xor {}, qword ptr [rip + vellum_key]", inout(reg) word, options(pure, readonly, nostack));
    }
    word
}

#[inline(always)]
pub(crate) fn add_key(mut word: usize) -> usize {
    // SAFETY: as for `xor_key`.
    unsafe {
        asm!("add {}, qword ptr [rip + vellum_key]", inout(reg) word, options(pure, readonly, nostack));
    }
    word
}

/// Counts the word at `OFFSET` in `record` down by one, in two instructions instead of the compiler's four. A
/// thread that sees the count sees all stores before it, as the machine stores in order. Safety: there is a
/// word, which nobody else writes now.
#[inline(always)]
pub(crate) unsafe fn count_down<T, const OFFSET: usize>(record: &T, at_zero: impl FnOnce()) {
    // SAFETY: there is a word at `OFFSET`, which nobody else writes now.
    unsafe {
        asm!(
            "dec dword ptr [{record} + {offset}]",
            "jz {zero}",
            record = in(reg) record,
            offset = const OFFSET,
            zero = label { at_zero() },
            options(nostack),
        );
    }
}

/// True if the pointer at `OFFSET` in `record` is `wanted`: a relaxed load and a comparison in one
/// instruction, which the compiler does not do. Safety: there is an aligned pointer, which others write at
/// one go.
#[inline(always)]
pub(crate) unsafe fn holds<T, W, const OFFSET: usize>(record: &T, wanted: &W) -> bool {
    // SAFETY: an aligned pointer lies at `OFFSET`, and the machine reads an aligned word at one go.
    unsafe {
        asm!(
            "cmp qword ptr [{record} + {offset}], {wanted}",
            "jne {another}",
            record = in(reg) record,
            offset = const OFFSET,
            wanted = in(reg) wanted,
            another = label { return false },
            options(readonly, nostack),
        );
    }
    true
}

/// The frame of the function this is inlined into.
#[inline(always)]
pub fn here() -> Frame {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!(
            "lea {pc}, [rip + 1]",
            "mov {sp}, rsp",
            "mov {bp}, rbp",
            pc = out(reg) pc,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nomem, nostack, preserves_flags),
        );
    }
    Frame { pc, sp, bp }
}
