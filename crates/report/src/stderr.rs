//! Writes to standard error without panics.
//!
//! `eprintln!` panics if standard error is full or closed. The panic would end the program by a signal, which
//! the user would take for the result of the measured program. Text that cannot be written is lost, and
//! [`is_lost`] reports it for the exit status. If the reader has closed its pipe, the text does not count as
//! lost.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static LOST: AtomicBool = AtomicBool::new(false);

/// Writes a text unchanged.
pub fn write(text: Arguments<'_>) {
    let written = std::io::stderr().lock().write_fmt(text);
    if written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Relaxed);
    }
}

/// True if a text could not be written.
pub fn is_lost() -> bool {
    LOST.load(Relaxed)
}

/// `eprintln!` that does not panic.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::stderr::write(format_args!("{}\n", format_args!($($words)*))) };
}
