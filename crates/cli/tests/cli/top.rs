//! Tests of `vellum top` on an emulated terminal: its screen, its keys, and pictures of it.

use crate::common::browser::{browser, draw, pictures};
use crate::common::terminal::{PATIENCE_MS, on_terminal, terminal};
use crate::common::{VELLUM, text};
use crate::govern::{Governing, table};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command};

/// Columns and lines.
type Size = (NonZero<u16>, NonZero<u16>);
const SMALL: Size = (side(80), side(24));
const WIDE: Size = (side(160), side(50));
const fn side(length: u16) -> NonZero<u16> {
    NonZero::new(length).expect("not zero")
}

const RIGHT: &str = "\x1b[C";
const DOWN: &str = "\x1b[B";

/// A job that reads a table repeatedly, one whose table grows and is dropped, and an idle job.
const JOBS: [(&str, &str); 3] = [
    ("table", "exec awk 'BEGIN { for (;;) for (i = 0; i < 400000; i++) a[i % 90000] = i }'"),
    ("burst", "exec awk 'BEGIN { for (;;) { for (i = 0; i < 150000; i++) a[i] = i; delete a } }'"),
    ("idle", "exec awk 'BEGIN { for (;;) system(\"sleep 1\") }'"),
];

/// A simulated user at a terminal.
struct Person {
    master: File,
    _slave: OwnedFd,
    screen: vt100::Parser,
    top: Child,
}

impl Person {
    fn start(sockets: &Path, size: Size) -> Person {
        let (master, slave) = terminal();
        resize(&master, size);
        let mut command = Command::new(VELLUM);
        command.args(["top", "--sockets", text(sockets)]).stdout(slave.try_clone().unwrap());
        let top = on_terminal(&mut command, &slave);
        Person { master, _slave: slave, screen: vt100::Parser::new(size.1, size.0, 0), top }
    }

    /// Reads the next output; false at its end.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let mut wait = libc::pollfd { fd: self.master.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `wait` is one structure, which lives across the call.
        let ready = unsafe { libc::poll(&mut wait, 1, PATIENCE_MS) };
        assert_eq!(ready, 1, "nothing comes; the screen:\n{}", self.screen.screen().contents());
        match self.master.read(&mut buffer) {
            Ok(read) if read > 0 => self.screen.process(&buffer[..read]),
            _ => return false,
        }
        true
    }

    fn sees(&mut self, words: &[&str]) {
        while !words.iter().all(|word| self.screen.screen().contents().contains(word)) {
            assert!(self.read(), "it ended; the screen:\n{}", self.screen.screen().contents());
        }
    }

    fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&mut self, size: Size) {
        resize(&self.master, size);
        self.screen.screen_mut().set_size(size.1, size.0);
    }

    /// Presses keys that end the command, and checks that the terminal is restored.
    fn ends(mut self, keys: &str) {
        self.press(keys);
        while self.screen.screen().alternate_screen() {
            assert!(self.read(), "it kept the screen");
        }
        assert_eq!(self.top.wait().unwrap().code(), Some(0));
        assert!(!self.screen.screen().hide_cursor());
        let mut modes: libc::termios = {
            // SAFETY: `termios` has only integer fields, for which zero is valid.
            unsafe { std::mem::zeroed() }
        };
        // SAFETY: `modes` is a local variable that `tcgetattr` may write.
        assert_eq!(unsafe { libc::tcgetattr(self.master.as_raw_fd(), &mut modes) }, 0);
        assert_ne!(modes.c_lflag & libc::ICANON, 0, "lines are lines again");
        assert_ne!(modes.c_lflag & libc::ECHO, 0, "keys are seen again");
    }
}

fn resize(master: &File, (columns, lines): Size) {
    let size = libc::winsize { ws_row: lines.get(), ws_col: columns.get(), ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCSWINSZ only reads `size`, a local variable of the right type.
    assert_eq!(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &size) }, 0);
}

