//! x86-64: thread-local data by `fs`, operands in memory, stores in program order.

use core::arch::asm;
use core::ffi::c_void;
use vellum_unwind::Frame;

/// What the calling thread's `vellum_heap` holds.
#[inline(always)]
pub(crate) fn thread_heap() -> *const c_void {
    let heap;
    // SAFETY: reads the thread's own variable.
    unsafe {
        asm!(
            "mov {heap}, qword ptr [rip + vellum_heap@GOTTPOFF]",
            "mov {heap}, qword ptr fs:[{heap}]",
            heap = out(reg) heap,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    heap
}

/// Writes the calling thread's `vellum_heap`.
///
/// # Safety
/// It always holds a heap.
#[inline(always)]
pub(crate) unsafe fn set_thread_heap(heap: *const c_void) {
    // SAFETY: writes the thread's own variable, with a heap by this function's condition.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + vellum_heap@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {heap}",
            offset = out(reg) _,
            heap = in(reg) heap,
            options(nostack, preserves_flags),
        );
    }
}

/// What the calling thread's `vellum_inner_heap` holds.
#[inline(always)]
pub(crate) fn inner_heap() -> *const c_void {
    let heap;
    // SAFETY: reads the thread's own variable.
    unsafe {
        asm!(
            "mov {heap}, qword ptr [rip + vellum_inner_heap@GOTTPOFF]",
            "mov {heap}, qword ptr fs:[{heap}]",
            heap = out(reg) heap,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    heap
}

/// Writes the calling thread's `vellum_inner_heap`.
///
/// # Safety
/// It always holds a heap, or null.
#[inline(always)]
pub(crate) unsafe fn set_thread_inner_heap(heap: *const c_void) {
    // SAFETY: writes the thread's own variable, with what may be there by this function's condition.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + vellum_inner_heap@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {heap}",
            offset = out(reg) _,
            heap = in(reg) heap,
            options(nostack, preserves_flags),
        );
    }
}

/// The address of `vellum_empty_heap`.
#[inline(always)]
pub(crate) fn empty_heap() -> *const c_void {
    let heap;
    // SAFETY: computes an address.
    unsafe {
        asm!(
            "lea {heap}, [rip + vellum_empty_heap]",
            heap = out(reg) heap,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    heap
}

/// The address of `vellum_key`.
#[inline(always)]
pub(crate) fn key() -> *const c_void {
    let place;
    // SAFETY: computes an address.
    unsafe {
        asm!("lea {}, [rip + vellum_key]", out(reg) place, options(pure, nomem, nostack, preserves_flags));
    }
    place
}

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

/// Counts the word at `OFFSET` in `record` down by one. Who sees the count sees all that was stored before:
/// the machine stores in order. Of the compiler's making it would be four instructions.
///
/// # Safety
/// There is a word, which nobody else writes now.
#[inline(always)]
pub(crate) unsafe fn count_down<T, const OFFSET: usize>(record: &T, at_zero: impl FnOnce()) {
    // SAFETY: by this function's condition.
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

/// Whether the pointer at `OFFSET` in `record` is `wanted`: a relaxed load and a comparison, which the
/// compiler does not make one instruction.
///
/// # Safety
/// There is an aligned pointer, which others write at one go.
#[inline(always)]
pub(crate) unsafe fn holds<T, W, const OFFSET: usize>(record: &T, wanted: &W) -> bool {
    // SAFETY: by this function's condition; the machine reads an aligned word at one go.
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
pub(crate) fn here() -> Frame {
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

/// Where the words of a probe are: as its note has them, and as `asm!` does.
macro_rules! probe {
    ($code:ident, $name:literal, $first:expr) => {
        $code!($name, "8@%rdi", "rdi" = $first)
    };
    ($code:ident, $name:literal, $first:expr, $second:expr, $third:expr) => {
        $code!($name, "8@%rdi 8@%rsi 8@%rdx", "rdi" = $first, "rsi" = $second, "rdx" = $third)
    };
}
pub(crate) use probe;
