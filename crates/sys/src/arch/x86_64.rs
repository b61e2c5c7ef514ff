//! The code for x86-64: system calls by `syscall`; the thread pointer in `fs`, read by a system call.

use super::Birth;
use core::arch::asm;
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Makes the system call `number`. Returns the kernel's raw answer.
///
/// # Safety
/// The arguments are valid for the system call.
#[inline(always)]
pub(crate) unsafe fn call(number: libc::c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the arguments are valid (`# Safety`); the kernel clobbers rcx and r11 only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a thread by `clone`; the kernel's answer to the caller.
///
/// # Safety
/// `birth` names a stack, a thread pointer and a word that outlive the thread.
#[inline(always)]
pub(crate) unsafe fn clone(birth: &Birth) -> isize {
    let result: isize;
    // SAFETY: in the parent this is an ordinary system call. The child continues after `syscall` with a stack
    // of its own and every register the parent had, and goes straight to `entry`, which never returns.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => result,
            in("rdi") birth.flags,
            in("rsi") birth.stack,
            in("rdx") birth.id,
            in("r10") birth.id,
            in("r8") birth.control,
            in("r12") birth.entry,
            in("r13") birth.argument,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Makes zeroed memory a thread control block.
///
/// # Safety
/// Three words at `control` may be written.
pub(crate) unsafe fn prepare_control(control: *mut usize) {
    // SAFETY: the memory is the caller's (`# Safety`); %fs-relative code expects both words to point to it.
    unsafe {
        control.write(control as usize);
        control.add(2).write(control as usize);
    }
}

/// Ends the calling thread.
///
/// # Safety
/// Waiters use only the word that the thread was started with.
#[inline(always)]
pub(crate) unsafe fn exit() -> ! {
    // SAFETY: `exit` of this thread alone.
    unsafe {
        asm!("syscall", in("rax") libc::SYS_exit, in("rdi") 0, options(noreturn));
    }
}

pub(crate) fn thread_pointer() -> usize {
    const GET_FS: usize = 0x1003;
    let mut pointer = 0usize;
    // SAFETY: the kernel writes the one word.
    let _ = unsafe { call(libc::SYS_arch_prctl, [GET_FS, &raw mut pointer as usize, 0, 0, 0, 0]) };
    pointer
}

/// Has the cache line at `place` fetched: a hint, which does nothing where nothing is mapped.
#[inline(always)]
pub fn prefetch(place: *const u8) {
    // SAFETY: a prefetch reads nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}