#[test]
fn user_views_sorts_and_quits() {
    if Command::new("awk").arg("BEGIN {}").status().is_err() {
        return vellum_skip::skip("no awk is here");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut governing = Governing::start(&table(folder.path(), "budget = \"256 MiB\"", &JOBS));
    JOBS.iter().for_each(|_| _ = governing.event("started"));
    governing.drain();
    let sockets = folder.path().join("s");
    let mut person = Person::start(&sockets, SMALL);
    // The table, the chosen job's chart, and the keys, once the first period has given a state.
    person.sees(&["vellum top", "may have", "table", "burst", "running", "now", "knee", "quit", "processes"]);
    assert!(person.screen.screen().alternate_screen() && person.screen.screen().hide_cursor());
    person.press(&RIGHT.repeat(3));
    person.sees(&["size▼"]);
    person.press("r");
    person.sees(&["size▲"]);
    person.press(DOWN);
    person.press("p");
    person.sees(&["paused"]);
    person.press("p");
    let place = pictures(folder.path());
    if place != folder.path() {
        // The documentation's picture needs some history.
        person.sees(&["-40."]);
    }
    person.picture(&place.join("top.png"));
    person.resize(WIDE);
    person.sees(&["at two thirds", "swapped", "suspended"]);
    person.picture(&folder.path().join("wide.png"));
    person.ends("q");
    let mut hasty = Person::start(&sockets, WIDE);
    hasty.sees(&["table", "quit"]);
    hasty.ends("\x03");
    // `vellum top` ends with its governor.
    let mut last = Person::start(&sockets, SMALL);
    last.sees(&["table", "quit"]);
    governing.signal(libc::SIGTERM);
    last.ends("");
}

impl Person {
    fn picture(&self, file: &Path) {
        let Some(browser) = browser() else { return };
        /// The size of a letter in the browser's monospaced font, in points.
        const LETTER: (u32, u32) = (8, 17);
        let screen = self.screen.screen();
        let (lines, columns) = screen.size();
        let (lines, columns) = (lines.get(), columns.get());
        let mut page = String::from(
            "<!doctype html><meta charset=\"utf-8\"><style>body{margin:8px;background:#14161a;color:#d8dade}\
             pre{margin:0;font:13px/17px 'DejaVu Sans Mono','Liberation Mono',monospace}\
             span{display:inline-block;width:8px;height:17px;overflow:visible}</style><pre>",
        );
        for line in 0..lines {
            for column in 0..columns {
                let Some(cell) = screen.cell(line, column) else { continue };
                page += &letter(cell);
            }
            page.push('\n');
        }
        page += "</pre>";
        let html = file.with_extension("html");
        let html = html.file_name().expect("a name");
        let folder = tempfile::tempdir().unwrap();
        let html = folder.path().join(html);
        std::fs::write(&html, page).unwrap();
        let size = (u32::from(columns) * LETTER.0 + 16, u32::from(lines) * LETTER.1 + 16);
        draw(&browser, &html, file, size, false);
    }
}

fn letter(cell: &vt100::Cell) -> String {
    const COLOURS: [&str; 8] =
        ["#14161a", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dade"];
    let colour = |colour: vt100::Color, usual: &'static str| match colour {
        vt100::Color::Idx(at) => COLOURS[usize::from(at) % COLOURS.len()],
        _ => usual,
    };
    let (mut ink, mut paper) = (colour(cell.fgcolor(), COLOURS[7]), colour(cell.bgcolor(), COLOURS[0]));
    if cell.inverse() {
        (ink, paper) = (paper, ink);
    }
    let weight = if cell.bold() { "bold" } else { "normal" };
    let opacity = if cell.dim() { 0.6 } else { 1.0 };
    let text = match cell.contents() {
        "" => " ",
        "<" => "&lt;",
        "&" => "&amp;",
        text => text,
    };
    format!(
        "<span style=\"color:{ink};background:{paper};font-weight:{weight};opacity:{opacity}\">{text}</span>"
    )
}
