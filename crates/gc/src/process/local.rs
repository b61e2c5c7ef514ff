//! The thread's pointer to its runs of free memory, where the inline functions of `vellum_gc.h` find it.
//!
//! The header reads `vel_gc_local` with initial-exec addressing: two loads, no call. The initial value points
//! to [`EMPTY`], runs without bytes: a thread's first allocation takes the slow path by the ordinary test.
//!
//! Rust has no stable way to define an initial-exec thread-local that C can see. The variable is therefore a
//! static in a section of thread-local data, and an assembler directive declares the symbol as thread-local.
//! Rust code reaches it only by the machine's assembly ([`crate::process::arch`]), never by name.

use crate::process::arch;
use crate::process::frames::{BOTTOM, Bottom, Frame};
use core::arch::global_asm;
use core::cell::Cell;
use vellum_sys::Addr;

/// Slots there can be; types beyond are treated as untyped.
pub const SLOTS_MAX: usize = 1024;

/// A run of free memory: `struct vel_gc_run` of the header.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Run {
    /// The first free byte.
    pub next: Cell<Addr>,
    /// The byte after the last.
    pub end: Cell<Addr>,
}

/// The runs of threads without a record. Never written.
#[repr(C, align(64))]
pub(crate) struct Empty([Run; SLOTS_MAX]);

// SAFETY: it is never written: its runs are empty, so that no allocation takes from them.
unsafe impl Sync for Empty {}

pub(crate) static EMPTY: Empty =
    Empty([const { Run { next: Cell::new(Addr::NULL), end: Cell::new(Addr::NULL) } }; SLOTS_MAX]);

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

/// The calling thread's run of `slot`; an empty one if the thread has no record.
#[inline(always)]
pub(crate) fn run(slot: usize) -> &'static Run {
    let local = arch::local().cast::<Run>();
    debug_assert!(slot < SLOTS_MAX);
    // SAFETY: the variable leads to EMPTY, or to a record, which begins with its runs; both have one for each
    // slot, and live for ever.
    unsafe { &*local.add(slot) }
}

/// Calls `work` with the lowest address in use on the stack. During the call, the registers that a call must
/// preserve lie above that address. The stack then holds every value that the caller's callers still use.
#[inline(always)]
pub(crate) fn spilled<R>(work: impl FnOnce(usize) -> R) -> R {
    let mut registers = [0; arch::REGISTERS];
    let low = arch::spill(&mut registers).min(registers.as_ptr() as usize);
    let result = work(low);
    core::hint::black_box(&registers);
    result
}
