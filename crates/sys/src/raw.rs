//! A direct system call: for the few calls that have no wrapper, and for threads that have no `errno`.

use crate::arch;
use rustix::io::Errno;

/// Makes the system call `number` with six arguments.
///
/// # Safety
/// The arguments are valid for the system call.
pub unsafe fn syscall(number: libc::c_long, args: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the arguments are valid for this system call (`# Safety`).
    let result = unsafe { arch::call(number, args) };
    if (-4095..0).contains(&result) {
        Err(Errno::from_raw_os_error(-result as i32))
    } else {
        Ok(result as usize)
    }
}
