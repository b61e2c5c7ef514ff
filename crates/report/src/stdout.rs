//! Writes to standard output, which its reader may close early.
//!
//! `vellum obs cut 1-10 big.obs | head -1` must end when `head` does, at once and without a message. A write
//! to a closed pipe ends the output and is not an error.

use crate::OutputError;
use std::io::{self, BufWriter, StdoutLock, Write};

/// The number of bytes gathered before a write.
const BUFFER_BYTES: usize = 1 << 16;

/// Buffered standard output that records if its reader has closed it.
pub type Out = BufWriter<Watched>;

/// Standard output, and whether its reader has closed it.
#[derive(Debug)]
pub struct Watched {
    to: StdoutLock<'static>,
    closed: bool,
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.closed |= written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Calls `work` with a writer to standard output. `None` if the reader closed it before the end.
pub fn write_with<T, E: From<OutputError>>(
    work: impl FnOnce(&mut Out) -> Result<T, E>,
) -> Result<Option<T>, E> {
    let to = Watched { to: io::stdout().lock(), closed: false };
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, to);
    let done = work(&mut out).and_then(|done| Ok(out.flush().map(|()| done).map_err(failed)?));
    match done {
        Err(_) if out.get_ref().closed => Ok(None),
        done => done.map(Some),
    }
}

/// Writes `bytes` to standard output.
pub fn write_all(bytes: &[u8]) -> Result<(), OutputError> {
    written(bytes).map(|_| ())
}

/// Writes `text` to standard output at once. False if the reader has closed it.
pub fn say<E: From<OutputError>>(text: &str) -> Result<bool, E> {
    Ok(written(text.as_bytes())?.is_some())
}

fn written(bytes: &[u8]) -> Result<Option<()>, OutputError> {
    write_with(|out| out.write_all(bytes).map_err(failed))
}

fn failed(source: io::Error) -> OutputError {
    OutputError { path: "standard output".into(), source }
}
