//! Programs that forbid themselves system calls.
//!
//! A sandboxed program installs a filter that kills it for a call it has not listed, and it has not listed what
//! Vellum's memory may want to do behind its back. From the moment before the filter is set, the page layer makes no
//! call but the one that any allocator makes: it maps memory, when it needs more and, over what it has, to give frames back.
//!
//! Filters are set by `prctl` or by `syscall`, so both pass through here. `syscall` must leave every register as the C
//! library's does and may not have a frame of its own (a call may return twice), hence the assembly.

use core::arch::naked_asm;
use core::ffi::c_int;
use vellum_malloc::set_errno;
use vellum_pages::Pages;
use vellum_sys::raw;

/// Called before a filter is set.
extern "C" fn before_filter() {
    Pages::global().keep_still();
}

/// `prctl`. Arguments that were not passed are whatever the registers hold, as in the C library's.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        before_filter();
    }
    // SAFETY: the program's own call, with its own arguments.
    match unsafe { raw::syscall(libc::SYS_prctl, [option as usize, a, b, c, d, 0]) } {
        Ok(value) => value as c_int,
        Err(errno) => {
            set_errno(errno.raw_os_error());
            -1
        }
    }
}

const _: () = assert!(libc::SYS_seccomp == 317 && libc::SYS_prctl == 157 && libc::PR_SET_SECCOMP == 22);

/// `syscall`. The operations 0 and 1 of `seccomp` set a filter; others only ask.
///
/// # Safety
/// As for the system call.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    naked_asm!(
    "cmp rdi, 317",
    "je 3f",
    "cmp rdi, 157",
    "je 4f",
    "2:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "cmp rax, -4095",
    "jae 6f",
    "ret",
    "3:",
    "cmp rsi, 1",
    "ja 2b",
    "jmp 5f",
    "4:",
    "cmp rsi, 22",
    "jne 2b",
    "5:",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push r8",
    "push r9",
    "sub rsp, 8",
    "call {before}",
    "add rsp, 8",
    "pop r9",
    "pop r8",
    "pop rcx",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "jmp 2b",
    "6:",
    "push rax",
    "call {location}",
    "pop rcx",
    "neg ecx",
    "mov [rax], ecx",
    "or rax, -1",
    "ret",
    before = sym before_filter,
    location = sym errno_location,
    )
}

extern "C" fn errno_location() -> *mut c_int {
    // SAFETY: the C library's own function; it has no conditions.
    unsafe { libc::__errno_location() }
}
