//! Parses the command lines of all of Vellum's commands, and prints messages for wrong arguments.

use crate::exit::{FAILED, failed};
use crate::{Style, stderr, stdout};
use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

/// Parses the command line.
///
/// # Errors
/// The exit status, after the help, the version or an error was printed.
pub fn parse<A: clap::Parser>() -> Result<A, u8> {
    A::try_parse().map_err(|error| {
        let text = error.render();
        let style = if error.use_stderr() { Style::of_stderr() } else { Style::of_stdout() };
        let mut text = if style.is_coloured() { text.ansi().to_string() } else { text.to_string() };
        if !error.use_stderr() {
            return stdout::write_all(text.as_bytes()).map_or_else(failed, |()| 0);
        }
        // The reason follows the refused word, and may be the same text.
        if let Some(source) = error.source()
            && let reason = source.to_string()
            && let Some(at) = text.rfind(&reason)
        {
            text.replace_range(at..at + reason.len(), &wanted(source));
        }
        stderr::write(format_args!("{text}"));
        FAILED
    })
}

/// The accepted values of an option that refused a word. The messages of Rust's number parsers use terms of
/// Rust, so they are replaced.
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
