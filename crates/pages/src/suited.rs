//! Whether this kernel is one that the page layer is made for.
//!
//! Pages are of 4 KiB throughout: tables, slabs and what is given back are counted in them, and a kernel of
//! larger ones (16 or 64 KiB: some of aarch64) refuses or widens calls about a part of its own. Addresses of
//! a program reach as far as x86-64's, which kernels of aarch64 may be built without (39 bits). Where either
//! is not so, nothing is served: the runtime leaves memory to the C library, the collector does not start.

use rustix::io::Errno;
use vellum_sys::{Addr, PAGE, Span, host, map};

/// Where arenas are placed: above position-independent executables and their heaps (from 85 TiB on) and the
/// random hints of language runtimes (below 64 TiB), below the libraries and what else the kernel places
/// (down from 128 TiB).
pub(crate) const LOWEST: Addr = Addr::new(96 << 40);

/// Whether memory can be had here.
pub fn is_suited() -> bool {
    host::page_bytes() == PAGE && reaches(Span::new(LOWEST, PAGE))
}

/// Whether a program can have memory at `place`.
fn reaches(place: Span) -> bool {
    // On x86-64 it always can.
    if cfg!(target_arch = "x86_64") {
        return true;
    }
    match map::reserve(place) {
        // SAFETY: reserved a moment ago.
        Ok(()) => unsafe { map::release(place) }.is_ok(),
        Err(errno) => errno == Errno::EXIST,
    }
}
