//! `vellum top`: the state of a governor's jobs, drawn anew each period.
//!
//! ```text
//! state socket ─ lines of JSON ─▶ Snapshot ─▶ table ─┬─▶ terminal: a screen of its own; q or Ctrl-C ends it
//!                                                   └─▶ elsewhere: one table after the other, or JSON
//! ```
//!
//! The terminal is put back as it was however this ends, but for SIGKILL.

use crate::failure::Failure;
use crate::jobs_table;
use crate::screen;
use clap::ValueHint;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcsetattr};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use vellum_governor::{Snapshot, Stop, state_socket, usual_place};
use vellum_report::Style;
use vellum_report::json;
use vellum_report::stdout;

/// The longest line that is read: more than a full table of jobs takes.
const LINE_MAX: usize = 4 << 20;
/// How often the terminal's size is checked.
const REDRAW: Duration = Duration::from_millis(500);
/// What Ctrl-C and Ctrl-D send.
const ENDS: &[u8] = b"qQ\x03\x04";

/// Takes a screen of its own and hides the cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first place.
const HOME: &str = "\x1b[H";
/// Clears to the end of the line; to the end of the screen.
const REST_OF_LINE: &str = "\x1b[K";
const REST: &str = "\x1b[J";

/// Show the jobs of a running `vellum govern`: size, working set, knee, window, faults and state.
///
/// Columns. size: resident memory. used: memory referenced in the last sample. knee: the working set at the
/// job's window, which the job keeps when memory is short. window: in user CPU time of the job. faults/s:
/// major faults a second. may have: the job's target. On a terminal, q ends it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  vellum top\n  vellum top --once\n  vellum top --json | jq '.jobs[].worth_bytes'"
)]
pub(crate) struct Top {
    /// Show the state once and end.
    #[arg(long)]
    once: bool,

    /// Write the states as lines of JSON (schema vellum.govern/1).
    #[arg(long)]
    json: bool,

    /// The directory of the governor's sockets, if its table names one.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    sockets: Option<PathBuf>,
}

/// No governor answers.
#[derive(Debug, thiserror::Error)]
#[error("{}: no governor answers there ({source}); start one with `vellum govern`, or name its directory with --sockets", .path.display())]
struct NoGovernor {
    path: PathBuf,
    source: io::Error,
}

/// Shows states until the governor or the user ends it.
pub(crate) fn top(args: &Top) -> Result<u8, Failure> {
    let path = state_socket(&args.sockets.clone().unwrap_or_else(usual_place));
    let failed = |source| Failure::of(NoGovernor { path: path.clone(), source });
    let stream = UnixStream::connect(&path).map_err(failed)?;
    let stop = Stop::hold()?;
    let drawn = !(args.once || args.json) && isatty(io::stdout());
    let screen = if drawn { Some(Screen::enter()) } else { None };
    let mut states = States { stream, text: Vec::new() };
    let mut shown = false;
    let mut latest = None;
    loop {
        match states.next() {
            Ok(Some(state)) => {
                match &screen {
                    Some(screen) => screen.draw(&state),
                    None => {
                        // The reader has closed the pipe.
                        if stdout::write_with(|out| write(out, &state, args.json))?.is_none() {
                            break;
                        }
                    }
                }
                shown = true;
                latest = Some(state);
                if args.once {
                    break;
                }
                continue;
            }
            Ok(None) => {}
            Err(source) if !shown => return Err(failed(source)),
            Err(_) => break,
        }
        let keys = screen.as_ref().map(|screen| screen.keys.as_fd());
        if stop.wait_with(REDRAW, [states.stream.as_fd()].into_iter().chain(keys)) {
            break;
        }
        if let (Some(screen), Some(state)) = (&screen, &latest) {
            if screen.wants_end() {
                break;
            }
            screen.draw(state);
        }
    }
    drop(screen);
    Ok(0)
}

fn write(out: &mut stdout::Out, state: &Snapshot, as_json: bool) -> Result<(), Failure> {
    let style = Style::of_stdout();
    let text = match as_json {
        true => json(state),
        false => format!(
            "{}\n{}",
            jobs_table::summary(state, style),
            jobs_table::jobs(state, screen::columns(), style)
        ),
    };
    out.write_all(text.as_bytes())
        .map_err(|source| Failure::Output { path: "standard output".into(), source })
}

/// States read from the socket.
struct States {
    stream: UnixStream,
    text: Vec<u8>,
}

impl States {
    /// A state if a whole one has come. An error when the governor is gone or sends what is no state.
    fn next(&mut self) -> io::Result<Option<Snapshot>> {
        self.stream.set_nonblocking(true)?;
        let mut piece = [0; 16 << 10];
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                return serde_json::from_slice(&line).map(Some).map_err(io::Error::from);
            }
            if self.text.len() > LINE_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.text.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The terminal, while it is ours.
struct Screen {
    keys: io::Stdin,
    before: Option<Termios>,
}

impl Screen {
    fn enter() -> Screen {
        let keys = io::stdin();
        let before = tcgetattr(&keys).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            // Ctrl-C comes as a key: a signal would end us before the terminal is put back.
            raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            raw.special_codes[SpecialCodeIndex::VMIN] = 0;
            raw.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = tcsetattr(&keys, OptionalActions::Now, &raw);
        }
        put(ENTER);
        Screen { keys, before }
    }

    fn draw(&self, state: &Snapshot) {
        let style = Style::of_stdout();
        let (columns, lines) = (screen::columns(), screen::lines());
        let table = jobs_table::jobs(state, columns, style);
        let mut text = HOME.to_owned();
        let summary = jobs_table::summary(state, style);
        for line in std::iter::once(summary.as_str()).chain(table.lines()).take(lines.saturating_sub(1)) {
            text += line;
            text += REST_OF_LINE;
            text += "\r\n";
        }
        put(&(text + REST));
    }

    /// Whether a key asked for the end. Standard input that is at its end asks for nothing.
    fn wants_end(&self) -> bool {
        if self.before.is_none() {
            return false;
        }
        let mut typed = [0; 64];
        let read = rustix::io::read(&self.keys, &mut typed[..]).unwrap_or(0);
        typed[..read].iter().any(|key| ENDS.contains(key))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        put(LEAVE);
        if let Some(before) = &self.before {
            let _ = tcsetattr(&self.keys, OptionalActions::Now, before);
        }
    }
}

/// Writes in one piece. A terminal that is gone shows nothing.
fn put(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
