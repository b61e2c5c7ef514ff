//! Reads the states of the governor's jobs, which its socket sends as lines of JSON.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use vellum_governor::Snapshot;

/// The longest line that is read: longer than a full table of jobs.
const LINE_MAX: usize = 4 << 20;

pub(super) struct States {
    pub(super) stream: UnixStream,
    text: Vec<u8>,
}

impl States {
    pub(super) fn of(stream: UnixStream) -> States {
        States { stream, text: Vec::new() }
    }

    /// A state, if a whole line has arrived. An error if the governor is gone or sends something else.
    pub(super) fn next(&mut self) -> io::Result<Option<Snapshot>> {
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
