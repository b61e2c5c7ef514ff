//! `libvellum.so`: Vellum's memory management for unmodified programs, which preload it or are linked with
//! it.
//!
//! This crate exports the functions of the other crates under C names. No other crate exports symbols, so a
//! Rust program may link the others without replacing its C library's functions.
//!
//! | module | exports |
//! | --- | --- |
//! | [`c`] | `malloc` and its family |
//! | [`cxx`] | `operator new` and `operator delete` |
//! | [`stats`] | `mallinfo2`, `malloc_trim`, `mallopt` and the like |
//! | [`mmap`](mod@mmap) | `mmap`, `munmap`, `mremap` and other functions for mappings |
//! | [`attributes`] | `ioctl` and `vmsplice`, which give memory a state that outlives its owner |
//! | [`filter`] | `prctl` and `syscall`, for filters on system calls |
//! | [`gc`] | the collector, `include/vellum_gc.h` |
//! | [`identity`] | `setuid`, `unshare` and the like, which end background threads first |
//! | [`loading`] | `dlopen`, without `RTLD_DEEPBIND` |
//! | [`lookups`] | `dlsym`, for memory functions of the C library |
//! | [`rlimit`] | `setrlimit` and `prlimit`, for limits on address space |
//! | [`signals`] | `sigaction` and `signal`, for SIGSEGV, which the collector uses |
//! | [`vel`] | Vellum's own interface, `include/vellum.h` |
//!
//! `start` runs when the library is loaded. With `attach`, `knobs` and `paging` it decides whether Vellum
//! serves the process. `board` publishes the process's counters for `vellum run`.
//!
//! The release library is built without Rust's standard library, which would add a second library
//! (`libgcc_s.so.1`) and about 100 KiB to every process. Builds that unwind (tests) include the standard
//! library. The library names no C library as a dependency: every program has one already, and naming glibc
//! would keep programs with musl from starting. It imports only functions that glibc and musl both have. All
//! others are looked up, and so are functions whose names would need a dependency (`copying`).

#![cfg_attr(panic = "abort", no_std)]

mod arch;
mod attach;
pub mod attributes;
mod board;
#[cfg(panic = "abort")]
mod broken;
pub mod c;
mod copying;
pub mod cxx;
pub mod filter;
pub mod gc;
pub mod identity;
mod knobs;
mod loaded;
pub mod loading;
pub mod lookups;
pub mod mmap;
mod paging;
pub mod rlimit;
pub mod signals;
mod start;
pub mod stats;
pub mod vel;
