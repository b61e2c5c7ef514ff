//! `libgc.so.1`: programs written for the Boehm-Demers-Weiser collector, on Vellum's, unchanged.
//!
//! The interface is that of version 8.2, as its users know it: the same names, values and promises. Behind it is the heap of
//! `libvellum.so` (`include/vellum_gc.h`), of which there is one a process; nothing is kept here but what that heap has no
//! word for.
//!
//! ```text
//! program ─▶ libgc.so.1: GC_malloc(n) ─▶ libvellum.so: vel_gc_alloc(n + 1) ─▶ gc ─▶ pages
//! ```
//!
//! | module | what it serves |
//! | --- | --- |
//! | [`allocate`] | objects: making, resizing, freeing, finding |
//! | [`checked`] | `GC_debug_*`: objects that know where they were made |
//! | [`checks`] | checks of pointers that a program asks for |
//! | [`collect`] | collections |
//! | [`disclaim`] | `gc_disclaim.h`: what the dead are asked |
//! | [`events`] | what a program is told and asked as collections go on |
//! | [`figures`] | figures, and a look at all objects |
//! | [`finalize`] | finalizers and disappearing links |
//! | [`gcj`] | `gc_gcj.h`: objects whose class has their descriptor |
//! | [`kinds`] | `gc_mark.h`: kinds, mark procedures, other roots |
//! | [`leaks`] | what nothing refers to, where the program frees |
//! | [`lock`] | the allocation lock |
//! | [`roots`] | static data |
//! | [`settings`] | what can be set and asked |
//! | [`suspend`] | single threads stopped by the program |
//! | [`threads`] | threads, stacks, blocking |
//! | [`toggle`] | references that are strong or weak |
//! | [`typed`] | `gc_typed.h` |
//! | [`variables`] | exported variables |
//! | `environment` | `GC_*` variables of the environment |
//! | `records` | which threads are registered, and what ended ones returned |
//! | [`start`] | the heap's first moment |
//! | `vel` | what is used of `libvellum.so` |
//! | [`say`] | lines on standard error, and the warning procedure |
//!
//! # What holds
//! * A function that is not served is not there: a program that needs it does not start, and says which.
//! * A setting that changes nothing here is kept and told when asked for; `docs/libgc.md` lists those.
//! * A pointer just past an object keeps it, as long as interior pointers are recognised (the default): a byte is added to each.
//! * Interior pointers always keep an object, also where the program asks for less: displacements need no registering.
//!
//! # Departures
//! Threads are known from their first allocation and need not be registered; those made by `GC_pthread_create` are known
//! from their start. Memory is given back by the page layer's rules, not by counts of collections.

#![cfg_attr(panic = "abort", no_std)]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "called from C only: what its callers promise is libgc's interface"
)]
#![allow(non_snake_case, non_upper_case_globals, reason = "the names are the interface's")]

pub mod allocate;
pub mod checked;
pub mod checks;
pub mod collect;
pub mod disclaim;
mod environment;
pub mod events;
pub mod figures;
pub mod finalize;
pub mod gcj;
pub mod kinds;
pub mod leaks;
pub mod lock;
mod records;
pub mod roots;
pub mod say;
pub mod settings;
pub mod start;
pub mod suspend;
pub mod threads;
pub mod toggle;
pub mod typed;
pub mod variables;
mod vel;

/// A broken invariant. Nothing here panics on a path a program can reach.
#[cfg(panic = "abort")]
#[panic_handler]
fn broken(_: &core::panic::PanicInfo<'_>) -> ! {
    say::line(&[b"libgc: a broken invariant"]);
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}
