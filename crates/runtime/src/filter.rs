//! Programs that forbid themselves system calls.
//!
//! A sandboxed program installs a filter that kills it for a call it has not listed, and it has not listed
//! what Vellum's memory may want to do behind its back. From the moment before the filter is set, the page
//! layer makes no call but the one that any allocator makes: it maps memory, when it needs more and, over
//! what it has, to give frames back. The collector tracks no writes any more.
//!
//! Filters are set by `prctl` or by `syscall`, so both pass through here, and with them what else these do
//! that background threads must follow (`identity`). `syscall` must leave every register as the C library's
//! does and may not have a frame of its own (a call may return twice), hence the assembly. A call that is
//! checked does not return twice: it is left to ordinary functions, by a jump. Calls about mappings go where
//! those made by name go ([`crate::mmap`]).
//!
//! The pager's threads live without the filter: they would not get far under it, and the program's memory
//! neither. A filter for *all* threads (`SECCOMP_FILTER_FLAG_TSYNC`) is set for the calling one alone if the
//! program has no other, which is the same to the program. If it has, one line says what the filter must
//! allow.

use crate::{calls, identity};
use core::arch::naked_asm;
use core::ffi::{c_int, c_long};
use vellum_malloc::paged::GUARDED;
use vellum_malloc::{Line, paged};
use vellum_pages::Pages;
use vellum_sys::{Caps, caps, owner, thread};

/// The operations of `seccomp` that set a filter, of which the second takes flags; others only ask.
const SET_MODES: core::ops::RangeInclusive<usize> = 0..=1;
const SET_MODE_FILTER: usize = 1;

/// Called before a filter is set.
fn before_filter() {
    Pages::global().no_syscalls();
    caps::drop(Caps::HELPER);
    if owner::is_here() {
        vellum_gc::forgo_tracking();
    }
    if !vellum_gc::are_helpers_absent() && owner::is_here() && vellum_gc::bar_helpers() {
        vellum_gc::unbar_helpers();
    }
}

/// The flags with which a filter can be set here, of those that the program has asked for.
fn settled(flags: usize) -> usize {
    const FOR_ALL: usize = libc::SECCOMP_FILTER_FLAG_TSYNC as usize;
    if flags & FOR_ALL == 0 || !paged::is_paging() {
        return flags;
    }
    if thread::is_only_one() {
        return flags & !FOR_ALL;
    }
    Line::new()
        .text("vellum: a filter on system calls for all threads covers those that page, too: it must allow read, ioctl, futex, madvise, preadv, pwritev and fallocate\n")
        .write();
    flags
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
    unsafe { identity::prctl([option as usize, a, b, c, d, 0]) as c_int }
}

/// What `syscall` leaves to Rust.
///
/// # Safety
/// As for the system call.
unsafe extern "C" fn watched(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    let mut args = [a, b, c, d, e, f];
    match number {
        libc::SYS_prctl => {
            if a as c_int == libc::PR_SET_SECCOMP {
                before_filter();
            }
            // SAFETY: the program's own call, with its own arguments.
            unsafe { identity::prctl(args) }
        }
        libc::SYS_seccomp => {
            if SET_MODES.contains(&a) {
                before_filter();
            }
            if a == SET_MODE_FILTER {
                args[1] = settled(b);
            }
            // SAFETY: as above.
            unsafe { identity::kernel(number, args) }
        }
        // SAFETY: as above.
        _ => unsafe { identity::by_number(number, a, b, c, d, e, f) },
    }
}

const _: () = assert!(
    libc::SYS_clone3 == 435
        && libc::SYS_clone == 56
        && libc::SYS_fork == 57
        && libc::SYS_vfork == 58
        && libc::SYS_rt_sigreturn == 15
);
const _: () = assert!(libc::SYS_seccomp == 317 && libc::SYS_prctl == 157 && libc::PR_SET_SECCOMP == 22);
const _: () = assert!(libc::SYS_mmap == 9 && libc::SYS_mprotect == 10 && libc::SYS_munmap == 11);
const _: () = assert!(libc::SYS_mremap == 25 && libc::SYS_madvise == 28 && libc::SYS_mlock == 149);
const _: () = assert!(libc::SYS_mlockall == 151 && libc::SYS_mlock2 == 325 && libc::SYS_pkey_mprotect == 329);

/// `syscall`.
///
/// # Safety
/// As for the system call.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    naked_asm!(
    // What changes who the caller is, or sets a filter: the numbers of `identity::NUMBERS` and five others.
    "lea rax, [rdi - 105]",
    "cmp rax, 21",
    "ja 3f",
    "mov r11d, {numbers}",
    "bt r11d, eax",
    "jc {watched}",
    "3:",
    "cmp rdi, 157",
    "je {watched}",
    "cmp rdi, 272",
    "je {watched}",
    "cmp rdi, 308",
    "je {watched}",
    "cmp rdi, 317",
    "je {watched}",
    "cmp rdi, 446",
    "je {watched}",
    "cmp rdi, 9",
    "je 9f",
    "cmp rdi, 10",
    "je 9f",
    "cmp rdi, 11",
    "je 9f",
    "cmp rdi, 25",
    "je 9f",
    "cmp rdi, 28",
    "je 9f",
    "cmp rdi, 149",
    "je 9f",
    "cmp rdi, 151",
    "je 9f",
    "cmp rdi, 325",
    "je 9f",
    "cmp rdi, 329",
    "je 9f",
    "2:",
    "cmp dword ptr [rip + {guarded}], 0",
    "jne 7f",
    "8:",
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
    "6:",
    "push rax",
    "call {location}",
    "pop rcx",
    "neg ecx",
    "mov [rax], ecx",
    "or rax, -1",
    "ret",
    // Big blocks must not be handed to the kernel. What returns twice, or elsewhere, is made here all the
    // same.
    "7:",
    "cmp rdi, 435",
    "je 8b",
    "lea rax, [rdi - 56]",
    "cmp rax, 2",
    "jbe 8b",
    "cmp rdi, 15",
    "je 8b",
    "sub rsp, 56",
    "mov [rsp], rsi",
    "mov [rsp + 8], rdx",
    "mov [rsp + 16], rcx",
    "mov [rsp + 24], r8",
    "mov [rsp + 32], r9",
    "mov rax, [rsp + 64]",
    "mov [rsp + 40], rax",
    "mov rsi, rsp",
    "call {paged}",
    "add rsp, 56",
    "ret",
    "9:",
    "jmp {mapping}",
    mapping = sym crate::mmap::by_number,
    guarded = sym GUARDED,
    paged = sym calls::with_paged,
    numbers = const identity::NUMBERS,
    watched = sym watched,
    location = sym errno_location,
    )
}

extern "C" fn errno_location() -> *mut c_int {
    // SAFETY: the C library's own function; it has no conditions.
    unsafe { libc::__errno_location() }
}
