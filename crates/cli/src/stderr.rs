//! Words on standard error that must not end the program.
//!
//! `eprintln!` panics when standard error is full or closed, and a program that panics here ends by a signal: its user would take
//! that for the result. What cannot be said is not said; the exit status still tells.

use std::fmt::Arguments;
use std::io::Write;

/// Writes a text as it is.
pub(crate) fn write(text: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// `eprintln!` that does not mind when nobody can be told.
macro_rules! say {
    ($($words:tt)*) => { $crate::stderr::write(format_args!("{}\n", format_args!($($words)*))) };
}
