//! How all of Vellum's commands begin and end: arguments, messages of failures, and exit statuses, which are
//! those of env(1).

use crate::{Style, stderr, stdout};
use std::error::Error;
use std::fmt::Display;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The command itself failed, and not the program it runs.
pub const FAILED: u8 = 125;
/// A signal ended the command: this and the signal's number.
pub const SIGNALLED: u8 = 128;

/// Whether [`failed`] was called.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// The arguments.
///
/// # Errors
/// The exit status, after the help, the version or an error was printed.
pub fn arguments<A: clap::Parser>() -> Result<A, u8> {
    A::try_parse().map_err(|error| {
        let text = error.render();
        let style = if error.use_stderr() { Style::of_stderr() } else { Style::of_stdout() };
        let mut text = if style.is_coloured() { text.ansi().to_string() } else { text.to_string() };
        if !error.use_stderr() {
            return stdout::write_all(text.as_bytes()).map_or_else(failed, |()| 0);
        }
        if let Some(source) = error.source() {
            text = text.replace(&source.to_string(), &wanted(source));
        }
        stderr::write(format_args!("{text}"));
        FAILED
    })
}

/// What an option takes whose parser refused a word: that of Rust's numbers and of their ranges says it in
/// terms of Rust.
fn wanted(refusal: &(dyn Error + 'static)) -> String {
    let said = refusal.to_string();
    if refusal.is::<ParseFloatError>() {
        return "write a number, such as 1.5".to_owned();
    }
    if let Some(error) = refusal.downcast_ref::<ParseIntError>() {
        let is_large = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
        return format!("write a {}whole number", if is_large { "smaller " } else { "" });
    }
    let Some((_, range)) = said.split_once(" is not in ") else { return said };
    match range.split_once("..").map(|(from, to)| (from, to.trim_start_matches('='))) {
        Some((from, "")) => format!("write a whole number from {from}"),
        Some((from, to)) => format!("write a whole number from {from} to {to}"),
        None => said,
    }
}

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
