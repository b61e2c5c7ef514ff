//! A check that the page layer can run on this kernel.
//!
//! Pages are of 4 KiB throughout, in tables, slabs and memory that is given back. A kernel with larger pages
//! (16 or 64 KiB: some of aarch64) refuses or widens calls for a part of one. Addresses must reach as far as
//! those of x86-64, for which kernels of aarch64 may not be built (39 bits). On other kernels nothing is
//! served: the runtime leaves memory to the C library, and the collector does not start.

use rustix::io::Errno;
use vellum_sys::{Addr, PAGE, Span, host, map};

/// The lowest place for arenas: above position-independent executables and their heaps (from 85 TiB on) and
/// the random hints of language runtimes (below 64 TiB), below libraries and the kernel's other mappings
/// (down from 128 TiB).
pub(crate) const LOWEST: Addr = Addr::new(96 << 40);

/// True if the page layer can run here.
pub fn is_suited() -> bool {
    host::page_bytes() == PAGE && reaches(Span::new(LOWEST, PAGE))
}

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
