//! The thread's pointer to its runs of free memory, where the inline functions of `vellum_gc.h` find it.
//!
//! The header reads `vel_gc_local` with initial-exec addressing: two loads, no call. It starts out pointing
//! to [`EMPTY`], runs without bytes, so that a thread's first allocation falls through the ordinary test to
//! the slow path.
//!
//! Rust has no stable way to define an initial-exec thread-local that C can see. So the variable is a static
//! in a section of thread-local data, and an assembler directive declares the symbol as one of those. Rust
//! code reaches it only by the machine's assembly ([`crate::mutator::arch`]), never by name.

use crate::mutator::arch;
use crate::mutator::thread::Thread;
use crate::space::size_class::SLOTS_MAX;
use crate::trace::frames::{BOTTOM, Bottom, Frame};
use core::arch::global_asm;
use core::cell::Cell;

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
    let variable = arch::frames().cast::<Cell<*const Frame>>();
    // SAFETY: it lives as long as the thread, and no reference to it goes further than that.
    unsafe { &*variable }
}

/// The calling thread's record; `None` if it is not known yet.
#[inline(always)]
pub(crate) fn current() -> Option<&'static Thread> {
    let local = arch::local().cast::<Thread>();
    if core::ptr::addr_eq(local, &raw const EMPTY) {
        return None;
    }
    // SAFETY: only `set_current` writes the variable, with a record, and records are never unmapped.
    Some(unsafe { &*local })
}

/// The calling thread's run of `slot`; an empty one if the thread is not known yet.
#[inline(always)]
pub(crate) fn run(slot: usize) -> &'static Run {
    let local = arch::local().cast::<Run>();
    debug_assert!(slot < SLOTS_MAX);
    // SAFETY: the variable leads to EMPTY, or to a record, which begins with its runs; both have one for each
    // slot, and live for ever.
    unsafe { &*local.add(slot) }
}

/// Makes `thread` the calling thread's record, or none.
pub(crate) fn set_current(thread: Option<&'static Thread>) {
    let local = thread.map_or((&raw const EMPTY).cast(), core::ptr::from_ref::<Thread>);
    // SAFETY: it leads to the empty runs, or to a record, which begins with its runs.
    unsafe { arch::set_local(local.cast()) };
}

/// Room for the registers that a call must preserve.
pub(crate) type Registers = [usize; arch::REGISTERS];
/// No registers yet.
pub(crate) const NO_REGISTERS: Registers = [0; arch::REGISTERS];

/// Copies the registers that a call must preserve into `registers` and returns the stack pointer. With the
/// stack above it, that is everything the caller's callers still know.
#[inline(always)]
pub(crate) fn spill(registers: &mut Registers) -> usize {
    arch::spill(registers)
}
