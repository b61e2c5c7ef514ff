//! The thread's pointer to its runs of free memory, where the inline functions of `vellum_gc.h` find it.
//!
//! The header reads `vel_gc_local` with initial-exec addressing: two loads, no call. It starts out pointing
//! to [`EMPTY`], runs without bytes, so that a thread's first allocation falls through the ordinary test to
//! the slow path.
//!
//! Rust has no stable way to define an initial-exec thread-local that C can see. So the variable is a static
//! in a section of thread-local data, and an assembler directive declares the symbol as one of those. Rust
//! code reaches it only by the assembly below, never by name.

use crate::mutator::thread::Thread;
use crate::space::size_class::SLOTS_MAX;
use crate::trace::frames::{BOTTOM, Bottom, Frame};
use core::arch::{asm, global_asm};
use core::cell::Cell;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("vellum-gc reaches its thread's runs by x86-64 Linux thread-local addressing");

/// A run of free memory: `struct vel_gc_run` of the header.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Run {
    /// The first free byte.
    pub next: Cell<usize>,
    /// One beyond the last.
    pub end: Cell<usize>,
}

/// The runs of threads that are not known yet. Never written.
#[repr(C, align(64))]
pub(crate) struct Empty([Run; SLOTS_MAX]);

// SAFETY: it is never written: its runs are empty, so that no allocation takes from them.
unsafe impl Sync for Empty {}

pub(crate) static EMPTY: Empty = Empty([const { Run { next: Cell::new(0), end: Cell::new(0) } }; SLOTS_MAX]);

/// The variable of the header. Reached by assembly only: see the head of this file.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".tdata.vel_gc_local")]
#[used]
static vel_gc_local: &Empty = &EMPTY;
global_asm!(".type vel_gc_local, @tls_object");

/// The calling thread's frames: a variable of the header, too, which is reached in the same way.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".tdata.vel_gc_frames")]
#[used]
static vel_gc_frames: &Bottom = &BOTTOM;
global_asm!(".type vel_gc_frames, @tls_object");

/// The calling thread's variable that leads to its frames.
#[inline(always)]
pub(crate) fn frames() -> &'static Cell<*const Frame> {
    let variable: *const Cell<*const Frame>;
    // SAFETY: computes the address of the thread's own variable.
    unsafe {
        asm!(
            "mov {variable}, qword ptr [rip + vel_gc_frames@GOTTPOFF]",
            "add {variable}, qword ptr fs:[0]",
            variable = out(reg) variable,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: it lives as long as the thread, and no reference to it goes further than that.
    unsafe { &*variable }
}

/// The calling thread's record; `None` if it is not known yet.
#[inline(always)]
pub(crate) fn current() -> Option<&'static Thread> {
    let local: *const Thread;
    // SAFETY: reads the thread's own variable: its offset from the thread pointer is in the GOT.
    unsafe {
        asm!(
            "mov {local}, qword ptr [rip + vel_gc_local@GOTTPOFF]",
            "mov {local}, qword ptr fs:[{local}]",
            local = out(reg) local,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    if core::ptr::addr_eq(local, &raw const EMPTY) {
        return None;
    }
    // SAFETY: only `set_current` writes the variable, with a record, and records are never unmapped.
    Some(unsafe { &*local })
}

/// The calling thread's run of `slot`; an empty one if the thread is not known yet.
#[inline(always)]
pub(crate) fn run(slot: usize) -> &'static Run {
    let local: *const Run;
    // SAFETY: reads the thread's own variable: its offset from the thread pointer is in the GOT.
    unsafe {
        asm!(
            "mov {local}, qword ptr [rip + vel_gc_local@GOTTPOFF]",
            "mov {local}, qword ptr fs:[{local}]",
            local = out(reg) local,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    debug_assert!(slot < SLOTS_MAX);
    // SAFETY: the variable leads to EMPTY, or to a record, which begins with its runs; both have one for each
    // slot, and live for ever.
    unsafe { &*local.add(slot) }
}

/// Makes `thread` the calling thread's record, or none.
pub(crate) fn set_current(thread: Option<&'static Thread>) {
    let local = thread.map_or((&raw const EMPTY).cast(), core::ptr::from_ref::<Thread>);
    // SAFETY: writes the thread's own variable: its offset from the thread pointer is in the GOT.
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + vel_gc_local@GOTTPOFF]",
            "mov qword ptr fs:[{offset}], {local}",
            offset = out(reg) _,
            local = in(reg) local,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies the registers that a call must preserve into `registers` and returns the stack pointer. With the
/// stack above it, that is everything the caller's callers still know.
#[inline(always)]
pub(crate) fn spill(registers: &mut [usize; 6]) -> usize {
    let stack;
    // SAFETY: writes the six words it is given.
    unsafe {
        asm!(
            "mov [{to}], rbx",
            "mov [{to} + 8], rbp",
            "mov [{to} + 16], r12",
            "mov [{to} + 24], r13",
            "mov [{to} + 32], r14",
            "mov [{to} + 40], r15",
            "mov {stack}, rsp",
            to = in(reg) registers.as_mut_ptr(),
            stack = out(reg) stack,
            options(nostack, preserves_flags),
        );
    }
    stack
}

/// The thread pointer: static thread-local data lies below it.
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: by the ABI the word at fs:0 holds the thread pointer itself.
    unsafe {
        asm!("mov {pointer}, qword ptr fs:[0]", pointer = out(reg) pointer, options(pure, readonly, nostack));
    };
    pointer
}
