//! Lines on standard error that must not end the program.
//!
//! `eprintln!` panics when standard error is full or closed. A program that panics here ends by a signal,
//! which its user would take for the result. A line that cannot be written is lost; the exit status still
//! tells of the failure.

use std::fmt::Arguments;
use std::io::Write;

/// Writes a text as it is.
pub fn write(text: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// `eprintln!` that ignores errors.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::stderr::write(format_args!("{}\n", format_args!($($words)*))) };
}
