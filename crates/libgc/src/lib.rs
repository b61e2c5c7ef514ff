//! `libgc.so.1`: programs written for the Boehm-Demers-Weiser collector, on Vellum's, unchanged.
//!
//! The interface is that of version 8.2, as its users know it: the same names, values and promises. Behind it
//! is the heap of `libvellum.so` (`include/vellum_gc.h`), of which there is one a process; nothing is kept
//! here but what that heap has no word for.
//!
//! ```text
//! program ─▶ libgc.so.1: GC_malloc(n) ─▶ libvellum.so: vel_gc_alloc(n + 1) ─▶ gc ─▶ pages
//! ```
//!
//! | module | what it serves |
//! | --- | --- |
//! | [`abort`] | the end of the process when there is nothing else to do |
//! | [`allocate`] | objects: making, resizing, freeing, finding |
//! | [`checked`] | `GC_debug_*`: objects that know where they were made, by their `headers` |
//! | [`checks`] | checks of pointers that a program asks for |
//! | [`collect`] | collections; `collection` is what they do beside collecting |
//! | [`disclaim`] | `gc_disclaim.h`: what the dead are asked |
//! | [`dump`] | figures, printed |
//! | [`events`] | events reported to a program and questions asked as collections go on, from the heap's [`hooks`] |
//! | [`figures`] | figures, and a look at all objects |
//! | [`finalize`] | finalizers and disappearing links |
//! | [`gcj`] | `gc_gcj.h`: objects whose class has their descriptor |
//! | [`kinds`] | `gc_mark.h`: kinds, mark procedures, other roots |
//! | [`leaks`] | what nothing refers to, where the program frees; `leak_round` |
//! | [`lock`] | the allocation lock, and `forks` |
//! | [`roots`] | static data |
//! | [`settings`] | settings and queries |
//! | [`suspend`] | single threads stopped by the program |
//! | [`threads`] | threads, `stacks`, blocking |
//! | [`toggle`] | references that are strong or weak, in [`toggle_cells`] |
//! | [`typed`] | `gc_typed.h`, by its `descriptors` |
//! | [`variables`] | exported variables |
//! | `environment` | `GC_*` variables of the environment |
//! | `records` | which threads are registered, and what ended ones returned |
//! | [`start`], `state` | the heap's first moment; whether it has come |
//! | `vel` | the functions used of `libvellum.so` |
//! | [`visitor`] | what names pointers and further roots to the collector |
//! | [`say`] | lines on standard error, and the warning procedure |
//!
//! # What holds
//! * A function that is not served is not there: a program that needs it does not start, and says which.
//! * A setting that changes nothing here is stored and returned; `docs/libgc.md` lists those.
//! * A pointer just past an object keeps it, as long as interior pointers are recognised (the default): a
//!   byte is added to each.
//! * Interior pointers always keep an object, also where the program asks for less: displacements need no
//!   registering.
//!
//! # Departures
//! Threads are known from their first allocation and need not be registered; those made by
//! `GC_pthread_create` are known from their start. Memory is given back by the page layer's rules, not by
//! counts of collections.

#![cfg_attr(panic = "abort", no_std)]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "called from C only: what its callers promise is libgc's interface"
)]
#![allow(non_snake_case, non_upper_case_globals, reason = "the names are the interface's")]

pub mod abort;
pub mod allocate;
pub mod checked;
pub mod checks;
pub mod collect;
mod collection;
mod descriptors;
pub mod disclaim;
pub mod dump;
mod environment;
pub mod events;
pub mod figures;
pub mod finalize;
mod forks;
pub mod gcj;
mod headers;
pub mod hooks;
pub mod kinds;
mod leak_round;
pub mod leaks;
pub mod lock;
mod records;
pub mod roots;
pub mod say;
pub mod settings;
mod stacks;
pub mod start;
mod state;
pub mod suspend;
pub mod threads;
pub mod toggle;
pub mod toggle_cells;
pub mod typed;
pub mod variables;
mod vel;
pub mod visitor;

/// A broken invariant. Nothing here panics on a path a program can reach.
#[cfg(panic = "abort")]
#[panic_handler]
fn broken(_: &core::panic::PanicInfo<'_>) -> ! {
    say::line(&[b"libgc: a broken invariant"]);
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}
