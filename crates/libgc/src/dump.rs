//! `GC_dump`: prints the heap's figures to standard error.

use crate::{say, vel};
use core::ffi::c_char;

/// Prints the heap's figures to standard error.
#[unsafe(no_mangle)]
pub extern "C" fn GC_dump() {
    // SAFETY: the function accepts null.
    unsafe { GC_dump_named(core::ptr::null()) };
}

/// Prints the heap's figures, under a name.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_dump_named(name: *const c_char) {
    let stats = vel::stats();
    say::line(&[b"libgc (Vellum): ", say::bytes(name)]);
    let figures: [(&[u8], u64, &[u8]); 7] = [
        (b"  collections  ", stats.collections, b""),
        (b"  partial      ", stats.partial, b""),
        (b"  heap         ", stats.heap_bytes, b" bytes"),
        (b"  alive        ", stats.live_bytes, b" bytes"),
        (b"  metadata     ", stats.metadata_bytes, b" bytes"),
        (b"  paused       ", stats.pause_ns_total / 1000, b" microseconds"),
        (b"  longest pause ", stats.pause_ns_longest / 1000, b" microseconds"),
    ];
    for (text, figure, unit) in figures {
        let mut digits = [0; 20];
        say::line(&[text, say::decimal(figure, &mut digits), unit]);
    }
}
