//! `libvellum.a`: Vellum's memory for C and C++ programs that are linked statically, with glibc or musl.
//!
//! A static program has no loader, so nothing can be preloaded. The program is linked with this library
//! instead, before the C library:
//!
//! ```text
//! gcc -static program.c -lvellum        musl-gcc -static program.c -lvellum
//! ```
//!
//! | module | exports |
//! | --- | --- |
//! | [`c`] | `malloc` and its family |
//! | [`stats`] | `mallinfo2`, `malloc_trim`, `mallopt` and similar functions |
//! | [`vel`] | Vellum's own interface, `include/vellum.h` |
//! | [`filter`] | `prctl`, intercepted to detect filters on system calls |
//!
//! The first three are the shared library's own source files, so each name means the same in both. C++'s
//! `operator new` comes from the C++ library, which calls `malloc`.
//!
//! The shared library intercepts more functions of the C library. Only the shared library serves the
//! program's own mappings, and has paged memory (`--frames`), the collector, heap profiles, and the counters
//! of `vellum run`. This library has no helper thread: only the shared library can end it before the program
//! drops privileges (`setuid`) or creates a namespace. Free memory is returned while the program allocates.
//!
//! Invariants:
//!
//! - Every name of the C library's `malloc` object is defined here, so that this object is never linked too.
//! - No thread is ever started.

#![cfg_attr(panic = "abort", no_std)]

#[cfg(panic = "abort")]
#[path = "../../runtime/src/broken.rs"]
mod broken;
#[path = "../../runtime/src/c.rs"]
pub mod c;
pub mod filter;
#[allow(dead_code, reason = "the shared library heeds more of them")]
#[path = "../../runtime/src/knobs.rs"]
mod knobs;
#[path = "../../runtime/src/stats.rs"]
pub mod stats;
#[path = "../../runtime/src/vel.rs"]
pub mod vel;

use vellum_pages::Pages;
use vellum_sys::{Caps, caps};

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = start;
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = end;

/// Runs before the program's own constructors; even earlier blocks are Vellum's too.
extern "C" fn start() {
    vellum_sys::owner::claim();
    let knobs = knobs::Knobs::read();
    caps::drop(Caps::HELPER);
    if knobs.disable {
        let mut line = vellum_malloc::Line::new();
        line.text("vellum: VELLUM_DISABLE=1 is ignored: the program is linked with Vellum statically\n")
            .write();
    }
    Pages::global().configure(knobs.pages);
    if knobs.harden {
        vellum_malloc::harden();
    }
    vellum_malloc::start();
    // SAFETY: the three functions are statics of the program, valid as long as it runs.
    unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
    }
}

extern "C" fn end() {
    vellum_malloc::check_quarantine();
}

unsafe extern "C" fn before_fork() {
    Pages::global().fork_approach();
    vellum_malloc::fork_prepare();
}

unsafe extern "C" fn after_fork_in_parent() {
    vellum_malloc::fork_parent();
}

unsafe extern "C" fn after_fork_in_child() {
    vellum_sys::owner::claim();
    vellum_malloc::fork_child();
}
