//! The panic handler of builds without the standard library: a panic is a broken invariant and ends the
//! process. `libvellum.so` and `libvellum.a` share this file.

use core::panic::PanicInfo;
use vellum_malloc::Line;

/// Prints one line and ends the process. No path that a program can reach panics.
#[panic_handler]
fn broken(info: &PanicInfo<'_>) -> ! {
    let mut line = Line::new();
    line.text("vellum: a broken invariant");
    if let Some(place) = info.location() {
        line.text(" at ").text(place.file()).text(":").decimal(u64::from(place.line()));
    }
    line.text("\n").write();
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}
