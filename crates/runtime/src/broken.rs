//! The end of a process in which an invariant is broken: a panic, where there is no standard library. Both of
//! Vellum's libraries of `malloc` have this file.

use core::panic::PanicInfo;
use vellum_malloc::Line;

/// One line, and the end. Nothing in Vellum panics on a path a program can reach.
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
