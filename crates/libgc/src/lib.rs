//! `libgc.so.1`: runs unchanged programs for the Boehm-Demers-Weiser collector (libgc) on Vellum's collector.
//!
//! The interface is that of version 8.2: the same names, values and guarantees. Behind it is the heap of
//! `libvellum.so` (`include/vellum_gc.h`), one per process. This library keeps only state for which that
//! heap's interface has no function.
//!
//! ```text
//! program ─▶ libgc.so.1: GC_malloc(n) ─▶ libvellum.so: vel_gc_alloc(n + 1) ─▶ gc ─▶ pages
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`abort`] | ending the process after an error that cannot be handled |
//! | [`allocate`] | allocating, resizing, freeing and finding objects |
//! | [`checked`] | `GC_debug_*`: objects with `headers` that record where they were made |
//! | [`checks`] | pointer checks that a program may call |
//! | [`collect`] | collections; `collection` has the work before and after one |
//! | [`disclaim`] | `gc_disclaim.h`: callbacks run on dead objects |
//! | [`dump`] | prints figures |
//! | [`events`] | callbacks for events of a collection, called by [`hooks`] |
//! | [`figures`] | figures, and walks over all objects |
//! | [`finalize`] | finalizers and disappearing links |
//! | [`gcj`] | `gc_gcj.h`: objects whose class has their descriptor |
//! | [`kinds`] | `gc_mark.h`: kinds and mark procedures |
//! | [`leaks`] | leak detection; `leak_round` counts the leaks |
//! | [`lock`] | the allocation lock; `forks` has its mutex |
//! | [`roots`] | static data |
//! | [`settings`] | settings and queries |
//! | [`suspend`] | suspending single threads |
//! | [`threads`] | threads, their `stacks`, blocking calls |
//! | [`toggle`] | references that are strong or weak, in [`toggle_cells`] |
//! | [`typed`] | `gc_typed.h`, with its `descriptors` |
//! | [`variables`] | exported variables |
//! | `environment` | `GC_*` variables of the environment |
//! | `records` | registered threads, and results of ended ones |
//! | [`start`], `state` | starting the heap; whether it has started |
//! | `vel` | declarations of functions of `libvellum.so` |
//! | [`visitor`] | reports pointers and further roots to the collector |
//! | [`say`] | lines on standard error, and the warning procedure |
//!
//! # Guarantees
//! * Unsupported functions are absent: a program that needs one does not start, and the loader names the
//!   function.
//! * A setting without effect here is stored and returned; `docs/libgc.md` lists those.
//! * A pointer just past an object keeps it alive while interior pointers count (the default): each object is
//!   a byte longer.
//! * Interior pointers always keep an object alive, even if the program's settings request otherwise.
//!   Displacements need no registration.
//!
//! # Departures
//! The collector finds a thread at its first allocation, so threads need no registration. `GC_pthread_create`
//! registers its threads at their start. The page layer decides when memory returns to the kernel; counts of
//! collections have no effect on that.

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
mod forms;
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

/// Ends the process: a panic is a broken invariant. No path that a program can reach panics.
#[cfg(panic = "abort")]
#[panic_handler]
fn broken(_: &core::panic::PanicInfo<'_>) -> ! {
    say::line(&[b"libgc: a broken invariant"]);
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}
