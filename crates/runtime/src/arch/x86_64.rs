//! x86-64: the bodies of the functions that are written in assembly.

/// `dlopen` with some flags cleared, by a jump: see [`crate::loading`].
macro_rules! load {
    ($kept:path, $loader:path, $find:path) => {
        core::arch::naked_asm!(
            "and esi, [rip + {kept}]",
            "mov rax, [rip + {loader}]",
            "test rax, rax",
            "jz 2f",
            "jmp rax",
            "2:",
            "push rdi",
            "push rsi",
            "sub rsp, 8",
            "call {find}",
            "add rsp, 8",
            "pop rsi",
            "pop rdi",
            "jmp rax",
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
            "push rdi",
            "push rsi",
            "push rdx",
            "mov rcx, [rsp + 24]",
            "call {choose}",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp rax",
            choose = sym $choose,
        )
    };
}
pub(crate) use go_to;

/// A jump to Vellum's operator or the next one: see [`crate::cxx`].
macro_rules! operator {
    ($whose:path, $found:path, $own:path, $name:path, $choose:path) => {
        core::arch::naked_asm!(
            "cmp dword ptr [rip + {whose}], 0",
            "jne 2f",
            "jmp {own}",
            "2:",
            "mov rax, [rip + {found}]",
            "test rax, rax",
            "jz 3f",
            "jmp rax",
            "3:",
            "push rdi",
            "push rsi",
            "push rdx",
            "lea rdi, [rip + {name}]",
            "lea rsi, [rip + {own}]",
            "lea rdx, [rip + {found}]",
            "call {choose}",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp rax",
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
            "push rbx",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset rbx, 0",
            "push r12",
            ".cfi_adjust_cfa_offset 8",
            ".cfi_rel_offset r12, 0",
            "sub rsp, 8",
            ".cfi_adjust_cfa_offset 8",
            "mov rbx, rdi",
            "mov r12, rsi",
            "2:",
            "mov rdi, rbx",
            "mov rsi, r12",
            "call {try_once}",
            "test rax, rax",
            "jnz 3f",
            "call {new_handler}",
            "test rax, rax",
            "jz 4f",
            "call rax",
            "jmp 2b",
            "3:",
            ".cfi_remember_state",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "pop r12",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_restore r12",
            "pop rbx",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_restore rbx",
            "ret",
            // No handler: leave as if the caller had called the thrower.
            "4:",
            ".cfi_restore_state",
            "call {thrower}",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "pop r12",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_restore r12",
            "pop rbx",
            ".cfi_adjust_cfa_offset -8",
            ".cfi_restore rbx",
            "jmp rax",
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
            // Calls that change the identity or set a filter: the numbers of `NUMBERS` and five others.
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
            // Calls that give memory a lasting state: the numbers of `attributes`.
            "cmp rdi, 16",
            "je {watched}",
            "cmp rdi, 237",
            "je {watched}",
            "cmp rdi, 278",
            "je {watched}",
            "cmp rdi, 323",
            "je {watched}",
            "cmp rdi, 427",
            "je {watched}",
            "cmp rdi, 462",
            "je {watched}",
            "cmp rdi, 9",
            "je {mapping}",
            "cmp rdi, 10",
            "je {mapping}",
            "cmp rdi, 11",
            "je {mapping}",
            "cmp rdi, 25",
            "je {mapping}",
            "cmp rdi, 28",
            "je {mapping}",
            "cmp rdi, 149",
            "je {mapping}",
            "cmp rdi, 151",
            "je {mapping}",
            "cmp rdi, 325",
            "je {mapping}",
            "cmp rdi, 329",
            "je {mapping}",
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
            mapping = sym $mapping,
            numbers = const $crate::arch::NUMBERS,
            watched = sym $watched,
            location = sym $location,
        )
    };
}
pub(crate) use system_call;

// The numbers in `system_call`.
const _: () = assert!(libc::SYS_seccomp == 317 && libc::SYS_prctl == 157 && libc::PR_SET_SECCOMP == 22);
const _: () = assert!(libc::SYS_ioctl == 16 && libc::SYS_mbind == 237 && libc::SYS_vmsplice == 278);
const _: () =
    assert!(libc::SYS_userfaultfd == 323 && libc::SYS_io_uring_register == 427 && libc::SYS_mseal == 462);
const _: () = assert!(libc::SYS_mmap == 9 && libc::SYS_mprotect == 10 && libc::SYS_munmap == 11);
const _: () = assert!(libc::SYS_mremap == 25 && libc::SYS_madvise == 28 && libc::SYS_mlock == 149);
const _: () = assert!(libc::SYS_mlockall == 151 && libc::SYS_mlock2 == 325 && libc::SYS_pkey_mprotect == 329);

/// The numbers from 105 to 126 that [`crate::identity::by_number`] handles, as bits.
pub(crate) const NUMBERS: u32 = {
    let numbers = [
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
    ];
    let (mut bits, mut index) = (0, 0);
    while index < numbers.len() {
        bits |= 1 << (numbers[index] - libc::SYS_setuid);
        index += 1;
    }
    bits
};

const _: () = assert!(
    libc::SYS_setuid == 105
        && libc::SYS_capset == 126
        && libc::SYS_unshare == 272
        && libc::SYS_setns == 308
        && libc::SYS_landlock_restrict_self == 446
);

/// Copies and compares with the processor's string instructions: see [`crate::copying`].
macro_rules! copying {
    ($memcpy:path, $memmove:path, $memset:path, $bcmp:path, $strlen:path) => {
        core::arch::global_asm!(
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
            // The target is behind the source and overlaps it: copy backwards.
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
            memcpy = sym $memcpy,
            memmove = sym $memmove,
            memset = sym $memset,
            bcmp = sym $bcmp,
            strlen = sym $strlen,
        );
    };
}
pub(crate) use copying;
