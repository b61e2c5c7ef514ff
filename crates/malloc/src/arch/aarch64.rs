//! aarch64: thread-local variables (addressed from `tpidr_el0`) and the instructions of the fast paths.
//! `count_down` lowers a counter by a release store, as other processors may see stores out of order.

use core::arch::asm;
use core::ptr::from_ref;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed, Ordering::Release};
use vellum_unwind::Frame;

/// The calling thread's variable of that name, by initial-exec addressing: its offset from the thread pointer
/// is in the global offset table.
macro_rules! variable {
    ($name:literal) => {{
        let place: *mut *const core::ffi::c_void;
        // SAFETY: computes the address of the thread's own variable; the table does not change.
        unsafe {
            core::arch::asm!(
                concat!("adrp {place}, :gottprel:", $name),
                concat!("ldr {place}, [{place}, :gottprel_lo12:", $name, "]"),
                "mrs {pointer}, tpidr_el0",
                "add {place}, {pointer}, {place}",
                place = out(reg) place,
                pointer = out(reg) _,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        place
    }};
}

/// The address of the hidden symbol of that name.
macro_rules! address {
    ($name:literal) => {{
        let place: *const core::ffi::c_void;
        // SAFETY: computes an address.
        unsafe {
            core::arch::asm!(
                concat!("adrp {place}, ", $name),
                concat!("add {place}, {place}, :lo12:", $name),
                place = out(reg) place,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        place
    }};
}

/// Reads a variable of the calling thread.
macro_rules! read_variable {
    ($name:literal) => {{
        let place: *mut *const core::ffi::c_void = $crate::arch::machine::variable!($name);
        // SAFETY: the thread's own variable.
        unsafe { place.read() }
    }};
}

/// Writes a variable of the calling thread.
macro_rules! write_variable {
    ($name:literal, $value:ident) => {{
        let place: *mut *const core::ffi::c_void = $crate::arch::machine::variable!($name);
        // SAFETY: the thread's own variable.
        unsafe { place.write($value) };
    }};
}

pub(super) use {address, read_variable, variable, write_variable};

#[inline(always)]
fn key_word() -> usize {
    let word;
    // SAFETY: reads the key, which does not change once a block has been handed out.
    unsafe {
        asm!(
            "adrp {word}, vellum_key",
            "ldr {word}, [{word}, :lo12:vellum_key]",
            word = out(reg) word,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    word
}

#[inline(always)]
pub(crate) fn xor_key(word: usize) -> usize {
    word ^ key_word()
}

#[inline(always)]
pub(crate) fn add_key(word: usize) -> usize {
    word.wrapping_add(key_word())
}

/// Counts the word at `OFFSET` in `record` down by one. Who sees the count sees all that was stored before.
/// Safety: there is a word, which nobody else writes now.
#[inline(always)]
pub(crate) unsafe fn count_down<T, const OFFSET: usize>(record: &T, at_zero: impl FnOnce()) {
    // SAFETY: there is a word at `OFFSET`, which nobody else writes now.
    let word = unsafe { &*from_ref(record).byte_add(OFFSET).cast::<AtomicU32>() };
    let left = word.load(Relaxed).wrapping_sub(1);
    word.store(left, Release);
    if left == 0 {
        at_zero();
    }
}

/// True if the pointer at `OFFSET` in `record` is `wanted`. Safety: there is an aligned pointer, which others
/// write at one go.
#[inline(always)]
pub(crate) unsafe fn holds<T, W, const OFFSET: usize>(record: &T, wanted: &W) -> bool {
    // SAFETY: there is an aligned pointer at `OFFSET`.
    let word = unsafe { &*from_ref(record).byte_add(OFFSET).cast::<AtomicPtr<W>>() };
    core::ptr::eq(word.load(Relaxed), wanted)
}

/// The frame of the function this is inlined into.
#[inline(always)]
pub fn here() -> Frame {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!(
            "adr {pc}, 2f",
            "2:",
            "mov {sp}, sp",
            "mov {bp}, x29",
            pc = out(reg) pc,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nomem, nostack, preserves_flags),
        );
    }
    Frame { pc, sp, bp }
}
