//! aarch64: the bodies of the functions that are written in assembly. Any call may change `x16` and `x17`, so
//! these two registers hold the jumps' targets.

use core::ffi::c_long;

/// `dlopen` with some flags cleared, by a jump: see [`crate::loading`].
macro_rules! load {
    ($kept:path, $loader:path, $find:path) => {
        core::arch::naked_asm!(
            "adrp x16, {kept}",
            "ldr w16, [x16, :lo12:{kept}]",
            "and w1, w1, w16",
            "adrp x16, {loader}",
            "ldr x16, [x16, :lo12:{loader}]",
            "cbz x16, 2f",
            "br x16",
            "2:",
            "stp x29, x30, [sp, -32]!",
            "mov x29, sp",
            "stp x0, x1, [sp, 16]",
            "bl {find}",
            "mov x16, x0",
            "ldp x0, x1, [sp, 16]",
            "ldp x29, x30, [sp], 32",
            "br x16",
            kept = sym $kept,
            loader = sym $loader,
            find = sym $find,
        )
    };
}
pub(crate) use load;

/// A jump to the target that `$choose` returns for three arguments and the caller: see [`crate::lookups`].
macro_rules! go_to {
    ($choose:path) => {
        core::arch::naked_asm!(
            "stp x29, x30, [sp, -48]!",
            "mov x29, sp",
            "stp x0, x1, [sp, 16]",
            "str x2, [sp, 32]",
            "mov x3, x30",
            "bl {choose}",
            "mov x16, x0",
            "ldp x0, x1, [sp, 16]",
            "ldr x2, [sp, 32]",
            "ldp x29, x30, [sp], 48",
            "br x16",
            choose = sym $choose,
        )
    };
}
pub(crate) use go_to;

/// A jump to Vellum's operator or the next one: see [`crate::cxx`].
macro_rules! operator {
    ($whose:path, $found:path, $own:path, $name:path, $choose:path) => {
        core::arch::naked_asm!(
            "adrp x16, {whose}",
            "ldr w16, [x16, :lo12:{whose}]",
            "cbnz w16, 2f",
            "b {own}",
            "2:",
            "adrp x16, {found}",
            "ldr x16, [x16, :lo12:{found}]",
            "cbz x16, 3f",
            "br x16",
            "3:",
            "stp x29, x30, [sp, -48]!",
            "mov x29, sp",
            "stp x0, x1, [sp, 16]",
            "str x2, [sp, 32]",
            "adrp x0, {name}",
            "add x0, x0, :lo12:{name}",
            "adrp x1, {own}",
            "add x1, x1, :lo12:{own}",
            "adrp x2, {found}",
            "add x2, x2, :lo12:{found}",
            "bl {choose}",
            "mov x16, x0",
            "ldp x0, x1, [sp, 16]",
            "ldr x2, [sp, 32]",
            "ldp x29, x30, [sp], 48",
            "br x16",
            whose = sym $whose,
            found = sym $found,
            own = sym $own,
            name = sym $name,
            choose = sym $choose,
        )
    };
}
pub(crate) use operator;

/// Tries again after each call of a handler; without a handler, throws: see [`crate::cxx`].
macro_rules! try_or_throw {
    ($try_once:path, $new_handler:path, $thrower:path) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "stp x29, x30, [sp, -32]!",
            ".cfi_def_cfa_offset 32",
            ".cfi_offset x29, -32",
            ".cfi_offset x30, -24",
            "mov x29, sp",
            "stp x19, x20, [sp, 16]",
            ".cfi_offset x19, -16",
            ".cfi_offset x20, -8",
            "mov x19, x0",
            "mov x20, x1",
            "2:",
            "mov x0, x19",
            "mov x1, x20",
            "bl {try_once}",
            "cbnz x0, 3f",
            "bl {new_handler}",
            "cbz x0, 4f",
            "blr x0",
            "b 2b",
            "3:",
            ".cfi_remember_state",
            "ldp x19, x20, [sp, 16]",
            "ldp x29, x30, [sp], 32",
            ".cfi_restore x19",
            ".cfi_restore x20",
            ".cfi_restore x29",
            ".cfi_restore x30",
            ".cfi_def_cfa_offset 0",
            "ret",
            // No handler: leave as if the caller had called the thrower.
            "4:",
            ".cfi_restore_state",
            "bl {thrower}",
            "mov x16, x0",
            "ldp x19, x20, [sp, 16]",
            "ldp x29, x30, [sp], 32",
            ".cfi_restore x19",
            ".cfi_restore x20",
            ".cfi_restore x29",
            ".cfi_restore x30",
            ".cfi_def_cfa_offset 0",
            "br x16",
            ".cfi_endproc",
            try_once = sym $try_once,
            new_handler = sym $new_handler,
            thrower = sym $thrower,
        )
    };
}
pub(crate) use try_or_throw;

