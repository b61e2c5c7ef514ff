//! Finds the size of the terminal, with a default if the output is not a terminal.

use rustix::termios::{Winsize, tcgetwinsize};
use std::os::fd::BorrowedFd;
pub(crate) use vellum_report::WORDS_MAX as COLUMNS;

/// The number of lines if the terminal's size is unknown.
const LINES: usize = 24;

/// Columns of the terminal on standard output; 80 elsewhere.
pub(crate) fn columns() -> usize {
    size(rustix::stdio::stdout()).map_or(COLUMNS, |size| size.ws_col.into())
}

/// Columns of the terminal on standard error; 80 elsewhere.
pub(crate) fn columns_of_stderr() -> usize {
    size(rustix::stdio::stderr()).map_or(COLUMNS, |size| size.ws_col.into())
}

/// Lines of the terminal on standard output; 24 elsewhere.
pub(crate) fn lines() -> usize {
    size(rustix::stdio::stdout()).map_or(LINES, |size| size.ws_row.into())
}

/// The columns and lines of a plot: the given ones, else the terminal's, with at most `high` lines and one
/// reserved for the prompt.
pub(crate) fn plot((width, height): (Option<u16>, Option<u16>), high: usize) -> (usize, usize) {
    let (wide, high) = (width.map_or_else(columns, usize::from), lines().saturating_sub(1).min(high));
    (wide, height.map_or(high, usize::from))
}

/// The size of a terminal; `None` if it reports 0.
fn size(terminal: BorrowedFd<'_>) -> Option<Winsize> {
    tcgetwinsize(terminal).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0)
}
