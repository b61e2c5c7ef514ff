//! A system call with nothing around it: for the few that have no wrapper and for threads without an `errno`.

use core::arch::asm;
use rustix::io::Errno;

/// Makes the system call `number` with six arguments.
///
/// # Errors
/// The kernel's errno.
///
/// # Safety
/// As the system call demands of its arguments.
pub unsafe fn syscall(number: libc::c_long, args: [usize; 6]) -> Result<usize, Errno> {
    let result: isize;
    // SAFETY: by this function's condition; the kernel clobbers rcx and r11 only.
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
    if (-4095..0).contains(&result) {
        Err(Errno::from_raw_os_error(-result as i32))
    } else {
        Ok(result as usize)
    }
}
