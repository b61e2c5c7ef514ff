//! The code for aarch64: system calls by `svc`; the thread pointer in `tpidr_el0`, which any code may read.

use super::Birth;
use core::arch::asm;

/// Makes the system call `number`. Returns the kernel's raw answer.
///
/// # Safety
/// The arguments are valid for the system call.
#[inline(always)]
pub(crate) unsafe fn call(number: libc::c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the arguments are valid (`# Safety`); the kernel keeps every register but the result's.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// Makes a thread by `clone`. The thread pointer is its fourth argument here, the word for the id its fifth.
///
/// # Safety
/// `birth` names a stack, a thread pointer and a word that outlive the thread.
#[inline(always)]
pub(crate) unsafe fn clone(birth: &Birth) -> isize {
    let result: isize;
    // SAFETY: in the parent this is an ordinary system call. The child continues after `svc` with a stack of
    // its own and every register the parent had, and goes straight to `entry`, which never returns.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x10",
            "blr x9",
            "brk 1",
            "2:",
            in("x8") libc::SYS_clone,
            inlateout("x0") birth.flags as usize => result,
            in("x1") birth.stack,
            in("x2") birth.id,
            in("x3") birth.control,
            in("x4") birth.id,
            in("x9") birth.entry,
            in("x10") birth.argument,
        );
    }
    result
}

/// Makes zeroed memory a thread control block: it is one already. Static thread-local data lies above it.
///
/// # Safety
/// None here.
pub(crate) unsafe fn prepare_control(_control: *mut usize) {}

/// Ends the calling thread.
///
/// # Safety
/// Waiters use only the word that the thread was started with.
#[inline(always)]
pub(crate) unsafe fn exit() -> ! {
    // SAFETY: `exit` of this thread alone.
    unsafe {
        asm!("svc 0", in("x8") libc::SYS_exit, in("x0") 0, options(noreturn));
    }
}

pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

/// Has the cache line at `place` fetched: a hint, which does nothing where nothing is mapped.
#[inline(always)]
pub fn prefetch(place: *const u8) {
    // SAFETY: a prefetch reads nothing.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) place, options(readonly, nostack, preserves_flags)) };
}
