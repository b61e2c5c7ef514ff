//! Probes for other profilers: `otel_memory:alloc` and `otel_memory:free`, as the note section
//! `.note.stapsdt` tells tracers (`perf`, `bpftrace`, and the agents of OpenTelemetry) where they are.
//!
//! A probe is one `nop`, which a tracer replaces; nobody pays for it where no block is sampled, as it lies on
//! the path of sampled blocks alone. The notes' form is that of SystemTap's `sys/sdt.h`: three addresses (of
//! the probe; of a section by which prelinking would be seen: none; of a semaphore: none) and three texts
//! (provider, name, arguments as `SIZE@OPERAND`, a negative size for signed ones).

use crate::arch;
use core::arch::asm;

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

/// A block was sampled: its address, the bytes that were asked for, and the bytes that it stands for.
#[inline(never)]
pub(super) fn alloc(address: u64, bytes: u64, stands_for: u64) {
    arch::probe!(code, "alloc", address, bytes, stands_for);
}

/// A sampled block is freed: its address.
#[inline(never)]
pub(super) fn free(address: u64) {
    arch::probe!(code, "free", address);
}