/// `syscall`: see [`crate::filter`].
macro_rules! system_call {
    ($mapping:path, $watched:path, $location:path) => {
        core::arch::naked_asm!(
            "cmp x0, {known}",
            "b.hs 2f",
            "adrp x16, {kinds}",
            "add x16, x16, :lo12:{kinds}",
            "ldrb w16, [x16, x0]",
            "cmp w16, {is_watched}",
            "b.ne 3f",
            "b {watched}",
            "3:",
            "cmp w16, {is_mapping}",
            "b.ne 2f",
            "b {mapping}",
            "2:",
            "mov x8, x0",
            "mov x0, x1",
            "mov x1, x2",
            "mov x2, x3",
            "mov x3, x4",
            "mov x4, x5",
            "mov x5, x6",
            "svc 0",
            "cmn x0, 4095",
            "b.hs 6f",
            "ret",
            "6:",
            "stp x29, x30, [sp, -32]!",
            "mov x29, sp",
            "str x0, [sp, 16]",
            "bl {location}",
            "ldr x1, [sp, 16]",
            "neg w1, w1",
            "str w1, [x0]",
            "mov x0, -1",
            "ldp x29, x30, [sp], 32",
            "ret",
            mapping = sym $mapping,
            kinds = sym $crate::arch::KINDS,
            known = const $crate::arch::KNOWN,
            is_watched = const $crate::arch::WATCHED,
            is_mapping = const $crate::arch::MAPPING,
            watched = sym $watched,
            location = sym $location,
        )
    };
}
pub(crate) use system_call;

/// System calls below this number may have a kind.
pub(crate) const KNOWN: usize = 463;
/// Kind: changes the identity, or sets a filter.
pub(crate) const WATCHED: u8 = 1;
/// Kind: about mappings.
pub(crate) const MAPPING: u8 = 2;

/// The kind of each system call; 0 for most.
pub(crate) static KINDS: [u8; KNOWN] = {
    const fn mark(mut kinds: [u8; KNOWN], kind: u8, numbers: &[c_long]) -> [u8; KNOWN] {
        let mut index = 0;
        while index < numbers.len() {
            kinds[numbers[index] as usize] = kind;
            index += 1;
        }
        kinds
    }
    let watched = [
        libc::SYS_setuid,
        libc::SYS_setgid,
        libc::SYS_setreuid,
        libc::SYS_setregid,
        libc::SYS_setgroups,
        libc::SYS_setresuid,
        libc::SYS_setresgid,
        libc::SYS_setfsuid,
        libc::SYS_setfsgid,
        libc::SYS_capset,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_landlock_restrict_self,
        libc::SYS_prctl,
        libc::SYS_seccomp,
        libc::SYS_ioctl,
        libc::SYS_mbind,
        libc::SYS_vmsplice,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_register,
        libc::SYS_mseal,
    ];
    let mapping = [
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_pkey_mprotect,
        libc::SYS_madvise,
        libc::SYS_mlock,
        libc::SYS_mlock2,
        libc::SYS_mlockall,
    ];
    mark(mark([0; KNOWN], WATCHED, &watched), MAPPING, &mapping)
};

/// Copies and compares byte by byte: see [`crate::copying`].
macro_rules! copying {
    ($memcpy:path, $memmove:path, $memset:path, $bcmp:path, $strlen:path) => {
        core::arch::global_asm!(
            ".macro vellum_jump name, place",
            ".pushsection .text.\\name, \"ax\", @progbits",
            ".globl \\name",
            ".hidden \\name",
            ".type \\name, @function",
            ".p2align 4",
            "\\name: adrp x16, \\place",
            "ldr x16, [x16, :lo12:\\place]",
            "br x16",
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
            "sub x3, x0, x1",
            "cmp x3, x2",
            "b.hs vellum_plain_copy",
            // The target is behind the source and overlaps it: copy backwards.
            "2: cbz x2, 3f",
            "sub x2, x2, 1",
            "ldrb w3, [x1, x2]",
            "strb w3, [x0, x2]",
            "b 2b",
            "3: ret",
            "vellum_begin vellum_plain_copy",
            "mov x4, xzr",
            "2: cmp x4, x2",
            "b.eq 3f",
            "ldrb w3, [x1, x4]",
            "strb w3, [x0, x4]",
            "add x4, x4, 1",
            "b 2b",
            "3: ret",
            // start, byte, bytes
            "vellum_begin vellum_plain_set",
            "2: cbz x2, 3f",
            "sub x2, x2, 1",
            "strb w1, [x0, x2]",
            "b 2b",
            "3: ret",
            // one, other, bytes
            "vellum_begin vellum_plain_differs",
            "2: cbz x2, 3f",
            "sub x2, x2, 1",
            "ldrb w3, [x0, x2]",
            "ldrb w4, [x1, x2]",
            "cmp w3, w4",
            "b.eq 2b",
            "mov w0, 1",
            "ret",
            "3: mov w0, wzr",
            "ret",
            // start
            "vellum_begin vellum_plain_length",
            "mov x1, x0",
            "2: ldrb w2, [x1], 1",
            "cbnz w2, 2b",
            "sub x0, x1, x0",
            "sub x0, x0, 1",
            "ret",
            ".popsection",
            ".purgem vellum_begin",
            memcpy = sym $memcpy,
            memmove = sym $memmove,
            memset = sym $memset,
            bcmp = sym $bcmp,
            strlen = sym $strlen,
        );
    };
}
pub(crate) use copying;

// The standard library's core is compiled for unwinding, and its tables name this function. GNU's linker,
// unlike LLVM's, keeps tables of code that is left out. Nothing unwinds through this library: a panic ends
// the process.
core::arch::global_asm!(
    ".pushsection .text.rust_eh_personality, \"ax\", @progbits",
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality, @function",
    "rust_eh_personality: brk 1",
    ".size rust_eh_personality, . - rust_eh_personality",
    ".popsection",
);
