//! What is said when the program misuses its memory, and the end of it.
//!
//! One line on standard error, written without allocating, then `abort`: memory whose bookkeeping is known to be
//! wrong must not be used further. What is caught always: a large block freed twice, an address inside a large block,
//! an address outside every block's space. What is caught when it shows: a small block freed twice with nothing freed or
//! allocated of its slab in between, and one freed after its whole slab went back.

use vellum_pages::Misuse;
use vellum_sys::Line;

/// Ends the process for passing `address` to `function`.
#[cold]
#[inline(never)]
pub(crate) fn refuse(function: &str, address: *const u8, misuse: Misuse) -> ! {
    let mut line = Line::new();
    line.text("vellum: ").text(function).text("(0x").hex(address as usize).text("): ");
    match misuse {
        Misuse::NotOurs => line.text("this address was never handed out, or its memory has gone back since"),
        Misuse::InsideBlock { start } => line.text("the address lies inside the block at 0x").hex(start),
        Misuse::AlreadyFree => line.text("the block is already free"),
    };
    line.text("\n").write();
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}
