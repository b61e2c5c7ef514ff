//! `libvellum_cost.so`: a preloaded library that records the cost of a program's memory operations.
//!
//! The library is preloaded in front of `libvellum.so` (or of any allocator), so that the runtime's own paths
//! stay unchanged. Each exported function finds the **record** of its caller and operation and increments its
//! count. The function then calls the next definition of the same name, and times some of the calls. Records
//! are in the **ledger**, a file in memory that `vellum cost` maps too ([`vellum_wire::cost`]): a killed
//! program loses nothing.
//!
//! ```text
//! program ─▶ malloc (entry) ─▶ thread's table: (return address, malloc ≤64 B) ─▶ record.count += 1
//!                │                  │ no record: walk the stack ─ modules ─ query the command
//!                ▼                  ▼
//!           next malloc         new record
//! ```
//!
//! `vellum heap` also records stacks (`vellum-heapprofile`); common code is in `vellum-stacks`. The recorders
//! count in different ways, as they answer different questions. This library counts **every** operation, and
//! an operation takes a few nanoseconds. The usual path must therefore be one table look-up by the return
//! address: no walk, no lock. A walk ends at the first frame of the user's own source, which only the command
//! can recognise. A heap profile keeps the **live set**: each block's whole stack, from its allocation to its
//! release. Only for samples is that cheap enough.
//!
//! | module | concept |
//! | --- | --- |
//! | [`entry`] | the C functions, and how each finds its caller |
//! | [`cxx`] | `operator new` and `operator delete` |
//! | `next` | the definitions that come after ours |
//! | `early` | memory for the loader while these definitions are being looked up |
//! | `thread` | the thread's table, in thread-local storage |
//! | `table`, `record` | finding, adding and updating records |
//! | `timing` | the choice of the operations to time, and the timing |
//! | `walk`, `memo` | the way up the stack, from a library's frame to the user's |
//! | `python` | lines of Python on the stack |
//! | `modules`, `ask` | facts about an instruction, computed once |
//! | `process` | the ledger's mapping, this process's part of it, forks |
//! | `attach`, `start` | threads' tables; the library's initializer |
//! | `own`, `spent` | the cost of recording itself |
//! | `moved` | whether `realloc` copied a block that it moved |
//!
//! Rules:
//!
//! - The library never allocates from the allocator it records.
//! - It takes no lock while it waits for another thread or process.
//! - Its usual path makes no system call.
//! - It gives up counting rather than disturb the program.
//! - It is built without the standard library and names no C library, like the runtime.

#![cfg_attr(panic = "abort", no_std)]

mod ask;
mod asked;
mod attach;
pub mod cxx;
mod early;
pub mod entry;
mod memo;
mod modules;
mod moved;
mod next;
mod own;
mod process;
mod python;
mod record;
mod spent;
mod start;
mod table;
mod thread;
mod timing;
mod walk;

/// Aborts: a panic is a bug in this library, as no path that a program can reach panics.
#[cfg(panic = "abort")]
#[panic_handler]
fn broken(_: &core::panic::PanicInfo<'_>) -> ! {
    process::say(b"vellum cost: a broken invariant in the recorder\n");
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}
