//! aarch64: access to thread-local variables (above `tpidr_el0`) and to the registers that a call preserves.

use core::arch::asm;
use core::ffi::c_void;

/// Registers that a call must preserve, the link register, and the low halves of eight vector registers, in
/// which a compiler may keep a pointer over a call.
pub(crate) const REGISTERS: usize = 20;
/// True if static thread-local data lies above the thread pointer.
pub(crate) const IS_DATA_ABOVE: bool = true;

/// The calling thread's variable of that name, by initial-exec addressing.
macro_rules! variable {
    ($name:literal) => {{
        let place: *mut *const c_void;
        // SAFETY: computes the address of the thread's own variable: its offset from the thread pointer is in
        // the GOT.
        unsafe {
            asm!(
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

/// The address of the calling thread's `vel_gc_frames`.
#[inline(always)]
pub(crate) fn frames() -> *const c_void {
    variable!("vel_gc_frames").cast_const().cast()
}

/// The value of the calling thread's `vel_gc_local`.
#[inline(always)]
pub(crate) fn local() -> *const c_void {
    let variable = variable!("vel_gc_local");
    // SAFETY: the thread's own variable.
    unsafe { variable.read() }
}

/// Writes the calling thread's `vel_gc_local`.
///
/// # Safety
/// The value always leads to runs.
#[inline(always)]
pub(crate) unsafe fn set_local(local: *const c_void) {
    let variable = variable!("vel_gc_local");
    // SAFETY: the thread's own variable.
    unsafe { variable.write(local) };
}

/// Copies the registers that a call must preserve, and returns the stack pointer.
#[inline(always)]
pub(crate) fn spill(registers: &mut [usize; REGISTERS]) -> usize {
    let stack;
    // SAFETY: writes the twenty words it is given.
    unsafe {
        asm!(
            "stp x19, x20, [{to}]",
            "stp x21, x22, [{to}, 16]",
            "stp x23, x24, [{to}, 32]",
            "stp x25, x26, [{to}, 48]",
            "stp x27, x28, [{to}, 64]",
            "stp x29, x30, [{to}, 80]",
            "stp d8, d9, [{to}, 96]",
            "stp d10, d11, [{to}, 112]",
            "stp d12, d13, [{to}, 128]",
            "stp d14, d15, [{to}, 144]",
            "mov {stack}, sp",
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
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}
