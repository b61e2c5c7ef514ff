//! A progress line on standard error, redrawn during long work. It is shown only on a terminal.

use crate::screen;
use rustix::termios::isatty;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vellum_report::stderr;

/// The time between redraws: long, as measured programs need the processor.
const REDRAW: Duration = Duration::from_millis(500);

/// The line, shown until this is dropped.
#[derive(Debug)]
pub(crate) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Shows the elapsed time of `what`, which takes about `long`.
    pub(crate) fn start(what: &str, long: &str) -> Progress {
        if !isatty(rustix::stdio::stderr()) {
            return Progress(None);
        }
        let (end, ended) = channel();
        let (began, rest) = (Instant::now(), format!(" of about {long}  {what}"));
        let draw = move || {
            loop {
                let line = format!("{} s{rest}", began.elapsed().as_secs());
                let line: String = line.chars().take(screen::columns_of_stderr().saturating_sub(1)).collect();
                stderr::write(format_args!("\r{line}\x1b[K"));
                if ended.recv_timeout(REDRAW) != Err(RecvTimeoutError::Timeout) {
                    return stderr::write(format_args!("\r\x1b[K"));
                }
            }
        };
        // If no thread can be created, there is no line.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(draw);
        Progress(thread.ok().map(|thread| (end, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.0.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}
