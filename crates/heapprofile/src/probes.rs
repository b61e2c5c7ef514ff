//! Probes for other profilers: `otel_memory:alloc` and `otel_memory:free`. Tracers (`perf`, `bpftrace`, the
//! agents of OpenTelemetry) find them by the note section `.note.stapsdt`.
//!
//! A probe is one `nop`, which a tracer replaces. Only the path of sampled blocks has probes, so they cost
//! nothing while no block is sampled. A note is laid out as in SystemTap's `sys/sdt.h`: three addresses and
//! three texts. The first address is the probe's. The other two are 0: they are for prelinking and for a
//! semaphore. The texts are provider, name, and arguments (`SIZE@OPERAND`, negative if signed).

use core::arch::asm;

/// The registers of a probe's words, in the notation of its note and of `asm!`.
#[cfg(target_arch = "x86_64")]
macro_rules! probe {
    ($code:ident, $name:literal, $first:expr) => {
        $code!($name, "8@%rdi", "rdi" = $first)
    };
    ($code:ident, $name:literal, $first:expr, $second:expr, $third:expr) => {
        $code!($name, "8@%rdi 8@%rsi 8@%rdx", "rdi" = $first, "rsi" = $second, "rdx" = $third)
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! probe {
    ($code:ident, $name:literal, $first:expr) => {
        $code!($name, "8@x0", "x0" = $first)
    };
    ($code:ident, $name:literal, $first:expr, $second:expr, $third:expr) => {
        $code!($name, "8@x0 8@x1 8@x2", "x0" = $first, "x1" = $second, "x2" = $third)
    };
}

/// A note about a probe of such a name and arguments, and the probe.
macro_rules! code {
    ($name:literal, $arguments:literal, $($register:tt = $value:expr),*) => {
        // SAFETY: the code is one instruction that does nothing; all else goes to sections of notes.
        unsafe {
            asm!(
                "990: nop",
                ".pushsection .note.stapsdt,\"\",\"note\"",
                ".balign 4",
                ".4byte 992f-991f, 994f-993f, 3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b",
                ".8byte 0, 0",
                ".asciz \"otel_memory\"",
                concat!(".asciz \"", $name, "\""),
                concat!(".asciz \"", $arguments, "\""),
                "994: .balign 4",
                ".popsection",
                $(in($register) $value,)*
                options(nostack, preserves_flags),
            );
        }
    };
}

/// A block was sampled: its address, the requested bytes, and the bytes that it stands for.
#[inline(never)]
pub(super) fn alloc(address: u64, bytes: u64, stands_for: u64) {
    probe!(code, "alloc", address, bytes, stands_for);
}

/// A sampled block is freed: its address.
#[inline(never)]
pub(super) fn free(address: u64) {
    probe!(code, "free", address);
}
