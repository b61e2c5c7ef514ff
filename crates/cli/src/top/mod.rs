//! `vellum top`: shows the state of the jobs of a running `vellum govern`, redrawn each period.
//!
//! ```text
//! state socket ─ lines of JSON ─▶ states ─┬─▶ terminal: view (user's choices, history) ─▶ drawing ─▶ screen
//!                                         └─▶ no terminal: one table after the other, or JSON
//! ```
//!
//! The terminal is restored however the command ends, except after SIGKILL.

mod drawing;
mod grid;
mod history;
mod press;
mod states;
mod terminal;
mod view;

use crate::failure::Failure;
use crate::{jobs_table, screen};
use clap::ValueHint;
use states::States;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use terminal::Terminal;
use vellum_governor::{Snapshot, Stop, state_socket, usual_place};
use vellum_report::{Style, json, stdout};
use view::View;

/// The longest time between checks of keys and the terminal's size.
const REDRAW: Duration = Duration::from_millis(500);

/// Show the jobs of a running `vellum govern`: size, working set, knee, window, faults and state.
///
/// The column size has resident memory; used has the memory referenced in the last sample. The column knee
/// has the working set at the job's window, which the job keeps when memory is short; window is in user CPU
/// time. The column faults/s counts major faults; may have is the job's target. A wide terminal has more
/// columns: advised is the limit that should cost at most 2 % of the job's time; at two thirds is the
/// slowdown with two thirds of it.
///
/// On a terminal: up and down choose a job, whose history and advice are below; left and right choose the
/// column to sort by, r reverses; p pauses; q quits.
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

/// Shows states until the governor or the user ends it.
pub(crate) fn top(args: &Top) -> Result<u8, Failure> {
    let path = state_socket(&args.sockets.clone().unwrap_or_else(usual_place));
    let failed = |error| {
        let path = path.display();
        Failure::because(format!(
            "{path}: no governor answers there ({error}); start one with `vellum govern`, or name its directory with --sockets"
        ))
    };
    let stream = UnixStream::connect(&path).map_err(failed)?;
    let stop = Stop::block()?;
    let mut screen = match !(args.once || args.json) && io::stdout().is_terminal() {
        true => Screen::enter(),
        false => None,
    };
    let mut states = States::of(stream);
    let mut shown = false;
    loop {
        match states.next() {
            Ok(Some(state)) => {
                let goes_on = match &mut screen {
                    Some(screen) => screen.show(state),
                    // `None` means that the reader has closed the pipe.
                    None => stdout::write_with(|out| write(out, &state, args.json))?.is_some(),
                };
                if args.once || !goes_on {
                    break;
                }
                shown = true;
                continue;
            }
            Ok(None) => {}
            Err(source) if !shown => return Err(failed(source)),
            Err(_) => break,
        }
        // A standard input other than a terminal has no keys, and may always be readable.
        let keys = io::stdin();
        let keys = (screen.is_some() && keys.is_terminal()).then(|| keys.as_fd());
        if stop.wait_with(REDRAW, [states.stream.as_fd()].into_iter().chain(keys)) {
            break;
        }
        if screen.as_mut().is_some_and(|screen| !screen.follow()) {
            break;
        }
    }
    Ok(0)
}

fn write(out: &mut stdout::Out, state: &Snapshot, as_json: bool) -> Result<(), Failure> {
    let style = Style::of_stdout();
    let text = match as_json {
        true => json(state)?,
        false => format!(
            "{}\n{}",
            jobs_table::summary(state, style),
            jobs_table::jobs(state, screen::columns(), style)
        ),
    };
    out.write_all(text.as_bytes()).map_err(|error| Failure::output("standard output", error))
}

/// The terminal while this command uses it.
struct Screen {
    terminal: Terminal,
    view: View,
}

impl Screen {
    /// Takes the terminal; `None` if that is impossible, as with a terminal of another session.
    fn enter() -> Option<Screen> {
        Some(Screen { terminal: Terminal::enter().ok()?, view: View::default() })
    }

    /// Shows a new state. False if the terminal is gone.
    fn show(&mut self, state: Snapshot) -> bool {
        self.view.learn(state);
        self.draw()
    }

    fn draw(&mut self) -> bool {
        let Screen { terminal, view } = self;
        terminal.draw(|grid| drawing::draw(grid, view)).is_ok()
    }

    /// Handles key presses, and redraws. False if the command must end.
    fn follow(&mut self) -> bool {
        let Ok(presses) = self.terminal.presses() else { return false };
        presses.into_iter().all(|press| self.view.obey(press)) && self.draw()
    }
}
