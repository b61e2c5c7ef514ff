//! `libvellum.so`: Vellum's memory for unmodified programs, by preloading or by linking.
//!
//! Everything that works lives in the crates below; this one gives it C names. It is the only crate that
//! exports symbols, so that a Rust program may link the others without its C library's functions being
//! replaced.
//!
//! | module | exports |
//! | --- | --- |
//! | [`c`] | `malloc` and its family |
//! | [`cxx`] | `operator new` and `operator delete` |
//! | [`stats`] | `mallinfo2`, `malloc_trim`, `mallopt` and their like |
//! | [`mmap`](mod@mmap) | `mmap`, `munmap`, `mremap` and what changes mappings |
//! | [`attributes`] | `ioctl` and `vmsplice`, watched for states that memory keeps |
//! | [`filter`] | `prctl` and `syscall`, watched for filters on system calls |
//! | [`gc`] | the collector, `include/vellum_gc.h` |
//! | [`identity`] | `setuid`, `unshare` and their kin, before which the helper is ended |
//! | [`loading`] | `dlopen`, without `RTLD_DEEPBIND` |
//! | [`lookups`] | `dlsym`, for memory functions by the C library's handle |
//! | [`rlimit`] | `setrlimit` and `prlimit`, watched for limits on address space |
//! | [`signals`] | `sigaction` and `signal`, for SIGSEGV, which the collector may need |
//! | [`vel`] | Vellum's own interface, `include/vellum.h` |
//!
//! `start` runs when the library is loaded and decides, with `attach`, `knobs` and `paging`, whether Vellum
//! serves the process; `board` counts it where `vellum run` can see.
//!
//! The release library is built without the standard library: it would bring a second library to load
//! (`libgcc_s.so.1`) and some hundred KiB into every process. Builds that unwind (tests) have it. Neither
//! does the library name the C library it needs: every program it is loaded into has one, and the name would
//! stop programs that have another (musl) from starting. It uses only functions that both have; what only one
//! has is looked up, and so is what must not be named without it (`copying`).

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
