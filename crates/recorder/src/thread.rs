//! The state of a thread: its table, and the operation that is being recorded.
//!
//! The variables are initial-exec thread-local storage written in assembly, as in `vellum-malloc`: one load
//! finds them, without a call.
//!
//! The field `now` decides in one comparison whether the fast path is allowed: it must equal the process's
//! word ([`crate::process::State`]). A thread starts with a word that no process has, so its first operation
//! takes the slow path and gets a table. A forked child and a process that unmapped a module have new words.
//! While an operation is being recorded, `now` is [`BUSY`].
//!
//! The field `guard` is the stack address of the operation being recorded, or 0. A `longjmp` (from a
//! new-handler) may leave an operation without notice. `returns` is the return address that was at `guard`:
//! if the stack has another one there, the guarded call has ended.
//!
//! Nested operations, by the allocator itself, a new-handler or a signal handler, are further down the stack.
//! They are passed on unrecorded, as they are part of the operation being timed.

use core::arch::{asm, global_asm};
use core::cell::Cell;
use vellum_wire::cost::ChunkHead;

/// The value of `now` during the recording of an operation and before the first; no process has this word.
pub(crate) const BUSY: u64 = u64::MAX;

/// A guard more than this above the frame may be on another stack, which may be unmapped. It is not read,
/// and counts as still active.
const NEAR: usize = 64 << 10;

#[repr(C)]
pub(crate) struct Thread {
    /// The table's head, slot 0; null before the first operation.
    pub(crate) table: Cell<*mut ChunkHead>,
    /// Slots of the table less one.
    pub(crate) mask: Cell<usize>,
    /// The process's word of when the table was taken, or [`BUSY`].
    pub(crate) now: Cell<u64>,
    /// The process's word, kept during the recording of an operation too.
    pub(crate) word: Cell<u64>,
    /// The epoch, in the bits where a record has it.
    pub(crate) epoch: Cell<u64>,
    /// True while this thread looks up the next definitions.
    pub(crate) resolving: Cell<u64>,
    /// The stack address of the operation in progress.
    pub(crate) guard: Cell<usize>,
    /// The state of the random number generator.
    pub(crate) random: Cell<u64>,
    /// The word at `guard` at the time when `guard` was set.
    pub(crate) returns: Cell<u64>,
}

const _: () = assert!(size_of::<Thread>() == 72);

global_asm!(
    ".pushsection .tdata.vellum_cost_thread,\"awT\",@progbits",
    ".balign 16",
    ".globl vellum_cost_thread",
    ".hidden vellum_cost_thread",
    ".type vellum_cost_thread,@object",
    ".size vellum_cost_thread,72",
    "vellum_cost_thread:",
    ".quad 0, 0",
    ".quad {busy}, {busy}",
    ".quad 0, 0, 0, 0, 0",
    ".popsection",
    busy = const BUSY,
);

#[inline(always)]
pub(crate) fn this() -> &'static Thread {
    let thread: *const Thread;
    // SAFETY: the thread's own variables, which live as long as the thread runs code.
    unsafe {
        asm!(
            "mov {thread}, qword ptr [rip + vellum_cost_thread@GOTTPOFF]",
            "add {thread}, qword ptr fs:[0]",
            thread = out(reg) thread,
            options(pure, readonly, nostack),
        );
        &*thread
    }
}

impl Thread {
    /// A random number (xorshift64*).
    pub(crate) fn next_random(&self) -> u64 {
        let mut x = self.random.get();
        if x == 0 {
            x = core::ptr::from_ref(self) as u64 | 1;
        }
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns whether an operation called from `frame` is nested in the one in progress.
    #[inline(always)]
    pub(crate) fn is_inside(&self, frame: usize) -> bool {
        let guard = self.guard.get();
        frame < guard && !(guard - frame < NEAR && self.is_left(guard))
    }

    /// True if the guarded call has left the stack. `guard` is near an address in the current stack.
    #[inline(always)]
    fn is_left(&self, guard: usize) -> bool {
        // SAFETY: the guard is at most `NEAR` above the current frame, so it is still in the mapped stack,
        // and the word there was a return address.
        let there = unsafe { (guard as *const u64).read_volatile() };
        there != self.returns.get()
    }

    /// Blocks the fast path, for an operation at `frame`.
    #[inline(always)]
    pub(crate) fn close(&self, frame: usize) {
        self.guard.set(frame);
        self.now.set(BUSY);
    }

    /// Allows the fast path again.
    #[inline(always)]
    pub(crate) fn open(&self) {
        self.guard.set(0);
        self.now.set(self.word.get());
    }

    pub(crate) fn forget_table(&self) {
        self.table.set(core::ptr::null_mut());
        self.word.set(BUSY);
        self.now.set(BUSY);
    }
}
