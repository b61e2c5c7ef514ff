//! The thread-local pointer to a thread's heap.
//!
//! In a shared library, `thread_local!` costs a call of `__tls_get_addr`, as much as the rest of `malloc`.
//! The variable is therefore an initial-exec symbol written in assembly, read by two loads ([`crate::arch`]).
//! At first it points to [`empty`], a heap of zeros whose lists are empty and whose span has no bytes. Each
//! request of a thread without a heap thus takes the slow path by the ordinary tests.

use crate::arch;
use crate::heap::Heap;
use core::arch::global_asm;

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
    // SAFETY: the thread's variable always leads to a heap, and heaps are never unmapped.
    unsafe { &*arch::thread_heap().cast::<Heap>() }
}

/// The calling thread's heap, if it has one.
pub(crate) fn current() -> Option<&'static Heap> {
    let heap = heap();
    if core::ptr::eq(heap, empty()) { inner_heap() } else { Some(heap) }
}

pub(crate) fn set_heap(heap: &'static Heap) {
    // SAFETY: it is a heap.
    unsafe { arch::set_thread_heap(core::ptr::from_ref(heap).cast()) };
}

/// The calling thread's heap behind the empty one, in the hardened mode, if it has got one.
pub(crate) fn inner_heap() -> Option<&'static Heap> {
    // SAFETY: the thread's variable is null or leads to a heap.
    unsafe { arch::inner_heap().cast::<Heap>().as_ref() }
}

/// Makes `heap` the calling thread's one behind the empty one.
pub(crate) fn set_inner_heap(heap: Option<&'static Heap>) {
    // SAFETY: it is null or a heap.
    unsafe { arch::set_thread_inner_heap(heap.map_or(core::ptr::null(), core::ptr::from_ref).cast()) };
}

/// The heap of threads that have none. Never written.
#[inline(always)]
pub(crate) fn empty() -> &'static Heap {
    // SAFETY: the static above, whose zeros are a valid heap.
    unsafe { &*arch::empty_heap().cast::<Heap>() }
}
