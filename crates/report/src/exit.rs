//! The end of all of Vellum's commands: failure messages, and exit statuses, which are those of env(1).

use crate::stderr;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The command itself failed, and not the program it runs.
pub const FAILED: u8 = 125;
/// A signal ended the command: this and the signal's number.
pub const SIGNALLED: u8 = 128;

/// Whether [`failed`] was called.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Prints why the command failed, and returns its exit status.
pub fn failed(why: impl Display) -> u8 {
    crate::say!("error: {}", plain(&why.to_string()));
    HAS_FAILED.store(true, Relaxed);
    FAILED
}

/// The exit status of a command that ends with `status`: a program's own failure counts for more than a
/// report that could not be written.
pub fn status(status: u8) -> u8 {
    if status == 0 && (HAS_FAILED.load(Relaxed) || stderr::is_lost()) { FAILED } else { status }
}

/// A message without the system's number of an error, whose words stand before it.
fn plain(message: &str) -> String {
    let (before, after) = message.split_once(" (os error ").unwrap_or((message, ")"));
    format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest))
}
