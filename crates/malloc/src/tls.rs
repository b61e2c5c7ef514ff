//! The thread's pointer to its heap.
//!
//! `thread_local!` in a shared library costs a call of `__tls_get_addr`, as much as the rest of `malloc`. So
//! the variable is an initial-exec symbol written in assembly: two loads, no call, no test. It starts out
//! pointing to [`empty`], a heap of zeros whose lists are all empty and whose span has no bytes: every
//! request of a thread without a heap falls through the ordinary tests to the slow path.
//!
//! Only x86-64 is provided; another machine needs its own five lines here.

use crate::heap::Heap;
use core::arch::{asm, global_asm};

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("vellum-malloc reaches its thread's heap by x86-64 Linux thread-local addressing");

global_asm!(
    ".pushsection .bss.vellum_empty_heap,\"aw\",@nobits",
    ".balign 64",
    ".globl vellum_empty_heap",
    ".hidden vellum_empty_heap",
    ".type vellum_empty_heap,@object",
    ".size vellum_empty_heap,{bytes}",
    "vellum_empty_heap:",
    ".zero {bytes}",
    ".popsection",
    ".pushsection .tdata.vellum_heap,\"awT\",@progbits",
    ".balign 8",
    ".globl vellum_heap",
    ".hidden vellum_heap",
    ".type vellum_heap,@object",
    ".size vellum_heap,8",
    "vellum_heap:",
    ".quad vellum_empty_heap",
    ".popsection",
    ".pushsection .tbss.vellum_inner_heap,\"awT\",@nobits",
    ".balign 8",
    ".globl vellum_inner_heap",
    ".hidden vellum_inner_heap",
    ".type vellum_inner_heap,@object",
    ".size vellum_inner_heap,8",
    "vellum_inner_heap:",
    ".zero 8",
    ".popsection",
    bytes = const size_of::<Heap>(),
);

/// The calling thread's heap, or [`empty`].
#[inline(always)]
pub(crate) fn heap() -> &'static Heap {
    let heap: *const Heap;
    // SAFETY: reads the thread's own variable, which always points to a heap.
    unsafe {
        asm!(
            "mov {heap}, qword ptr [rip + vellum_heap@GOTTPOFF]",
            "mov {heap}, qword ptr fs:[{heap}]",
            heap = out(reg) heap,
            options(pure, readonly, nostack, preserves_flags),
        );
        &*heap
    }
}

/// Makes `heap` the calling thread's.
pub(crate) fn set_heap(heap: &'static Heap) {
    // SAFETY: writes the thread's own variable.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + vellum_heap@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {heap}",
            offset = out(reg) _,
            heap = in(reg) core::ptr::from_ref(heap),
            options(nostack, preserves_flags),
        );
    }
}

/// The calling thread's heap behind the empty one, in the hardened mode, if it has got one.
pub(crate) fn inner_heap() -> Option<&'static Heap> {
    let heap: *const Heap;
    // SAFETY: reads the thread's own variable, which is null or points to a heap.
    unsafe {
        asm!(
            "mov {heap}, qword ptr [rip + vellum_inner_heap@GOTTPOFF]",
            "mov {heap}, qword ptr fs:[{heap}]",
            heap = out(reg) heap,
            options(pure, readonly, nostack, preserves_flags),
        );
        heap.as_ref()
    }
}

/// Makes `heap` the calling thread's one behind the empty one.
pub(crate) fn set_inner_heap(heap: Option<&'static Heap>) {
    // SAFETY: writes the thread's own variable.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + vellum_inner_heap@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {heap}",
            offset = out(reg) _,
            heap = in(reg) heap.map_or(core::ptr::null(), core::ptr::from_ref),
            options(nostack, preserves_flags),
        );
    }
}

/// The heap of threads that have none. Never written.
#[inline(always)]
pub(crate) fn empty() -> &'static Heap {
    let heap: *const Heap;
    // SAFETY: the address of the static above, whose zeros are a valid heap.
    unsafe {
        asm!(
            "lea {heap}, [rip + vellum_empty_heap]",
            heap = out(reg) heap,
            options(pure, nomem, nostack, preserves_flags),
        );
        &*heap
    }
}
