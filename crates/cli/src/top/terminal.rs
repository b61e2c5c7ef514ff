//! The terminal while `vellum top` uses it: alternate screen, hidden cursor, keys that are read at once.
//!
//! # Invariants
//! * The original modes are restored when the value is dropped. A panic hook also restores them, because a
//!   panic may end the process without a drop.

use super::grid::Grid;
use super::press::{Press, presses};
use crate::screen;
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::panic;
use vellum_report::Style;

/// Switches to the alternate screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[?1049l\x1b[?25h";
/// Clears the screen, for a change of its size.
const CLEAR: &str = "\x1b[2J";
/// The most bytes of keys in one read.
const KEYS_MAX: usize = 1024;

/// The terminal while this command uses it.
#[derive(Debug)]
pub(super) struct Terminal {
    keys: File,
    before: Termios,
    last: Option<Grid>,
    is_coloured: bool,
}

impl Terminal {
    pub(super) fn enter() -> io::Result<Terminal> {
        let stdin = io::stdin();
        let keys = match stdin.is_terminal() {
            true => File::from(stdin.as_fd().try_clone_to_owned()?),
            false => File::options().read(true).write(true).open("/dev/tty")?,
        };
        let before = tcgetattr(&keys)?;
        let mut raw = before.clone();
        raw.make_raw();
        // A read returns at once, even without input.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        let (in_panic, modes) = (keys.try_clone()?, before.clone());
        tcsetattr(&keys, OptionalActions::Now, &raw)?;
        let terminal = Terminal { keys, before, last: None, is_coloured: Style::of_stdout().is_coloured() };
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave(&in_panic, &modes);
            others(panic);
        }));
        write(ENTER)?;
        Ok(terminal)
    }

    /// Shows a picture of the terminal's size.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Grid)) -> io::Result<()> {
        let size = (screen::columns(), screen::lines());
        let mut grid = Grid::new(size.0, size.1);
        draw(&mut grid);
        let last = self.last.as_ref().filter(|last| (last.width, last.height) == size);
        let clear = if last.is_some() { "" } else { CLEAR };
        let text = grid.escaped(last, self.is_coloured);
        self.last = Some(grid);
        write(&format!("{clear}{text}"))
    }

    /// The keys pressed since the last call.
    pub(super) fn presses(&mut self) -> io::Result<Vec<Press>> {
        let mut bytes = [0; KEYS_MAX];
        match self.keys.read(&mut bytes) {
            Ok(read) => Ok(presses(&bytes[..read])),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave(&self.keys, &self.before);
    }
}

fn leave(keys: &File, before: &Termios) {
    let _ = tcsetattr(keys, OptionalActions::Now, before);
    let _ = write(LEAVE);
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
