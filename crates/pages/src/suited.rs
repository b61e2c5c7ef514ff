//! A check that the page layer can run on this kernel.
//!
//! Tables, slabs and calls to the kernel assume pages of 4 KiB. A kernel with larger pages (16 or 64 KiB:
//! some of aarch64) refuses or widens calls for a part of one. Addresses must reach as far as those of
//! x86-64; kernels of aarch64 may be built for less (39 bits). On an unsuited kernel the page layer serves
//! nothing: the runtime leaves memory to the C library, and the collector does not start.

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
