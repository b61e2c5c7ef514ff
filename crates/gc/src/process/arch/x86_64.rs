//! x86-64: access to thread-local variables (below `fs`) and to the registers that a call preserves.

use core::arch::asm;
use core::ffi::c_void;

/// Registers that a call must preserve.
pub(crate) const REGISTERS: usize = 6;
/// True if static thread-local data lies above the thread pointer.
pub(crate) const IS_DATA_ABOVE: bool = false;

/// The address of the calling thread's `vel_gc_frames`.
#[inline(always)]
pub(crate) fn frames() -> *const c_void {
    let variable;
    // SAFETY: computes the address of the thread's own variable.
    unsafe {
        asm!(
            "mov {variable}, qword ptr [rip + vel_gc_frames@GOTTPOFF]",
            "add {variable}, qword ptr fs:[0]",
            variable = out(reg) variable,
            options(pure, readonly, nostack),
        );
    }
    variable
}

/// The value of the calling thread's `vel_gc_local`.
#[inline(always)]
pub(crate) fn local() -> *const c_void {
    let local;
    // SAFETY: reads the thread's own variable: its offset from the thread pointer is in the GOT.
    unsafe {
        asm!(
            "mov {local}, qword ptr [rip + vel_gc_local@GOTTPOFF]",
            "mov {local}, qword ptr fs:[{local}]",
            local = out(reg) local,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    local
}

/// Writes the calling thread's `vel_gc_local`.
///
/// # Safety
/// The value always leads to runs.
#[inline(always)]
pub(crate) unsafe fn set_local(local: *const c_void) {
    // SAFETY: writes the thread's own variable: its offset from the thread pointer is in the GOT.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + vel_gc_local@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {local}",
            offset = out(reg) _,
            local = in(reg) local,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies the registers that a call must preserve, and returns the stack pointer.
#[inline(always)]
pub(crate) fn spill(registers: &mut [usize; REGISTERS]) -> usize {
    let stack;
    // SAFETY: writes the six words it is given.
    unsafe {
        asm!(
            "mov [{to}], rbx",
            "mov [{to} + 8], rbp",
            "mov [{to} + 16], r12",
            "mov [{to} + 24], r13",
            "mov [{to} + 32], r14",
            "mov [{to} + 40], r15",
            "mov {stack}, rsp",
            to = in(reg) registers.as_mut_ptr(),
            stack = out(reg) stack,
            options(nostack, preserves_flags),
        );
    }
    stack
}

#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: by the ABI the word at fs:0 holds the thread pointer itself.
    unsafe {
        asm!("mov {pointer}, qword ptr fs:[0]", pointer = out(reg) pointer, options(pure, readonly, nostack));
    };
    pointer
}
