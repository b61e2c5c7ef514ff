//! The functions that the compiler calls for copying, clearing and comparing memory: the C library's, but not
//! by name.
//!
//! glibc chooses these for the processor when a library that names them is loaded (`STT_GNU_IFUNC`), by code
//! that must have been relocated before. A library that names no C library, as this one is one for all of
//! them, may come first in that order, and the program would end as it is loaded. So the names are this
//! library's own, and known to nobody else: a jump through a word that leads to loops as the processor has
//! them, until [`find`] has looked up the C library's.
//!
//! In assembly: the compiler makes calls of these functions of such loops.

use crate::attach;
use core::arch::global_asm;
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

unsafe extern "C" {
    safe fn vellum_plain_copy();
    safe fn vellum_plain_move();
    safe fn vellum_plain_set();
    safe fn vellum_plain_differs();
    safe fn vellum_plain_length();
}

/// Where each name jumps to.
static MEMCPY: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_copy as *mut c_void);
static MEMMOVE: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_move as *mut c_void);
static MEMSET: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_set as *mut c_void);
static BCMP: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_differs as *mut c_void);
static STRLEN: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_length as *mut c_void);

/// Looks up the C library's functions. What it does not have stays as it is.
pub(crate) fn find() {
    let all: [(&CStr, &AtomicPtr<c_void>); 5] = [
        (c"memcpy", &MEMCPY),
        (c"memmove", &MEMMOVE),
        (c"memset", &MEMSET),
        (c"bcmp", &BCMP),
        (c"strlen", &STRLEN),
    ];
    for (name, place) in all {
        if let Some(found) = attach::c_librarys(name) {
            place.store(found.cast_mut(), Relaxed);
        }
    }
}

global_asm!(
    ".macro vellum_jump name, place",
    ".pushsection .text.\\name, \"ax\", @progbits",
    ".globl \\name",
    ".hidden \\name",
    ".type \\name, @function",
    ".p2align 4",
    "\\name: jmp qword ptr [rip + \\place]",
    ".size \\name, . - \\name",
    ".popsection",
    ".endm",
    "vellum_jump memcpy, {memcpy}",
    "vellum_jump memmove, {memmove}",
    "vellum_jump memset, {memset}",
    "vellum_jump bcmp, {bcmp}",
    "vellum_jump strlen, {strlen}",
    ".purgem vellum_jump",
    ".macro vellum_begin name",
    ".globl \\name",
    ".hidden \\name",
    ".type \\name, @function",
    ".p2align 4",
    "\\name:",
    ".endm",
    ".pushsection .text.vellum_plain, \"ax\", @progbits",
    // to, from, bytes
    "vellum_begin vellum_plain_move",
    "mov rax, rdi",
    "sub rax, rsi",
    "cmp rax, rdx",
    "jae vellum_plain_copy",
    // It lies behind and overlaps: from the last byte to the first.
    "mov rax, rdi",
    "mov rcx, rdx",
    "lea rdi, [rdi + rcx - 1]",
    "lea rsi, [rsi + rcx - 1]",
    "std",
    "rep movsb",
    "cld",
    "ret",
    "vellum_begin vellum_plain_copy",
    "mov rax, rdi",
    "mov rcx, rdx",
    "rep movsb",
    "ret",
    // start, byte, bytes
    "vellum_begin vellum_plain_set",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    // one, other, bytes
    "vellum_begin vellum_plain_differs",
    "xor eax, eax",
    "2: sub rdx, 1",
    "jb 3f",
    "movzx ecx, byte ptr [rdi + rdx]",
    "cmp cl, byte ptr [rsi + rdx]",
    "je 2b",
    "mov eax, 1",
    "3: ret",
    // start
    "vellum_begin vellum_plain_length",
    "mov rax, -1",
    "2: add rax, 1",
    "cmp byte ptr [rdi + rax], 0",
    "jne 2b",
    "ret",
    ".popsection",
    ".purgem vellum_begin",
    memcpy = sym MEMCPY,
    memmove = sym MEMMOVE,
    memset = sym MEMSET,
    bcmp = sym BCMP,
    strlen = sym STRLEN,
);
