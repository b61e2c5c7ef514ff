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
//! | [`attributes`] | `ioctl`, watched for states that memory keeps |
//! | [`aio`] | asynchronous input and output, for paged memory |
//! | [`calls`] | some two hundred functions that hand the kernel a path or a structure, for paged memory |
//! | [`filter`] | `prctl` and `syscall`, watched for filters on system calls |
//! | [`gc`] | the collector, `include/vellum_gc.h` |
//! | [`identity`] | `setuid`, `unshare` and their kin, before which the helper is ended |
//! | [`loading`] | `dlopen`, without `RTLD_DEEPBIND` |
//! | [`locks`] | `pthread_mutex_init` and its kin, for paged memory |
//! | [`lookups`] | `dlsym`, for memory functions by the C library's handle |
//! | [`rlimit`] | `setrlimit` and `prlimit`, watched for limits on address space |
//! | [`signals`] | `sigaction` and `signal`, for SIGSEGV, which the collector may need |
//! | [`streams`] | `fread`, `fwrite` and their kin, for paged memory |
//! | [`transfers`], [`messages`] | `read`, `write`, `recv`, `send` and their kin, for paged memory |
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

pub mod aio;
mod arch;
mod attach;
pub mod attributes;
mod board;
mod bounce;
#[cfg(panic = "abort")]
mod broken;
pub mod c;
pub mod calls;
mod copying;
pub mod cxx;
pub mod filter;
pub mod gc;
pub mod identity;
mod jump;
mod knobs;
mod loaded;
pub mod loading;
pub mod locks;
pub mod lookups;
pub mod messages;
pub mod mmap;
mod paging;
mod pieces;
pub mod rlimit;
mod shadow;
pub mod signals;
mod start;
pub mod stats;
mod stdio;
pub mod streams;
pub mod transfers;
pub mod vel;
