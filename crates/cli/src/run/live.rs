//! The status line that `vellum run` shows during a long run.
//!
//! The terminal belongs to the program. A line drawn at the cursor would end up inside the program's next
//! output. The status line is therefore drawn in the row *below* the cursor, and the cursor then returns:
//!
//! ```text
//! program's last output▮                 the cursor, where the program's next output goes
//!   12.3 s  resident 412 MiB ...         the status line, erased before anything else
//! ```
//!
//! The line is drawn only under these conditions:
//!
//! - The run has lasted [`LIVE_AFTER`].
//! - Standard error is a terminal in line mode, and this command is in its foreground process group. A
//!   program that switched the mode, such as an editor, draws the whole screen.
//! - If the program's output goes to the same terminal, the program and its children have made no write call
//!   for [`QUIET`], according to `/proc/PID/io`. If that file cannot be read, there is no line.

use crate::screen;
use rustix::fs::fstat;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, isatty, tcgetattr, tcgetpgrp};
use std::time::Duration;
use vellum_process::{Meanwhile, Now};
use vellum_report::units;

/// Pages read from the store per second above which paging may slow a program down.
pub(super) const SLOW_READS: f64 = 200.0;
/// A run shorter than this has no live line.
const LIVE_AFTER: Duration = Duration::from_secs(1);
/// The time without a write by the job before the line is drawn on a shared terminal.
const QUIET: Duration = Duration::from_secs(1);
/// The interval between redraws.
const REDRAW: Duration = Duration::from_millis(200);
/// The window of the fault rate.
const RATE_WINDOW: Duration = Duration::from_secs(1);

/// Makes a row below the cursor (scrolling if necessary), saves the cursor, and moves to that row.
const BELOW: &str = "\x1bD\x1b[A\x1b7\x1b[B\r";
/// Clears to the end of the row, and returns to the saved cursor.
const BACK: &str = "\x1b[K\x1b8";
/// Clears from the cursor to the end of the screen.
const ERASE: &str = "\x1b[J";

#[derive(Debug)]
pub(crate) struct Live {
    /// The program's output goes to the same terminal, so that the job's write calls must be counted.
    pub(super) shared: bool,
    shown: bool,
    drawn_at: Duration,
    writes: Option<u64>,
    quiet_since: Duration,
    rate_from: (Duration, u64),
    rate: f64,
}

impl Live {
    /// A live line, if standard error is a terminal that can show one.
    pub(crate) fn on_stderr() -> Option<Live> {
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let able = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        if !(able && isatty(err)) {
            return None;
        }
        let device = |fd| fstat(fd).map(|stat| (stat.st_rdev, stat.st_ino)).ok();
        let shared = isatty(out) && device(out) == device(err);
        Some(Live {
            shared,
            shown: false,
            drawn_at: Duration::ZERO,
            writes: None,
            quiet_since: Duration::ZERO,
            rate_from: (Duration::ZERO, 0),
            rate: 0.0,
        })
    }

    /// Draws or erases the line, depending on the conditions.
    pub(crate) fn update(&mut self, what: Meanwhile, now: &Now) {
        let at = now.point.at;
        if now.writes != self.writes {
            (self.writes, self.quiet_since) = (now.writes, at);
        }
        let quiet = !self.shared || (self.writes.is_some() && at.saturating_sub(self.quiet_since) >= QUIET);
        let wanted = what == Meanwhile::Tick && at >= LIVE_AFTER && quiet && terminal_is_ours();
        if !wanted {
            self.erase();
        } else if !self.shown || at.saturating_sub(self.drawn_at) >= REDRAW {
            self.draw(now);
        }
    }

    fn draw(&mut self, now: &Now) {
        let point = &now.point;
        let window = point.at.saturating_sub(self.rate_from.0);
        if window >= RATE_WINDOW {
            let faults = point.minor_faults + point.major_faults;
            self.rate = faults.saturating_sub(self.rate_from.1) as f64 / window.as_secs_f64();
            self.rate_from = (point.at, faults);
        }
        // One column short: a full row would wrap.
        let text = line(now, self.rate, screen::columns_of_stderr().saturating_sub(1));
        put(&format!("{BELOW}\x1b[2m{text}\x1b[0m{BACK}"));
        (self.shown, self.drawn_at) = (true, point.at);
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.shown) {
            put(ERASE);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.erase();
    }
}

/// The line's text in at most `columns`: its most important parts first, as many as fit.
fn line(now: &Now, faults_per_second: f64, columns: usize) -> String {
    let point = &now.point;
    let resident = units::bytes(point.resident.0);
    let mut parts = vec![format!("  vellum  {}", units::time(point.at)), format!("resident {resident}")];
    let read = point.paged_in as f64 / point.at.as_secs_f64();
    if read > SLOW_READS {
        parts.push(format!("pages in {}/s", units::count(read as u64)));
    }
    parts.extend([
        format!("peak {}", units::bytes(now.peak.0)),
        format!("{} faults/s", units::count(faults_per_second as u64)),
    ]);
    if point.extents > 0 {
        parts.push(format!("cached {}", units::bytes(point.cached.0)));
    }
    if point.processes > 1 {
        parts.push(format!("{} processes", point.processes));
    }
    let mut text = String::new();
    for part in parts {
        let between = if text.is_empty() { "" } else { "  " };
        if text.chars().count() + between.len() + part.chars().count() <= columns {
            text += between;
            text += &part;
        }
    }
    text
}

/// Returns whether this command is in the foreground of a terminal in line mode.
fn terminal_is_ours() -> bool {
    let err = rustix::stdio::stderr();
    let line_mode = LocalModes::ICANON | LocalModes::ECHO;
    tcgetpgrp(err).is_ok_and(|group| group == getpgrp())
        && tcgetattr(err).is_ok_and(|modes| modes.local_modes.contains(line_mode))
}

/// Writes in one call, so that no output of the program comes between. Errors are ignored.
fn put(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_process::{Bytes, Point};

    #[test]
    fn live_line_omits_parts_that_do_not_fit() {
        let point = Point {
            at: Duration::from_secs(2),
            resident: Bytes(412 << 20),
            processes: 12,
            ..Point::default()
        };
        let point = Point { paged_in: 3000, ..point };
        let now = Now { point, peak: Bytes(1 << 30), writes: None };
        let whole = line(&now, 1500.0, usize::MAX);
        for columns in 0..=whole.chars().count() {
            let text = line(&now, 1500.0, columns);
            assert!(text.chars().count() <= columns, "{columns}: {text:?}");
            let known = |part: &&str| !whole.contains(*part);
            assert_eq!(text.split("  ").find(known), None, "{text:?}");
        }
        assert!(line(&now, 1500.0, 120).contains("12 processes"));
        assert!(line(&now, 1500.0, 60).contains("pages in 1,500/s"));
    }
}
