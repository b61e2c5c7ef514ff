//! Ends Vellum's commands: prints failures, and defines the exit statuses (those of env(1)).

use crate::stderr;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The exit status if the command itself failed, and not the program that it runs.
pub const FAILED: u8 = 125;
/// The exit status if a signal ended the command: this plus the signal's number.
pub const SIGNALLED: u8 = 128;

/// True after [`failed`] was called.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Prints why the command failed, and returns its exit status.
pub fn failed(why: impl Display) -> u8 {
    crate::say!("error: {}", plain(&why.to_string()));
    HAS_FAILED.store(true, Relaxed);
    FAILED
}

/// The exit status of a command that ends with `status`. A failure of the program takes precedence over a
/// report that could not be written.
pub fn status(status: u8) -> u8 {
    if status == 0 && (HAS_FAILED.load(Relaxed) || stderr::is_lost()) { FAILED } else { status }
}

/// A message without the error number of the system, which the words before it explain.
fn plain(message: &str) -> String {
    let (before, after) = message.split_once(" (os error ").unwrap_or((message, ")"));
    format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest))
}
